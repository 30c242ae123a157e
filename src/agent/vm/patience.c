/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/patience.h"

#include "base/clock.h"

#include <time.h>

static __thread const pthread_mutex_t *refused; /* the last lock that was not acquired */

/*
 * Each attempt counts for at most most_ns: on a busy machine the holder of the lock, and this
 * thread as well, may wait longer than PATIENCE_NS for a processor.
 */
bool patience_lock(pthread_mutex_t *lock)
{
    const uint64_t step_ns = 100 * 1000, most_ns = 5 * NS_PER_MS, longest_ns = 4 * PATIENCE_NS;
    uint64_t began = 0, last = 0, waited_ns = 0;
    while (pthread_mutex_trylock(lock) != 0) {
        uint64_t now = now_ns();
        began = began ?: now;
        waited_ns += last ? MIN(now - last, most_ns) : 0;
        last = now;
        if (refused == lock || waited_ns >= PATIENCE_NS || now - began >= longest_ns) {
            refused = lock;
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)step_ns}, NULL);
    }
    if (refused == lock)
        refused = NULL;
    return true;
}

/*
 * Waits in the kernel, because on a busy machine repeated attempts could fail for a long time, and
 * the caller loses data for good if it gives up.
 */
bool patience_reachable(pthread_mutex_t *lock)
{
    int r = pthread_mutex_trylock(lock);
    if (r != 0 && refused != lock) {
        const struct timespec until = clock_after(CLOCK_REALTIME, 2 * NS_PER_SECOND);
        r = pthread_mutex_timedlock(lock, &until);
    }
    if (r == 0)
        pthread_mutex_unlock(lock);
    if (r != 0)
        refused = lock;
    else if (refused == lock)
        refused = NULL;
    return r == 0;
}
