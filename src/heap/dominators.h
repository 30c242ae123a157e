/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes immediate dominators of a graph of any size by SEMI-NCA (Georgiadis, Tarjan, Werneck:
 * Finding Dominators in Practice, 2006) without recursion. The roots are children of one virtual
 * root. Array entries have 4 bytes, or 8 in a `wide` graph (with 2^32 or more nodes or references).
 * At its peak the algorithm uses about 23 (46) bytes for each node.
 */
#pragma once

#include "heap/edges.h"

struct dominators {
    uint64_t nodes, reached; /* search numbers are 1 to reached; 1 is the virtual root */
    bool wide;
    /* Weak references do not retain; what only they lead to becomes a child of the root. */
    bool strong;
    void *number; /* node -> search number; 0 if not reachable */
    /* Search number -> search number of the parent; until dominators_finish. */
    void *parent;
    /* search number -> search number of the immediate dominator; after dominators_finish */
    void *idom;
    uint64_t *roots; /* the caller's, followed by those found through weak references */
    uint64_t roots_n;
    /* After dominators_finish: what is not needed any more, for heap_memory_again. */
    void *spare[2];
    uint64_t *extra;
    uint64_t extra_n, extra_cap;
};

static inline uint64_t dominators_get(const void *array, uint64_t i, bool wide)
{
    return wide ? ((const uint64_t *)array)[i] : ((const uint32_t *)array)[i];
}

static inline void dominators_set(void *array, uint64_t i, uint64_t v, bool wide)
{
    if (wide)
        ((uint64_t *)array)[i] = v;
    else
        ((uint32_t *)array)[i] = (uint32_t)v;
}

/*
 * Searches depth-first from the roots, which are nodes of e. Both e and the array of roots must
 * exist until dominators_finish has returned. `wide` and `strong` are as in struct dominators.
 * Returns 0 or -ENOMEM; on an error d has been released.
 */
int dominators_search(struct dominators *d, const struct edges *e, uint64_t *roots,
                      uint64_t roots_n, bool wide, bool strong) must_check;
/*
 * Computes idom on this number of threads. Needs only the runs of e and frees them as early as
 * possible; e is empty afterwards. If `park` is not NULL, copies `number` to it and sets d->number
 * to NULL, to save memory. Returns 0 or -ENOMEM; the caller releases d in either case.
 */
int dominators_finish(struct dominators *d, struct edges *e, void *park,
                      unsigned threads) must_check;
void dominators_release(struct dominators *d);
