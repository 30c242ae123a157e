/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* Does both parts of a work: one in a thread of its own when they are large and there is one to be had. */
static inline void do_both(void *(*work)(void *), void *one, void *other, bool large)
{
    pthread_t thread;
    bool beside = large && pthread_create(&thread, NULL, work, one) == 0;
    work(other);
    if (beside)
        (void)pthread_join(thread, NULL);
    else
        work(one);
}
