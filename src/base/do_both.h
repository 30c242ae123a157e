/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/*
 * Calls work(one) and work(other). If `large` is true and a thread can be created, they run at the
 * same time.
 */
static inline void do_both(void *(*work)(void *), void *one, void *other, bool large)
{
    pthread_t thread;
    bool started = large && pthread_create(&thread, NULL, work, one) == 0;
    work(other);
    if (started)
        (void)pthread_join(thread, NULL);
    else
        work(one);
}
