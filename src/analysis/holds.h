/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who held which lock when: exact where acquire and release were recorded, else concluded from
 * contended events, which tell the end of a section that somebody waited for and the beginning of
 * one that had to wait.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "model/ahead.h"
#include "model/timeline.h"

#define HOLD_START_INFERRED 1 /* held when another thread came to wait; began before */
/* nobody waited for the end: the median length of the section, or less */
#define HOLD_END_INFERRED 2
#define HOLD_INFERRED     (HOLD_START_INFERRED | HOLD_END_INFERRED)
#define HOLD_EXACT        4 /* recorded as a hold */
#define HOLD_WOKEN        8 /* another thread decided when the node of the acquisition came */

/*
 * What is known of a hold besides, until that is released: of a large recording there are a hundred
 * million.
 */
struct hold_side {
    uint32_t stack; /* of the acquisition, or TL_NONE */
    /* how long before its start the wake-up began that led to it; UINT32_MAX: so much or more */
    uint32_t wake_ns;
    /*
     * No part of this hold: of all, the slot of the one that is as many as this slot's number
     * behind the first.
     */
    uint32_t opened;
};

/* What a simulation of the threads asks for. */
struct hold_link {
    /*
     * node: the acquisition; for a beginning that is inferred the other thread's, which saw it held
     */
    uint32_t acquire;
    uint32_t release; /* node that ended it, or TL_NONE */
};

/*
 * Each thread's holds lie in chunks of their own, in order of start; a slot is a place in any of
 * them.
 */
enum { HOLD_CHUNK_BITS = 7, HOLD_CHUNK = 1 << HOLD_CHUNK_BITS };

struct holds {
    struct tl_hold *slots;
    struct hold_side *side;  /* per slot */
    struct hold_link *links; /* per slot; NULL: nobody asked for them */
    size_t n_slots;
    struct ahead slot_memory, side_memory, link_memory; /* of these */
    /* by slot: when a wake-up began that wake_ns cannot tell */
    struct map long_wakes;
    uint32_t *of_object; /* per object: how many */
    /* per thread: how many holds the threads before it have; n_threads + 1 of them */
    size_t *first;
    size_t *chunk_first; /* per thread: its first one in chunks */
    uint32_t *chunks;    /* per chunk: its number in slots */
};

/* Of the i-th hold of a thread. */
static inline size_t hold_slot(const struct holds *h, uint32_t thread, size_t i)
{
    size_t chunk = h->chunks[h->chunk_first[thread] + (i >> HOLD_CHUNK_BITS)];
    return chunk << HOLD_CHUNK_BITS | (i & (HOLD_CHUNK - 1));
}

static inline struct tl_hold *hold_of(const struct holds *h, uint32_t thread, size_t i)
{
    return &h->slots[hold_slot(h, thread, i)];
}

static inline size_t hold_count(const struct holds *h, uint32_t thread)
{
    return h->first[thread + 1] - h->first[thread];
}

/* Which locks count. NULL for all. */
typedef bool holds_want(const struct timeline *t, uint32_t object, void *arg);

int holds_collect(const struct timeline *t, holds_want *want, void *arg,
                  struct holds *ret) must_check;
/* The same with links. */
int holds_collect_linked(const struct timeline *t, holds_want *want, void *arg,
                         struct holds *ret) must_check;
/*
 * Only what lies in the slots is asked for from now on: the memory of the rest is free for others.
 */
void holds_shorten(struct holds *h);
void holds_release(struct holds *h);
