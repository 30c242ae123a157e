/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/load_queue.h"

#include <errno.h>
#include <stdlib.h>

static int add_batch(const struct queued_sample *batch, size_t n)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = sums_add(batch[i].to, &batch[i].sample, &batch[i].thread, &batch[i].spread);
    return r;
}

static void *add_handed(void *arg)
{
    struct load_queue *q = arg;
    pthread_mutex_lock(&q->lock);
    while (!q->ended || q->n_handed) {
        if (!q->n_handed) {
            pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        int error = q->error;
        pthread_mutex_unlock(&q->lock);
        if (error == 0)
            error = add_batch(q->handed, q->n_handed);
        pthread_mutex_lock(&q->lock);
        q->error = error;
        q->n_handed = 0;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static int begin(struct load_queue *q)
{
    q->filling = malloc(QUEUE_BATCH * sizeof(*q->filling));
    return q->filling ? 0 : -ENOMEM;
}

/* Starts the thread, without which the batches are added by the caller. */
static void start(struct load_queue *q)
{
    q->handed = malloc(QUEUE_BATCH * sizeof(*q->handed));
    if (!q->handed)
        return;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    q->threaded = pthread_create(&q->thread, NULL, add_handed, q) == 0;
    if (!q->threaded) {
        pthread_cond_destroy(&q->changed);
        pthread_mutex_destroy(&q->lock);
    }
}

static int hand_over(struct load_queue *q)
{
    size_t n = q->n;
    q->n = 0;
    if (!q->handed)
        start(q);
    if (!q->threaded)
        return add_batch(q->filling, n);
    pthread_mutex_lock(&q->lock);
    while (q->n_handed)
        pthread_cond_wait(&q->changed, &q->lock);
    struct queued_sample *empty = q->handed;
    q->handed = q->filling;
    q->n_handed = n;
    q->filling = empty;
    int error = q->error;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return error;
}

int load_queue_add(struct load_queue *q, struct sums *to, const struct profile_sample *sample,
                   const struct sum_thread *t, const struct profile_spread *spread)
{
    int r = q->filling ? 0 : begin(q);
    if (r < 0)
        return r;
    q->filling[q->n++] = (struct queued_sample){to, *sample, *t, *spread};
    return q->n == QUEUE_BATCH ? hand_over(q) : 0;
}

int load_queue_end(struct load_queue *q)
{
    if (q->threaded) {
        pthread_mutex_lock(&q->lock);
        q->ended = true;
        pthread_cond_broadcast(&q->changed);
        pthread_mutex_unlock(&q->lock);
        pthread_join(q->thread, NULL);
        pthread_cond_destroy(&q->changed);
        pthread_mutex_destroy(&q->lock);
    }
    int r = q->error;
    if (r == 0)
        r = add_batch(q->filling, q->n);
    free(q->filling);
    free(q->handed);
    *q = (struct load_queue){0};
    return r;
}
