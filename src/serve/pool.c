/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct pool_job *first, **end; /* in the order of their arrival */
    uint64_t done;
    bool stops;
    pool_run run;
    void *context;
    unsigned n_threads;
    pthread_t threads[];
};

static void append(struct pool *p, struct pool_job *job)
{
    job->next = NULL;
    *p->end = job;
    p->end = &job->next;
}

/* Removes the first job that is due from the queue; NULL when there is none. */
static struct pool_job *take(struct pool *p)
{
    for (struct pool_job **at = &p->first; *at; at = &(*at)->next) {
        struct pool_job *job = *at;
        if (job->after > p->done)
            continue;
        *at = job->next;
        if (!*at)
            p->end = at;
        return job;
    }
    return NULL;
}

static void *work(void *arg)
{
    struct pool *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stops) {
        struct pool_job *job = take(p);
        if (!job) {
            pthread_cond_wait(&p->wake, &p->lock);
            continue;
        }
        uint64_t done = p->done;
        pthread_mutex_unlock(&p->lock);
        bool is_done = p->run(p->context, job);
        pthread_mutex_lock(&p->lock);
        if (is_done) {
            p->done++;
            pthread_cond_broadcast(&p->wake);
        } else {
            /*
             * What the job waits for may have finished meanwhile, so the count was taken before the
             * job was tried.
             */
            job->after = done + 1;
            append(p, job);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int pool_start(struct pool **ret, unsigned threads, pool_run run, void *context)
{
    struct pool *p = calloc(1, sizeof(*p) + threads * sizeof(p->threads[0]));
    if (!p)
        return -ENOMEM;
    *p = (struct pool){.run = run, .context = context, .end = &p->first};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    int r = 0;
    while (r == 0 && p->n_threads < threads) {
        r = -pthread_create(&p->threads[p->n_threads], NULL, work, p);
        p->n_threads += r == 0;
    }
    if (r < 0) {
        (void)!pool_stop(p);
        pool_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

bool pool_add(struct pool *p, struct pool_job *job)
{
    pthread_mutex_lock(&p->lock);
    bool is_taken = !p->stops;
    if (is_taken) {
        job->after = 0;
        append(p, job);
        pthread_cond_signal(&p->wake);
    }
    pthread_mutex_unlock(&p->lock);
    return is_taken;
}

struct pool_job *pool_stop(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stops = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    return p->first;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
