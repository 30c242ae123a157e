/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits for locks of which the recording does not show who held the lock: what its owner did
 * meanwhile counts for none of its sections, so that their time on the path and what they would
 * gain is too small.
 */
#pragma once

#include "base/vec.h"
#include "timeline/timeline.h"

struct unknown_owners {
    uint32_t class; /* number of a string */
    /*
     * whether its objects are locks. A semaphore, a latch or a queue has no owner, and only who
     * takes it for a lock needs to know that.
     */
    bool lock;
    uint64_t waits;       /* all waits for its objects */
    uint64_t unknown, ns; /* of these, without a known owner, and how long these took */
};

/* One row for each class with such waits, the longest first. */
struct unknown_table {
    VEC(struct unknown_owners) rows;
};

/* Counts the waits that overlap a range in ns; to = 0: no upper end. Returns 0 or -ENOMEM. */
int unknown_owners_find(const struct timeline *t, uint64_t from, uint64_t to,
                        struct unknown_table *ret) must_check;
/* Returns the row of a class, or NULL. */
const struct unknown_owners *unknown_owners_of(const struct unknown_table *u, uint32_t class);
