/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a recording for vm_activity.h; private to vm_activity*.c. */
#pragma once

#include "base/map.h"
#include "jfr/reader.h"
#include "profile/vm_activity.h"

/* Parts of a safepoint or collection that events of their own report, by its number. */
struct activity_part {
    int64_t end_ns;
    uint32_t operation;
    bool has_end;
    uint64_t before, after, capacity;
    bool has_before, has_after, no_address;
};

struct activity_reading {
    struct vm_activity *out;
    const struct vm_activity_filter *filter;
    const struct rec_event *e;
    bool part; /* of the time of a recording, which may have events that began before it */
    struct map safepoints, collections; /* id to the place in parts + 1 */
    VEC(struct activity_part) parts;
    struct map deoptimizations; /* hash of method, reason and place to the place in the list + 1 */
    VEC(struct activity_totals {
        int64_t ns;
        struct vm_totals t;
    })
    totals;
    int error;
};

/* The events of the VM's activity; ends with a zero. */
extern const struct rec_select activity_events[];
/* Handles an event; context is a struct activity_reading. Returns 0 or a negative errno. */
int vm_activity_visit(void *context, const struct rec_event *e);

/*
 * Adds a text and returns its number; VM_NONE for "" or NULL, and on failure, which sets r->error.
 */
uint32_t vm_activity_keep_text(struct activity_reading *r, const char *s);
/* Returns a duration from the recording, in ns, limited to what is possible. */
uint64_t vm_activity_length(int64_t ns);
/*
 * Returns the parts of the safepoint or collection with this id in m, which is r->safepoints or
 * r->collections; NULL when no event reported any.
 */
const struct activity_part *vm_activity_part(const struct activity_reading *r, const struct map *m,
                                             uint64_t id);
/* Adds a reading to a figure, as the last one. */
void vm_activity_add_figure(struct vm_figure *f, int64_t ns, uint64_t v);
