/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/patience.h"

#include <time.h>

bool patience_lock(pthread_mutex_t *lock)
{
    enum { STEP_NS = 100 * 1000 };

    static __thread const pthread_mutex_t *refused; /* the last lock that was not acquired */
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
