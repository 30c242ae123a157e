/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the nodes of a timeline are stored: in blocks of 128, each node of a block in the same few
 * bytes. Each column takes as many bits as its largest value needs in that block. References to
 * other nodes are distances, times are offsets from the block's first node, and kind, edge and
 * flags together are a number in the table of those that occur. A node takes some 8 bytes.
 *
 * The bits of a file may be anything. A node that is read from them still refers only to threads,
 * contexts and nodes that exist, and to an earlier node as its thread's previous one, provided that
 * the blocks themselves were checked (timeline_map).
 */
#pragma once

#include "base/macro.h"

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TL_NONE UINT32_MAX

enum { TL_BLOCK_BITS = 7, TL_BLOCK_NODES = 1 << TL_BLOCK_BITS };

enum tl_column { TL_TIME, TL_SHAPE, TL_THREAD, TL_PREV, TL_WAKER, TL_CONTEXT, TL_COLUMNS };

/* inlined, so that only the columns that are used are read */
#define tl_inline __attribute__((always_inline)) static inline

/* The largest numbers of bits in a column; bytes after the last block that may be read. */
enum { TL_TIME_BITS = 48, TL_SHAPE_BITS = 12, TL_REFERENCE_BITS = 33, TL_PACKED_PADDING = 8 };

/* The latest time of a node, in ns since the timeline's origin: 78 hours. */
#define TL_TIME_LAST ((UINT64_C(1) << TL_TIME_BITS) - 1)

/* A shape: kind, edge and flags of a node. */
#define TL_SHAPE_OF(kind, edge, flags) \
    ((uint16_t)((unsigned)(kind) | (unsigned)(edge) << 8 | (unsigned)(flags) << 12))

/* A node as analyses use it. */
struct tl_node {
    uint64_t time; /* ns since the timeline's origin, at most TL_TIME_LAST */
    uint32_t prev; /* the thread's previous node, or TL_NONE */
    /*
     * the node that caused this one; for an interaction the first node that it caused; or TL_NONE
     */
    uint32_t waker;
    uint32_t thread;  /* index of threads */
    uint32_t context; /* index of contexts */
    uint8_t kind;     /* enum tl_kind */
    uint8_t edge;     /* enum tl_edge, for a node that ends a wait */
    uint8_t flags;
};

struct tl_block {
    uint64_t time;                 /* of its first node */
    uint64_t at;                   /* where in the packed bytes its bits begin */
    uint8_t begin[TL_COLUMNS + 1]; /* in the bits of a node: each column; last: all bits */
    uint8_t row;                   /* bytes of a node */
};

/* Returns the value of a node's column, as it is stored. bits are those of the node's block. */
tl_inline uint64_t tl_column_at(const uint8_t *bits, const struct tl_block *b, uint32_t node,
                                enum tl_column column)
{
    unsigned bit = b->begin[column];
    uint64_t word;
    memcpy(&word, bits + (node & (TL_BLOCK_NODES - 1)) * b->row + (bit >> 3), sizeof(word));
    return le64toh(word) >> (bit & 7) & ((UINT64_C(1) << (b->begin[column + 1] - bit)) - 1);
}

/*
 * Returns the code of a node's waker, which may be an earlier or a later node: twice the distance,
 * plus 1 if it is a later node; 0 for TL_NONE.
 */
static inline uint64_t tl_waker_code(uint32_t node, uint32_t waker)
{
    int64_t back = (int64_t)node - (int64_t)waker, negative = back >> 63;
    uint64_t code = (uint64_t)((back ^ negative) - negative) << 1 | (back <= 0);
    /* without a branch, which would be unpredictable */
    return code & -(uint64_t)(waker != TL_NONE);
}

/* The values of a node's columns. */
struct tl_values {
    uint64_t time, shape, thread, prev, waker, context;
};

/*
 * Returns node number `node`, with these values, of a block that begins at `time`. The timeline has
 * n nodes.
 */
tl_inline struct tl_node tl_node_of(const struct tl_values *v, uint64_t time,
                                    const uint16_t *shapes, uint32_t node, size_t n)
{
    uint64_t away = v->waker >> 1;
    uint64_t waker = v->waker & 1 ? node + away : node - away;
    uint16_t shape = shapes[v->shape];
    return (struct tl_node){.time = (time + v->time) & TL_TIME_LAST,
                            .prev = v->prev - 1 < node ? node - (uint32_t)v->prev : TL_NONE,
                            .waker = away && waker < n ? (uint32_t)waker : TL_NONE,
                            .thread = (uint32_t)v->thread,
                            .context = (uint32_t)v->context,
                            .kind = shape & 0xff,
                            .edge = shape >> 8 & 0xf,
                            .flags = (uint8_t)(shape >> 12)};
}

/* Returns node number `node`, read from the bits of its block. The timeline has n nodes. */
tl_inline struct tl_node tl_node_unpack(const uint8_t *bits, const struct tl_block *b,
                                        const uint16_t *shapes, uint32_t node, size_t n)
{
    const struct tl_values v = {.time = tl_column_at(bits, b, node, TL_TIME),
                                .shape = tl_column_at(bits, b, node, TL_SHAPE),
                                .thread = tl_column_at(bits, b, node, TL_THREAD),
                                .prev = tl_column_at(bits, b, node, TL_PREV),
                                .waker = tl_column_at(bits, b, node, TL_WAKER),
                                .context = tl_column_at(bits, b, node, TL_CONTEXT)};
    return tl_node_of(&v, b->time, shapes, node, n);
}
