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
    atomic_int level; /* what calls may do; 0: nothing */
    bool hangs;       /* a call was still in progress when inside_close() gave up */

    struct {
        atomic_int n;
    } __attribute__((aligned(64))) calls[INSIDE_COUNTERS];
};

/* Returns the counter of the calling thread. */
static inline atomic_int *inside_here(struct inside *i)
{
    return &i->calls[((uint64_t)pthread_self() >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 58].n;
}

/* Ends a call. */
static inline void inside_leave(struct inside *i)
{
    atomic_fetch_sub(inside_here(i), 1);
}

/*
 * Begins a call. Returns false when the level is below `least`; otherwise the caller calls
 * inside_leave on the same thread.
 */
static inline bool inside_enter_at(struct inside *i, int least)
{
    atomic_fetch_add(inside_here(i), 1);
    if (likely(atomic_load(&i->level) >= least))
        return true;
    inside_leave(i);
    return false;
}

/* Like inside_enter_at, for calls that may run at any level but 0. */
static inline bool inside_enter(struct inside *i)
{
    return inside_enter_at(i, 1);
}

/* Allows calls from now on, at this level. */
static inline void inside_open(struct inside *i, int level)
{
    atomic_store(&i->level, level);
}

/*
 * Waits until each counter was 0 at some time, for at most max_ms in all. Returns whether all were:
 * calls that began before this function was called have then ended, and later ones find the level
 * 0.
 */
static inline bool inside_drain(struct inside *i, int max_ms)
{
    int ms = 0;
    for (int k = 0; k < INSIDE_COUNTERS; k++)
        for (; atomic_load(&i->calls[k].n) > 0; ms++) {
            if (ms == max_ms)
                return false;
            nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
        }
    return true;
}

/*
 * Prevents new calls and waits for those in progress, for at most INSIDE_MAX_MS. A call may hang
 * for longer, for instance while the VM has stopped its thread; inside_is_idle() then returns
 * false.
 */
static inline void inside_close(struct inside *i)
{
    if (atomic_exchange(&i->level, 0))
        i->hangs = !inside_drain(i, INSIDE_MAX_MS);
}

/*
 * Returns whether all calls have ended since inside_close(). Until they have, none of the memory
 * that they use may be released, nor may the capture begin again.
 */
static inline bool inside_is_idle(struct inside *i)
{
    enum { AGAIN_MS = 100 }; /* for calls that find the level 0 at this moment */

    if (i->hangs)
        i->hangs = !inside_drain(i, AGAIN_MS);
    return !i->hangs;
}
