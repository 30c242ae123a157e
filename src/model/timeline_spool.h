/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events on their way from the order of a recording to the order of time: kept in buckets of equal
 * spans, each of them sorted when its turn comes. Who adds may say that what comes will not lie
 * before a time: then what lies there is given to who takes it, a thread of its own, while events
 * are added, and never much of it lies here.
 */
#pragma once

#include "base/vec.h"
#include "model/timeline_builder.h"

#include <pthread.h>

struct spool_bucket {
    struct spool_block *first, *last;
};

struct spool_sorted {
    VEC(struct tl_event) events;
    int error;
};

struct tl_spool {
    uint64_t from, span; /* ns: of bucket 0, of each */
    VEC(struct spool_bucket) buckets;
    VEC(struct spool_slab *) slabs; /* memory of blocks */
    size_t in_last;                 /* blocks of the last slab that were given out */
    struct spool_block *free;       /* blocks to be used again */
    size_t at;                      /* the bucket whose turn it is */
    size_t ready;                   /* buckets to which nothing will be added */

    /*
     * Buckets in order, on their way to the caller: those of large spools are sorted by a thread
     * while others are used.
     */
    struct spool_sorted sorted[3];

    VEC(struct spool_block *) blocks; /* of the bucket that is being sorted */
    VEC(uint64_t) keys, room;

    size_t made, given; /* since the beginning; given - 1 is with the caller */
    bool threaded, stop;
    pthread_t thread;
    pthread_mutex_t lock; /* of all but the buckets from `ready` on, which are the adder's */
    pthread_cond_t changed;
};

/*
 * For about so many events between two times; others are taken too. Zeroed is empty, but must be
 * initialised before add.
 */
int tl_spool_init(struct tl_spool *s, uint64_t from, uint64_t to, size_t events) must_check;
void tl_spool_release(struct tl_spool *s);
/*
 * An event with that time, to be filled before anything else is done with the spool. NULL: no
 * memory.
 */
struct tl_event *tl_spool_add(struct tl_spool *s, uint64_t time) must_check;
/*
 * No event will be added that lies before that time. Waits when much lies here that can be taken.
 */
void tl_spool_until(struct tl_spool *s, uint64_t time);
/* No event will be added at all. */
void tl_spool_close(struct tl_spool *s);
/* Nobody will take what is left: nobody waits for that. */
void tl_spool_stop(struct tl_spool *s);
/*
 * The next events in order of time, equal times in the order of add. 1, 0 at the end, or -ENOMEM;
 * they live until the next. Without a thread that adds meanwhile the spool must be closed.
 */
int tl_spool_next(struct tl_spool *s, struct tl_event **ret, size_t *ret_n) must_check;
