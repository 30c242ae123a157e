/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a capture's native methods in progress, so that it can end without one of them still
 * using its memory. They are counted by thread, because a shared counter would move between the
 * processors' caches.
 */
#pragma once

#include "base/clock.h"
#include "base/macro.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { INSIDE_COUNTERS = 64, INSIDE_MAX_MS = 5000 };

struct inside {
    atomic_bool open;

    struct {
        atomic_int n;
    } __attribute__((aligned(64))) calls[INSIDE_COUNTERS];
};

static inline atomic_int *inside_here(struct inside *i)
{
    return &i->calls[((uint64_t)pthread_self() >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 58].n;
}

static inline void inside_leave(struct inside *i)
{
    atomic_fetch_sub(inside_here(i), 1);
}

/* False when the capture is off; otherwise the caller calls inside_leave on the same thread. */
static inline bool inside_enter(struct inside *i)
{
    atomic_fetch_add(inside_here(i), 1);
    if (likely(atomic_load(&i->open)))
        return true;
    inside_leave(i);
    return false;
}

static inline void inside_open(struct inside *i)
{
    atomic_store(&i->open, true);
}

/* Prevents new calls and waits until those in progress have ended. */
static inline void inside_close(struct inside *i)
{
    atomic_store(&i->open, false);
    for (int k = 0, ms = 0; k < INSIDE_COUNTERS; k++)
        for (; atomic_load(&i->calls[k].n) > 0 && ms < INSIDE_MAX_MS; ms++)
            nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
}
