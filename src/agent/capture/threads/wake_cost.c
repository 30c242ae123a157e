/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long a thread takes to wake another one that sleeps in the kernel, using the method
 * of the VM. This is part of the time of an unlock for which another thread waits. what-if must
 * know it in order to simulate an unlock for which no thread waits.
 */

#include "agent/capture/threads/wake_cost.h"

#include "base/clock.h"
#include "base/order.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15, ASLEEP_NS = 100000 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* woken: rounds that have been started; waits: the round for which the other thread waits */
    int woken, waits;
} pair = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static void *sleeper(void *arg)
{
    pthread_mutex_lock(&pair.lock);
    while (pair.woken < ROUNDS) {
        pair.waits = pair.woken + 1;
        pthread_cond_wait(&pair.wake, &pair.lock);
    }
    pthread_mutex_unlock(&pair.lock);
    return NULL;
}

/*
 * Waits until the other thread waits for the next round. It usually does so soon after the last
 * one, and has fallen asleep by then.
 */
static void let_sleep(int round)
{
    for (bool waits = false; !waits;) {
        nanosleep(&(struct timespec){.tv_nsec = ASLEEP_NS}, NULL);
        pthread_mutex_lock(&pair.lock);
        waits = pair.waits > round;
        pthread_mutex_unlock(&pair.lock);
    }
}

uint64_t wake_cost(void)
{
    uint64_t took[ROUNDS];
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pair.woken = pair.waits = 0;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&thread, NULL, sleeper, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0)
        return 0;
    for (int i = 0; i < ROUNDS; i++) {
        let_sleep(i);
        uint64_t since = now_ns();
        pthread_mutex_lock(&pair.lock);
        pair.woken++;
        pthread_mutex_unlock(&pair.lock);
        pthread_cond_signal(&pair.wake);
        took[i] = now_ns() - since;
    }
    (void)pthread_join(thread, NULL);
    qsort(took, ROUNDS, sizeof(*took), order_ascending);
    return took[ROUNDS / 2];
}
