/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who held which lock when: exact where acquisition and release were recorded, otherwise inferred
 * from contention. A contended event shows the end of a section for which another thread waited,
 * and the beginning of a section whose thread had to wait.
 */
#pragma once

#include "base/arena.h"
#include "base/macro.h"
#include "base/map.h"
#include "base/vec.h"
#include "timeline/prefault.h"
#include "timeline/timeline.h"

#define HOLD_START_INFERRED                                               \
    1 /* seen as held when another thread began to wait; it began earlier \
       */
/*
 * No thread waited for the release, so the end is inferred: it is when the thread was last seen in
 * the method that took the lock, or the start plus the median length of holds of this kind. The
 * true end may be as early as the start and as late as hold_latest().
 */
#define HOLD_END_INFERRED 2
#define HOLD_INFERRED     (HOLD_START_INFERRED | HOLD_END_INFERRED)
#define HOLD_EXACT        4 /* acquisition and release were recorded */
#define HOLD_WOKEN        8 /* another thread decided when the node of the acquisition happened */

/* Who held what, in 16 bytes. */
struct tl_hold {
    uint64_t start : 48;      /* ns since the timeline's origin */
    uint64_t object_low : 16; /* index of objects */
    uint64_t end : 48;
    uint64_t object_high : 11;
    uint64_t flags : 5; /* HOLD_ */
};

static inline uint32_t tl_hold_object(const struct tl_hold *h)
{
    return (uint32_t)h->object_high << 16 | (uint32_t)h->object_low;
}

/* What else is known about a hold. */
struct hold_side {
    uint32_t stack; /* stack of the acquisition, or TL_NONE */
    /*
     * time between the beginning of the wake-up that led to the hold and its start; UINT32_MAX:
     * this long or longer
     */
    uint32_t wake_ns;
    /*
     * the most by which an inferred end can follow the start; for other ends, the part at the start
     * of the hold for which no waiter proves it: the thread may have released the lock and acquired
     * it again there. UINT32_MAX: this or longer
     */
    uint32_t unsure_us;
};

/* Additional fields for a simulation of the threads. */
struct hold_link {
    /*
     * the node of the acquisition; for an inferred beginning, the node of the other thread that saw
     * the lock held
     */
    uint32_t acquire;
    uint32_t release; /* node that ended the hold, or TL_NONE */
};

/*
 * The holds of each thread, in order of their start, in chunks. There are as many holds as
 * contended events, so those of large recordings would take gigabytes: a chunk is packed
 * (hold_block.h) as soon as nothing in it can change any more.
 */
enum { HOLD_CHUNK_BITS = 7, HOLD_CHUNK = 1 << HOLD_CHUNK_BITS };

struct holds {
    const struct timeline *t;
    uint32_t *of_object; /* per object: the number of its holds */
    /* per thread: the number of holds of all threads before it; n_threads + 1 elements */
    size_t *first;
    size_t *chunk_first; /* per thread: its first chunk in `chunks` or `packed` */
    /*
     * by thread and number (hold_number): the beginning of a wake-up that does not fit into wake_ns
     */
    struct map long_wakes;
    struct map medians;     /* of lengths, for ends that depend on them */
    const uint8_t **packed; /* the packed chunks; NULL with links */
    struct arena memory;    /* of these */

    /*
     * With links no chunk is packed, and a slot is an index into all chunks; otherwise slots are
     * used only while the holds are collected.
     */
    struct tl_hold *slots;
    struct hold_side *side;  /* per slot */
    struct hold_link *links; /* per slot; NULL: not requested */
    size_t n_slots;
    struct prefault slot_memory, side_memory, link_memory; /* the memory of the three arrays */
    uint32_t *chunks; /* per chunk: its number, by which its place in slots is found */
};

/* A hold that was read. */
struct hold_read {
    struct tl_hold hold;
    struct hold_side side;
};

/* A chunk that was read, in columns: the fields of tl_hold, and one of hold_side. */
struct hold_piece {
    size_t n;
    uint64_t start[HOLD_CHUNK], end[HOLD_CHUNK], object[HOLD_CHUNK], flags[HOLD_CHUNK];
    uint64_t side[HOLD_CHUNK];
};

enum hold_side_field { HOLD_WAKE_NS, HOLD_UNSURE_US };

static inline size_t hold_count(const struct holds *h, uint32_t thread)
{
    return h->first[thread + 1] - h->first[thread];
}

static inline uint64_t hold_number(uint32_t thread, size_t i)
{
    return (uint64_t)thread << 32 | i;
}

/* Reads the i-th hold of a thread. The ends that were not observed have been inferred. */
struct hold_read hold_of(const struct holds *h, uint32_t thread, size_t i);
/*
 * Reads a chunk of a thread, given its number within the thread. side: the field of hold_side to be
 * read into ret->side.
 */
void holds_read(const struct holds *h, uint32_t thread, size_t chunk, enum hold_side_field side,
                struct hold_piece *ret);

/* Returns the slot of the i-th hold of a thread, with links. */
static inline size_t hold_slot(const struct holds *h, uint32_t thread, size_t i)
{
    size_t chunk = h->chunks[h->chunk_first[thread] + (i >> HOLD_CHUNK_BITS)];
    return chunk << HOLD_CHUNK_BITS | (i & (HOLD_CHUNK - 1));
}

/* Returns the latest time at which a hold may have ended that has HOLD_END_INFERRED. */
static inline uint64_t hold_latest(uint64_t start, uint64_t end, uint64_t unsure_us)
{
    return MAX(end, start + unsure_us * 1000);
}

/* Selects the locks that count; NULL selects all. */
typedef bool holds_want(const struct timeline *t, uint32_t object, void *arg);

/*
 * Finds the holds of the locks that `want` selects. The caller releases *ret. Returns 0, -ENOMEM,
 * or -E2BIG when the timeline has too many objects.
 */
int holds_collect(const struct timeline *t, holds_want *want, void *arg,
                  struct holds *ret) must_check;
/* Collects holds like holds_collect, with links. */
int holds_collect_linked(const struct timeline *t, holds_want *want, void *arg,
                         struct holds *ret) must_check;
void holds_release(struct holds *h);
