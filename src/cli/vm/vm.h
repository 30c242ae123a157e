/* SPDX-License-Identifier: Apache-2.0 */
/* What the command `vm` shows of a recording: groups of what the VM did, as text and as JSON. */
#pragma once

#include "base/json.h"
#include "profile/vm_activity.h"

/* Sums over what has the same texts. */
struct vm_group {
    uint32_t name, cause; /* texts */
    uint64_t n, total_ns, sync_ns, longest_ns, longest_sync_ns, freed;
    bool concurrent; /* phases that run concurrently with the program */
};

struct vm_groups {
    struct vm_group *data;
    size_t len, cap;
};

struct vm_view {
    const char *path;
    struct vm_activity v;
    size_t limit;
    bool filtered;                /* by time: the VM's own totals do not apply */
    uint64_t window_ns;           /* the time that is looked at */
    struct vm_groups operations;  /* safepoints by operation; most time first, like all */
    struct vm_groups collections; /* by collector and cause */
    struct vm_groups pauses;      /* by their names */
    struct vm_groups phases;      /* by their names; */
    struct vm_groups methods;     /* compilations by method; the most often compiled first */
    VEC(uint32_t) longest;        /* safepoints by length */
    VEC(uint32_t) late;           /* safepoints with a long way, by its length */
    struct vm_totals totals;      /* of safepoints */
    uint64_t pause_ns, pause_longest_ns;
    uint64_t allocated; /* between the collections, as far as they give the heap's use */
};

/* Fills what follows from v. 0 or -ENOMEM. */
int vm_view_fill(struct vm_view *w) must_check;
void vm_view_release(struct vm_view *w);
void vm_view_json(const struct vm_view *w, struct json *j);
void vm_view_text(const struct vm_view *w);

/* The frame that a thread was in that was late to a safepoint; NULL: unknown. */
static inline const struct vm_frame *vm_late_frame(const struct vm_view *w,
                                                   const struct vm_safepoint *s)
{
    return s->late_n ? &w->v.frames.data[s->late_first] : NULL;
}

/* Of compilers, process and container; called by the two above. */
void vm_view_process_json(const struct vm_view *w, struct json *j);
void vm_view_process_text(const struct vm_view *w);
