/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions whose timed waits end by CLOCK_MONOTONIC. By the wall clock, which pthreads uses by
 * default, a wait of 20 ms lasts two hours longer when that clock is set back by two hours.
 */
#pragma once

#include "base/clock.h"

#include <pthread.h>

/* Initializes a condition for timed_wait. */
static inline void timed_wait_init(pthread_cond_t *c)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(c, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Defines a condition of a file, for timed_wait; it is initialized before main or the agent runs.
 */
#define TIMED_WAIT_STATIC(condition)                                      \
    static pthread_cond_t condition;                                      \
    __attribute__((constructor)) static void initialize_##condition(void) \
    {                                                                     \
        timed_wait_init(&(condition));                                    \
    }

/* Returns when a wait that begins now and lasts ns ends, for pthread_cond_timedwait. */
static inline struct timespec timed_wait_end(uint64_t ns)
{
    return clock_after(CLOCK_MONOTONIC, ns);
}

/*
 * Waits for a condition, for at most ns. Returns what pthread_cond_timedwait does: 0, or ETIMEDOUT.
 */
static inline int timed_wait(pthread_cond_t *c, pthread_mutex_t *m, uint64_t ns)
{
    struct timespec until = timed_wait_end(ns);
    return pthread_cond_timedwait(c, m, &until);
}
