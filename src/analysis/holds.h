/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who held which lock when: exact where acquire and release were recorded, else concluded from contended events, which tell
 * the end of a section that somebody waited for and the beginning of one that had to wait.
 */
#pragma once

#include "base/vec.h"
#include "model/timeline.h"

#define HOLD_START_INFERRED 1 /* held when another thread came to wait; began before */
#define HOLD_END_INFERRED   2 /* nobody waited for the end: the median length of the section, or less */
#define HOLD_INFERRED       (HOLD_START_INFERRED | HOLD_END_INFERRED)
#define HOLD_EXACT          4 /* recorded as a hold */

struct hold {
    uint64_t start, end;

    union {
        uint64_t seen;  /* while they are collected: the thread was still in the method that took it, by its stacks */
        uint64_t reach; /* the last end of this one and those before it in the list, of the same thread */
    };

    uint32_t thread, object, stack; /* stack of the acquisition, or TL_NONE */
    uint32_t flags;
    uint32_t acquire; /* node: the acquisition; for a beginning that is inferred the other thread's, which saw it held */
    uint32_t release; /* node that ended it, or TL_NONE */
};

struct holds {
    VEC(struct hold) list; /* by thread, then by start */
    size_t *first;         /* per thread: its first in the list; n_threads + 1 of them */
};

/* Which locks count. NULL for all. */
typedef bool holds_want(const struct timeline *t, uint32_t object, void *arg);

int holds_collect(const struct timeline *t, holds_want *want, void *arg, struct holds *ret) must_check;
void holds_release(struct holds *h);
