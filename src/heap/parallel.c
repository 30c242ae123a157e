/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/dump.h"

#include <pthread.h>

enum { MAX_THREADS = 16 };

struct job {
    int (*work)(void *, unsigned, uint64_t);
    void *ctx;
    uint64_t n, next;
    int error;
};

struct worker {
    struct job *job;
    unsigned number;
    pthread_t thread;
};

static void *run(void *argument)
{
    struct worker *w = argument;
    struct job *j = w->job;
    while (!__atomic_load_n(&j->error, __ATOMIC_RELAXED)) {
        uint64_t i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
        if (i >= j->n)
            break;
        int error = j->work(j->ctx, w->number, i);
        if (error)
            __atomic_store_n(&j->error, error, __ATOMIC_RELAXED);
    }
    return NULL;
}

int heap_parallel(unsigned threads, uint64_t n, int (*work)(void *, unsigned, uint64_t), void *ctx)
{
    struct job job = {.work = work, .ctx = ctx, .n = n};
    struct worker workers[MAX_THREADS];
    unsigned started = 0;
    threads = MAX(1U, MIN(threads, (unsigned)MAX_THREADS));
    for (unsigned t = 0; t < threads; t++)
        workers[t] = (struct worker){.job = &job, .number = t};
    while (started + 1 < threads &&
           pthread_create(&workers[started + 1].thread, NULL, run, &workers[started + 1]) == 0)
        started++;
    run(&workers[0]);
    for (unsigned t = 1; t <= started; t++)
        pthread_join(workers[t].thread, NULL);
    return job.error;
}
