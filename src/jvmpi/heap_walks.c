/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/heap_walks.h"
#include "base/clock.h"
#include "base/timed_wait.h"
#include "jvmpi/layer.h"

#include <time.h>

enum { LIMIT_S = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
TIMED_WAIT_STATIC(changed)
static int walks;
static const struct my *holder; /* the ending thread's `my`, or NULL */
static __thread int nested;

void heap_walk_begin(void)
{
    struct timespec until;
    my.quiet++;
    if (nested++)
        return;
    until = timed_wait_end(LIMIT_S * NS_PER_SECOND);
    pthread_mutex_lock(&mutex);
    while (holder && holder != &my && !pthread_cond_timedwait(&changed, &mutex, &until))
        ;
    walks++;
    pthread_mutex_unlock(&mutex);
}

void heap_walk_end(void)
{
    my.quiet--;
    if (--nested)
        return;
    pthread_mutex_lock(&mutex);
    walks--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void heap_walks_hold(void)
{
    pthread_mutex_lock(&mutex);
    holder = &my;
    while (walks)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

void heap_walks_release(void)
{
    pthread_mutex_lock(&mutex);
    holder = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}
