/* SPDX-License-Identifier: Apache-2.0 */
/* Reading clocks. Its functions begin with clock_ or now_. */
#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_MS     UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)

/*
 * Returns the time of a clock (CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_THREAD_CPUTIME_ID ...) in
 * nanoseconds, or 0 if there is no such clock, as that of a thread that has ended. Safe in a signal
 * handler.
 */
static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) < 0)
        return 0;
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

/* Returns the time of a clock ns from now, for functions that wait until then. */
static inline struct timespec clock_after(clockid_t clock, uint64_t ns)
{
    uint64_t at = clock_ns(clock) + ns;
    return (struct timespec){.tv_sec = (time_t)(at / NS_PER_SECOND),
                             .tv_nsec = (long)(at % NS_PER_SECOND)};
}

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/*
 * Returns when a moment, as returned by now_ns, was, in ms since 1970 by the wall clock as it is
 * now.
 */
static inline uint64_t clock_wall_ms(uint64_t ns)
{
    return (clock_ns(CLOCK_REALTIME) - (now_ns() - ns)) / NS_PER_MS;
}
