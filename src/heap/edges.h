/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The references from each node, stored as a run of variable-length numbers relative to the node:
 * about two bytes for a reference and four for a node. Several threads may write, each node by one
 * of them; afterwards runs are read by node or all in sequence.
 *
 * A node's run consists of zigzag(target - node) in LEB128 and ends with a 0. A reference of a node
 * to itself is not stored, because it retains nothing. Before the run comes zigzag(node - previous
 * node in the block), for reading in sequence.
 */
#pragma once

#include "base/macro.h"
#include "base/varint.h"

#include <stdbool.h>
#include <stdint.h>

struct edge_block {
    uint64_t start, end; /* in bytes */
};

struct edges {
    uint64_t nodes;
    uint8_t *bytes;           /* address space for `capacity` bytes; [0] is not used */
    uint64_t capacity, taken; /* taken: the number of bytes handed out to writers */
    /*
     * The position of a node's run, or 0 for a node without references; `high` has the upper bits.
     */
    uint32_t *low;
    uint8_t *high;  /* not touched below 4 GiB */
    uint64_t *weak; /* one bit for each node: its first reference is weak */
    struct edge_block *blocks;
    uint64_t blocks_n, blocks_cap;
};

/*
 * Makes room for the runs of `nodes` nodes. max_bytes is at least what all runs can take; it is
 * address space, not memory. Returns 0 or -ENOMEM.
 */
int edges_init(struct edges *e, uint64_t nodes, uint64_t max_bytes) must_check;
void edges_release(struct edges *e);
/* Frees what is needed to find a node's run; reading all runs in sequence still works. */
void edges_release_starts(struct edges *e);

/* Each thread has one. */
struct edge_writer {
    struct edges *edges;
    uint8_t *at, *end, *start;
    uint64_t node, before;
};

/*
 * Begins the run of a node with at most `count` references. first_weak: the first reference is
 * weak. Returns 0, or -E2BIG when the runs need more than max_bytes.
 */
int edges_begin(struct edge_writer *w, uint64_t node, uint64_t count, bool first_weak) must_check;
/* Ends the run that edges_begin began. */
void edges_end(struct edge_writer *w);
/*
 * Ends a thread's writing after its last node, so that the runs are found in sequence. Returns 0 or
 * -E2BIG.
 */
int edges_finish(struct edge_writer *w) must_check;

static inline uint64_t edges_zigzag_(uint64_t delta)
{
    return delta << 1 ^ -(delta >> 63);
}

/*
 * Adds a reference to `target`, unless that is the node itself, to the run that edges_begin began.
 */
static inline void edges_add(struct edge_writer *w, uint64_t target)
{
    if (likely(target != w->node))
        w->at = varint_put(w->at, edges_zigzag_(target - w->node));
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

/* Returns the run of a node, or NULL when it has no references. */
static inline const uint8_t *edges_of(const struct edges *e, uint64_t node)
{
    uint64_t at = e->low[node];
    if (unlikely(e->taken >> 32)) /* below that the high bytes are 0 and need not be read */
        at |= (uint64_t)e->high[node] << 32;
    return at ? e->bytes + at : NULL;
}

/* Reads the next target in a run of `node`. Returns false at the end of the run. */
static inline bool edges_next(const uint8_t **run, uint64_t node, uint64_t *ret)
{
    uint64_t v = edges_take_(run);
    *ret = node + edges_unzigzag_(v);
    return v != 0;
}

/* Returns whether the first reference of a node is weak. */
static inline bool edges_first_weak(const struct edges *e, uint64_t node)
{
    return e->weak[node / 64] >> (node % 64) & 1;
}
