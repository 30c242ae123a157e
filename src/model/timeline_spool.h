/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events on their way from the order of a recording to the order of time: kept in buckets of equal spans, each of them sorted
 * when its turn comes. What has been given back is no longer in memory.
 */
#pragma once

#include "base/vec.h"
#include "model/timeline_builder.h"

#include <pthread.h>

struct spool_bucket {
    uint32_t first, last; /* blocks + 1; 0: none */
    uint32_t in_last;     /* events in the last block */
};

struct tl_spool {
    uint64_t from, span; /* ns: of bucket 0, of each */
    VEC(struct spool_bucket) buckets;
    VEC(struct spool_slab *) slabs; /* memory of blocks */
    VEC(uint32_t) next;             /* per block: the next one of its bucket + 1 */
    size_t at;                      /* the bucket whose turn it is */

    /* Buckets in order, on their way to the caller: those of large spools are sorted by a thread while others are used. */
    struct {
        VEC(struct tl_event) events;
        int error;
    } sorted[3];

    size_t made, given; /* since the beginning; given - 1 is with the caller */
    bool threaded, stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* For about so many events between two times; others are taken too. Zeroed is empty, but must be initialised before add. */
int tl_spool_init(struct tl_spool *s, uint64_t from, uint64_t to, size_t events) must_check;
void tl_spool_release(struct tl_spool *s);
/* A zeroed event with that time, to be filled; it stays where it is until the first is given back. NULL: no memory. */
struct tl_event *tl_spool_add(struct tl_spool *s, uint64_t time) must_check;
/* The next events in order of time, equal times in the order of add. 1, 0 at the end, or -ENOMEM; they live until the next. */
int tl_spool_next(struct tl_spool *s, struct tl_event **ret, size_t *ret_n) must_check;
