/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples on their way to their sums. When there are many, a thread of its own merges them while
 * the caller reads on. Samples reach the sums in the order in which they were added.
 */
#pragma once

#include "profile/load_sums.h"

#include <pthread.h>

struct queued_sample {
    struct sums *to;
    struct profile_sample sample;
    struct sum_thread thread;
    struct profile_spread spread;
};

enum { QUEUE_BATCH = 4096 };

struct load_queue {
    struct queued_sample *filling, *handed; /* QUEUE_BATCH elements each; NULL at first */
    size_t n, n_handed;                     /* n_handed: 0 when the thread has nothing to do */
    bool threaded, ended;
    int error; /* the first one of the thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/*
 * Adds a sample to the sums `to`, as sums_add does, now or later. Returns 0 or a negative errno,
 * which may be that of a sample that was added earlier. The sums belong to the queue from the first
 * call on until load_queue_end.
 */
int load_queue_add(struct load_queue *q, struct sums *to, const struct profile_sample *sample,
                   const struct sum_thread *t, const struct profile_spread *spread) must_check;
/*
 * Waits until all samples have been added to their sums, and frees the queue, which is then empty:
 * a second call does nothing. Returns 0 or a negative errno.
 */
int load_queue_end(struct load_queue *q);
