/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Immediate dominators of a graph of any size, by SEMI-NCA (Georgiadis, Tarjan, Werneck: Finding Dominators in Practice, 2006)
 * without recursion. The roots hang under one virtual root. Arrays are of 4 bytes an entry, of 8 in a `wide` graph (2^32 nodes
 * or references and more); at its peak the work takes about 23 (46) bytes a node.
 */
#pragma once

#include "heap/edges.h"

struct dominators {
    uint64_t nodes, reached; /* search numbers are 1 .. reached; 1 is the virtual root */
    bool wide;
    bool strong;     /* weak references hold nothing; what they alone lead to hangs under the root */
    void *number;    /* node -> search number, 0: not reachable */
    void *parent;    /* search number -> that of the parent in the search; until dominators_finish */
    void *idom;      /* search number -> that of the immediate dominator; after dominators_finish */
    uint64_t *roots; /* the caller's, then those found beyond weak references */
    uint64_t roots_n;
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

/* Searches depth-first from the roots (nodes of e, which must live until finish). 0 or -ENOMEM. */
int dominators_search(struct dominators *d, const struct edges *e, uint64_t *roots, uint64_t roots_n, bool wide,
                      bool strong) must_check;
/*
 * Computes idom. Of e only the runs are needed, and they are given up as early as can be: e is empty afterwards. park: room
 * for `number` (of the caller), which is moved there; NULL keeps it. 0 or -ENOMEM.
 */
int dominators_finish(struct dominators *d, struct edges *e, void *park, unsigned threads) must_check;
void dominators_release(struct dominators *d);
