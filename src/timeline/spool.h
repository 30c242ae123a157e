/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reorders events from the order of a recording into chronological order. Events are kept in
 * buckets of equal time spans, each of which is sorted when its turn comes. The thread that adds
 * events may state that later events will not lie before a given time; earlier events are then
 * passed to a consuming thread while others are still being added, so that few events are stored at
 * any time.
 */
#pragma once

#include "base/vec.h"
#include "timeline/builder.h"

#include <pthread.h>

struct spool_bucket {
    struct spool_block *first, *last;
};

struct spool_sorted {
    VEC(struct tl_event) events;
    int error;
};

struct tl_spool {
    uint64_t from, span; /* ns: the start of bucket 0, and the span of each */
    VEC(struct spool_bucket) buckets;
    /* the bucket of the event that was added last, and where it starts */
    size_t recent;
    uint64_t recent_from;
    VEC(struct spool_slab *) slabs; /* memory of the blocks */
    size_t in_last;                 /* blocks of the last slab that are in use */
    struct spool_block *free;       /* blocks for reuse */
    size_t at;                      /* the bucket whose turn it is */
    size_t ready;                   /* number of buckets to which nothing will be added */

    /*
     * Sorted buckets on their way to the caller. In large spools a thread sorts them while the
     * caller uses others.
     */
    struct spool_sorted sorted[3];

    VEC(struct spool_block *) blocks; /* of the bucket that is being sorted */
    VEC(uint64_t) keys, room;

    /* how many sorted buckets were made and passed to the caller, who is using number given - 1 */
    size_t made, given;
    bool threaded, stop;
    pthread_t thread;
    /* protects everything but `recent` and the buckets from `ready` on: these are the adder's */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/*
 * Prepares for about `events` events between two times; events outside are accepted too. A zeroed
 * spool is empty, but must be initialised before anything is added. Returns 0 or -ENOMEM.
 */
int tl_spool_init(struct tl_spool *s, uint64_t from, uint64_t to, size_t events) must_check;
void tl_spool_release(struct tl_spool *s);
/*
 * Adds an event and returns it. The caller fills it in, including its time, before it calls the
 * spool again. Returns NULL when out of memory.
 */
struct tl_event *tl_spool_add(struct tl_spool *s, uint64_t time) must_check;
/*
 * States that no event before this time will be added. Waits while many events are ready to be
 * taken.
 */
void tl_spool_until(struct tl_spool *s, uint64_t time);
/* States that no more events will be added. */
void tl_spool_close(struct tl_spool *s);
/*
 * States that the remaining events will not be taken, so that the adding thread does not wait for
 * that.
 */
void tl_spool_stop(struct tl_spool *s);
/*
 * Stores the next events in chronological order; events at the same time in the order in which they
 * were added. Returns 1, 0 at the end, or -ENOMEM; the events are valid until the next call. Unless
 * another thread is adding events, the spool must be closed.
 */
int tl_spool_next(struct tl_spool *s, struct tl_event **ret, size_t *ret_n) must_check;
