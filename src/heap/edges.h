/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who refers to whom: the references out of each node, as a run of variable-length numbers relative to the node. About two
 * bytes a reference and four a node. Written by several threads, each node by one; then read from a node or all in a row.
 *
 * A node's run is zigzag(target - node) in LEB128, closed by a 0: a reference to oneself is not stored, it holds nothing.
 * Before the run lies zigzag(node - node before it in the block), for those who read all.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct edge_block {
    uint64_t start, end; /* in bytes */
};

struct edges {
    uint64_t nodes;
    uint8_t *bytes;           /* reserved for `capacity`; [0] is not used */
    uint64_t capacity, taken; /* taken: handed out to writers */
    uint32_t *low;            /* where a node's run begins, 0 for a node without; the upper bits are in high */
    uint8_t *high;            /* touched beyond 4 GiB only */
    uint64_t *weak;           /* bits: the first reference of this node is a weak one */
    struct edge_block *blocks;
    uint64_t blocks_n, blocks_cap;
};

/* max_bytes: more than all runs can take (address space, not memory). 0 or -ENOMEM. */
int edges_init(struct edges *e, uint64_t nodes, uint64_t max_bytes) must_check;
void edges_release(struct edges *e);
/* Gives up what finding a node's run needs; reading all in a row still works. */
void edges_release_starts(struct edges *e);

/* One a thread. */
struct edge_writer {
    struct edges *edges;
    uint8_t *at, *end, *start;
    uint64_t node, before;
};

/* Opens the run of a node that will have at most `count` references. 0, -ENOMEM, -E2BIG. */
int edges_begin(struct edge_writer *w, uint64_t node, uint64_t count, bool first_weak) must_check;
void edges_end(struct edge_writer *w);
/* After the last node. */
int edges_finish(struct edge_writer *w) must_check;

static inline uint8_t *edges_put_(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static inline uint64_t edges_zigzag_(uint64_t delta)
{
    return delta << 1 ^ -(delta >> 63);
}

static inline void edges_add(struct edge_writer *w, uint64_t target)
{
    if (likely(target != w->node))
        w->at = edges_put_(w->at, edges_zigzag_(target - w->node));
}

static inline uint64_t edges_take_(const uint8_t **p)
{
    uint64_t v = *(*p)++;
    if (likely(v < 0x80))
        return v;
    v &= 0x7f;
    for (unsigned shift = 7;; shift += 7) {
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return v;
    }
}

static inline uint64_t edges_unzigzag_(uint64_t v)
{
    return v >> 1 ^ (0 - (v & 1));
}

/* The run of a node, NULL when it refers to nothing. */
static inline const uint8_t *edges_of(const struct edges *e, uint64_t node)
{
    uint64_t at = e->low[node];
    if (unlikely(e->taken >> 32)) /* else the high bytes are 0 and not worth a look */
        at |= (uint64_t)e->high[node] << 32;
    return at ? e->bytes + at : NULL;
}

/* The next target of a run of `node`; false at its end. */
static inline bool edges_next(const uint8_t **run, uint64_t node, uint64_t *ret)
{
    uint64_t v = edges_take_(run);
    *ret = node + edges_unzigzag_(v);
    return v != 0;
}

static inline bool edges_first_weak(const struct edges *e, uint64_t node)
{
    return e->weak[node / 64] >> (node % 64) & 1;
}
