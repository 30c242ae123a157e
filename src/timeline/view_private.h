/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a view in memory and in its file: view_make.c makes it, and view.c draws from it.
 */
#pragma once

#include "timeline/view.h"

enum {
    STATES = TL_TIMEOUT,
    LEVELS = 5,      /* of marks: one for every 16, 128, 1024 ... nodes */
    FIRST_SHIFT = 4, /* log2 of the number of nodes that a mark of the finest level covers */
    FAN_SHIFT = 3,   /* log2 of the number of marks of one level that a mark of the next covers */
};

/*
 * Nodes by thread: time << 8 | kind, and the node's number, in chronological order. A mark covers a
 * fixed number of them. It has the time of the first one and, for states, the time spent in each
 * column before it, counted from the beginning of all lanes.
 */
struct lanes {
    const uint64_t *first; /* by thread, and one more */
    const uint64_t *at;
    const uint32_t *node;
    const uint64_t *mark[LEVELS];
    size_t stride; /* how many numbers a mark has */
};

/* A wake-up by another thread. */
struct arrow {
    uint64_t time, since; /* since: the time of its cause */
    uint32_t node, waker, thread, from;
    uint32_t edge; /* plus 16 if inferred */
    uint32_t spare;
};

/* What is in the file after its header; each part is aligned to 8 bytes. */
enum view_part {
    PART_ENDS, /* by thread: when its last state ends */
    PART_STATE_FIRST,
    PART_STATE_AT,
    PART_STATE_NODE,
    PART_STATE_MARKS,
    PART_INSTANT_FIRST = PART_STATE_MARKS + LEVELS,
    PART_INSTANT_AT,
    PART_INSTANT_NODE,
    PART_INSTANT_MARKS,
    PART_ARROWS = PART_INSTANT_MARKS + LEVELS, /* nodes that were woken, in chronological order */
    /* one of every 8 of them, of every 64 ..., as struct arrow */
    PART_SAMPLES,
    PART_REST = PART_SAMPLES + LEVELS, /* the caller's own data */
    PARTS
};

struct timeline_view {
    /*
     * The nodes of a timeline that was read from a file may contain invalid references, which are
     * checked where they are used.
     */
    const struct timeline *t;
    struct lanes states, instants;
    const uint64_t *ends;
    uint8_t column[256];  /* the column of each kind that occurs */
    uint8_t kind[STATES]; /* the kind of each column */
    size_t n_columns;
    const uint32_t *arrows;
    size_t n_arrows;
    const struct arrow *sample[LEVELS];

    struct view_memory {
        void *data;
        size_t n, size; /* number of elements, and bytes of one */
    } parts[PARTS];

    /* the mapped file that holds the parts; otherwise each part has memory of its own */
    void *mapped;
    size_t mapped_len;
};

/* Returns log2 of the number of nodes that a mark of a level covers. */
static inline unsigned view_shift(int level)
{
    return FIRST_SHIFT + FAN_SHIFT * (unsigned)level;
}

static inline uint64_t view_time(uint64_t packed)
{
    return packed >> 8;
}

static inline enum tl_kind view_kind(uint64_t packed)
{
    return packed & 255;
}

/* Returns when the i-th of all states, one of this thread, ends. */
static inline uint64_t view_end(const struct timeline_view *v, uint32_t thread, uint64_t i)
{
    uint64_t begin = view_time(v->states.at[i]);
    if (i + 1 < v->states.first[thread + 1])
        return view_time(v->states.at[i + 1]);
    return MAX(v->ends[thread], begin);
}

/* Stores the arrow that leads to a node. Returns false when no other thread woke the node. */
bool view_arrow_of(const struct timeline *t, uint32_t node, struct arrow *ret);
