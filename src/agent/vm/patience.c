/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/patience.h"

#include <time.h>

static __thread struct {
    uint64_t until_ns; /* 0: the section has not waited yet */
    bool within, lost; /* lost: also of the last section, until the next one begins */
    bool lost_before;
} mine;

void patience_begin(void)
{
    mine.lost_before = mine.lost;
    mine.lost = false;
    mine.within = true;
    mine.until_ns = 0;
}

bool patience_end(void)
{
    mine.within = false;
    return !mine.lost;
}

bool patience_lost(void)
{
    return mine.within && mine.lost;
}

bool patience_lock(pthread_mutex_t *lock)
{
    enum { STEP_NS = 100 * 1000 };

    if (!mine.within)
        return pthread_mutex_lock(lock) == 0;
    while (pthread_mutex_trylock(lock) != 0) {
        uint64_t now = now_ns();
        if (!mine.until_ns)
            mine.until_ns = mine.lost_before ? now : now + PATIENCE_NS;
        if (mine.lost || now >= mine.until_ns) {
            mine.lost = true;
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    }
    return true;
}
