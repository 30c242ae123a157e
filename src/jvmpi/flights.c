/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/flights.h"

#include "base/clock.h"
#include "base/timed_wait.h"
#include "jvmpi/thread_table.h"

#include <time.h>

/*
 * No other lock is taken under this mutex. The limit is for agents whose handlers need what a
 * waiting thread of the program holds (a Java lock): the program continues, and the agent may have
 * to request an id.
 */
enum { LIMIT_S = 10 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
TIMED_WAIT_STATIC(changed)
static struct flight *all;
static atomic_int n_all;
static int n_waiting;

bool flights_any(void)
{
    return atomic_load(&n_all) > 0;
}

static struct flight *find(uintptr_t key, bool own)
{
    struct flight *f = all;
    while (f && (f->key != key || (f->thread == &my.asked) != own))
        f = f->next;
    return f;
}

static void add(struct flight *f, uintptr_t key)
{
    *f = (struct flight){key, &my.asked, my_entry, false, all};
    all = f;
    atomic_fetch_add(&n_all, 1);
}

bool flight_may_wait(void)
{
    return !my.notifying && !my.asked && !my.raw_held;
}

/* Requires the mutex. */
static void wait(uintptr_t key)
{
    struct timespec until;
    if (!flight_may_wait() || !find(key, false))
        return;
    until = timed_wait_end(LIMIT_S * NS_PER_SECOND);
    n_waiting++;
    if (my_entry)
        atomic_store(&my_entry->awaits, key);
    while (find(key, false) && !pthread_cond_timedwait(&changed, &mutex, &until))
        ;
    if (my_entry)
        atomic_store(&my_entry->awaits, 0);
    n_waiting--;
}

bool flight_begin(struct flight *f, uintptr_t key, atomic_bool *reported)
{
    bool mine = false;
    if (!atomic_load(reported) || flights_any()) {
        pthread_mutex_lock(&mutex);
        mine = !atomic_load(reported);
        if (mine) {
            add(f, key); /* before `reported` is set, because others read it without the mutex */
            atomic_store(reported, true);
        } else {
            wait(key);
        }
        pthread_mutex_unlock(&mutex);
    }
    return mine;
}

void flight_enter(struct flight *f, uintptr_t key)
{
    pthread_mutex_lock(&mutex);
    add(f, key);
    pthread_mutex_unlock(&mutex);
}

void flight_leave(struct flight *f)
{
    pthread_mutex_lock(&mutex);
    struct flight **place = &all;
    while (*place != f)
        place = &(*place)->next;
    *place = f->next;
    atomic_fetch_sub(&n_all, 1);
    if (n_waiting)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    f->key = 0;
}

void flight_wait(uintptr_t key)
{
    if (!flights_any())
        return;
    pthread_mutex_lock(&mutex);
    wait(key);
    pthread_mutex_unlock(&mutex);
}

struct thread_entry *flight_thread(uintptr_t key)
{
    pthread_mutex_lock(&mutex);
    const struct flight *f = all;
    while (f && f->key != key)
        f = f->next;
    struct thread_entry *t = f ? f->of : NULL;
    pthread_mutex_unlock(&mutex);
    return t;
}

bool flight_elsewhere(uintptr_t key)
{
    pthread_mutex_lock(&mutex);
    bool is = find(key, false);
    pthread_mutex_unlock(&mutex);
    return is;
}

void flight_requested(uintptr_t key, atomic_bool *reported)
{
    pthread_mutex_lock(&mutex);
    struct flight *own = find(key, true);
    if (own)
        own->requested = true;
    atomic_store(reported, true);
    pthread_mutex_unlock(&mutex);
}
