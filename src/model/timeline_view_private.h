/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a view lies in memory and in its file: timeline_view_make.c makes it, timeline_view.c draws
 * from it.
 */
#pragma once

#include "model/timeline_view.h"

enum {
    STATES = TL_TIMEOUT,
    LEVELS = 5,      /* of marks: one of 16, 128, 1024 ... */
    FIRST_SHIFT = 4, /* what the finest stands for */
    FAN_SHIFT = 3,   /* how many of a level one of the next stands for */
};

/*
 * Nodes by thread: time << 8 | kind and the node's number, in order of time. A mark stands for so
 * many of them: the time of the first, and behind it for states the time spent in each column
 * before it, from the beginning of all lanes.
 */
struct lanes {
    const uint64_t *first; /* by thread, and one more */
    const uint64_t *at;
    const uint32_t *node;
    const uint64_t *mark[LEVELS];
    size_t stride; /* numbers of a mark */
};

/* A wake-up by another thread. */
struct arrow {
    uint64_t time, since; /* since: its cause */
    uint32_t node, waker, thread, from;
    uint32_t edge; /* and 16 if inferred */
    uint32_t spare;
};

/* What is in the file, behind its header; each on a multiple of 8. */
enum view_part {
    PART_ENDS, /* by thread, when its last state ends */
    PART_STATE_FIRST,
    PART_STATE_AT,
    PART_STATE_NODE,
    PART_STATE_MARKS,
    PART_INSTANT_FIRST = PART_STATE_MARKS + LEVELS,
    PART_INSTANT_AT,
    PART_INSTANT_NODE,
    PART_INSTANT_MARKS,
    PART_ARROWS = PART_INSTANT_MARKS + LEVELS, /* nodes that were woken, in order of time */
    PART_SAMPLES,                              /* one of 8 of them, of 64 ..., as struct arrow */
    PART_REST = PART_SAMPLES + LEVELS,         /* what the caller keeps with it */
    PARTS
};

struct timeline_view {
    /* from a file its nodes may be anything: what they say is checked where it is used */
    const struct timeline *t;
    struct lanes states, instants;
    const uint64_t *ends;
    uint8_t column[256];  /* of kinds that occur */
    uint8_t kind[STATES]; /* of columns */
    size_t n_columns;
    const uint32_t *arrows;
    size_t n_arrows;
    const struct arrow *sample[LEVELS];

    struct view_memory {
        void *data;
        size_t n, size; /* elements, and bytes of one */
    } parts[PARTS];

    void *mapped; /* the file that holds the parts; else each is its own memory */
    size_t mapped_len;
};

static inline unsigned shift_of(int level)
{
    return FIRST_SHIFT + FAN_SHIFT * (unsigned)level;
}

static inline uint64_t time_of(uint64_t packed)
{
    return packed >> 8;
}

static inline enum tl_kind kind_of(uint64_t packed)
{
    return packed & 255;
}

/* When the i-th state of a lane ends. */
static inline uint64_t end_of(const struct timeline_view *v, uint32_t thread, uint64_t i)
{
    uint64_t begin = time_of(v->states.at[i]);
    if (i + 1 < v->states.first[thread + 1])
        return time_of(v->states.at[i + 1]);
    return MAX(v->ends[thread], begin);
}

/* The arrow that leads to a node; false when the node is none that is woken by another thread. */
bool view_arrow_of(const struct timeline *t, uint32_t node, struct arrow *ret);
