/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events belong to a part of a recording's time: the one rule of what `convert` writes and of
 * what is analysed with --from and --to.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jfr/catalog.h"
#include "jfr/reader.h"

/* Who got a monitor last before the part. */
struct time_part_owner {
    int64_t end_ns; /* of the wait for it */
    const struct rec_thread *thread;
    uint64_t offset; /* of the event */
    bool awaited;    /* another thread waited for it when the part began */
};

struct time_part {
    int64_t start_ns;        /* of the recording */
    uint64_t from_ns, to_ns; /* since its start; to_ns = 0: up to its end */
    struct map over;  /* by waits that were reported while they lasted: 1: over before the part */
    struct map ended; /* numbers of threads that ended before the part */
    struct map owner_of; /* by monitor: the number of its owner */
    VEC(struct time_part_owner) owners;
};

/* Returns whether an event with these times and of this scope belongs to the part. */
bool time_part_has(const struct time_part *p, enum event_scope scope, int64_t start_ns,
                   int64_t duration_ns);
/*
 * Reads a recording for time_part_is_over and time_part_owner, and rewinds it; its selection is
 * changed. Returns 0 or a negative errno.
 */
int time_part_read(struct time_part *p, struct recording *r) must_check;
/*
 * Returns whether an event that time_part_has does not belong to the part after all: one that
 * reports a wait of which another event says that it was over before the part, or a thread that
 * ended before it.
 */
bool time_part_is_over(const struct time_part *p, enum event_scope scope,
                       const struct rec_event *e);
/*
 * e: a wait for a monitor that began before the part. Its event has the owner at that time. Returns
 * the thread that got the monitor after that, last before the part, or NULL. `convert` keeps the
 * event that says so.
 */
const struct rec_thread *time_part_owner(const struct time_part *p, const struct rec_event *e);
void time_part_release(struct time_part *p);
