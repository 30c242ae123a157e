/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/patience.h"

#include "base/clock.h"

#include <time.h>

static __thread const pthread_mutex_t *refused; /* the last lock that was not acquired */

bool patience_lock(pthread_mutex_t *lock)
{
    enum { STEP_NS = 100 * 1000 };

    uint64_t until = 0;
    while (pthread_mutex_trylock(lock) != 0) {
        uint64_t now = now_ns();
        if (!until)
            until = refused == lock ? now : now + PATIENCE_NS;
        if (now >= until) {
            refused = lock;
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    }
    if (refused == lock)
        refused = NULL;
    return true;
}

/*
 * Waits in the kernel. On a busy machine, repeated attempts could fail for a long time, and the
 * caller cannot make up later for what it gives up.
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
