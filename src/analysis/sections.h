/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a thread's time lies inside the sections of some locks, for callers that ask in
 * chronological order for each thread. The holds of all locks are stored together, in about 8 bytes
 * each (in the timeline's index when it has one), and are read once. They are stored in chunks of
 * up to 128 holds of one thread (hold_block.h), each hold with its length, its object and how
 * uncertain it is: by how much it may have lasted longer, or how much of its beginning is not
 * proven, in parts of its length.
 */
#pragma once

#include "analysis/hold_block.h"
#include "analysis/holds.h"

/* The holds of a timeline in a short form: the timeline's own, or collected here. */
struct hold_list {
    const uint8_t *bytes;
    /* per thread: where its holds begin; after the last thread: where they end */
    const uint64_t *first;
    bool own;
};

/*
 * Takes the holds of all locks from the timeline if it has them, and otherwise collects those that
 * `want` selects. Returns 0 or an error of holds_collect.
 */
int hold_list_init(struct hold_list *ret, const struct timeline *t, holds_want *want,
                   void *arg) must_check;
void hold_list_release(struct hold_list *l);
/*
 * Stores the holds of all locks, h, with the timeline if it has an index without them. h NULL:
 * collects them first. Returns 0 or a negative errno.
 */
int hold_list_keep(struct timeline *t, const struct holds *h) must_check;

/*
 * Which end to assume for holds whose end is inferred: the likely one, the earliest (at once), or
 * the latest possible one. With the earliest, what is not proven at the start of a hold whose end
 * was observed is left out too.
 */
enum hold_ends { HOLD_ENDS_LIKELY, HOLD_ENDS_AT_ONCE, HOLD_ENDS_LATE, HOLD_ENDS };

/*
 * Computes by how many ns the time inside the sections of the wanted locks can be below, and above,
 * the likely time, because ends are inferred. wanted: per object. The results saturate.
 */
void hold_list_unsure(const struct hold_list *l, const struct timeline *t, const uint8_t *wanted,
                      uint64_t *ret_less, uint64_t *ret_more);

struct section_span {
    uint64_t start, end[HOLD_ENDS];
    uint64_t uncertain; /* the part at its start that HOLD_ENDS_AT_ONCE leaves out, in ns */
};

struct section_lane {
    struct cursor later; /* the chunks after this one */
    struct hold_bits chunk;
    uint32_t at; /* the hold of the chunk after the next one */

    /* the first hold that has not been reached; start UINT64_MAX: there is none */
    struct section_hold {
        uint64_t start, length, object, most, uncertain;
    } next;

    VEC(struct section_span) open;
};

struct sections {
    const struct timeline *t;
    const struct hold_list *list;
    const uint8_t *wanted;      /* per object */
    struct section_lane *lanes; /* per thread */
    bool failed;                /* out of memory; results from now on are too small */
};

/*
 * Prepares for questions about the sections of the wanted locks (per object). l and `wanted` must
 * outlive *ret. Returns 0 or -ENOMEM.
 */
int sections_init(struct sections *ret, const struct timeline *t, const struct hold_list *l,
                  const uint8_t *wanted) must_check;
void sections_release(struct sections *s);
/*
 * Return how many ns of [start, end) lie inside; sections_inside_all stores that for each end that
 * may be assumed. Neither start nor end may lie before those of the thread's previous question.
 */
uint64_t sections_inside(struct sections *s, uint32_t thread, uint64_t start, uint64_t end,
                         enum hold_ends ends);
void sections_inside_all(struct sections *s, uint32_t thread, uint64_t start, uint64_t end,
                         uint64_t ret[HOLD_ENDS]);
/*
 * Passes the parts of [start, end) that lie inside to a function, the last one first. The same
 * order of questions is required.
 */
void sections_parts(struct sections *s, uint32_t thread, uint64_t start, uint64_t end,
                    enum hold_ends ends, void (*take)(void *arg, uint64_t from, uint64_t to),
                    void *arg);
