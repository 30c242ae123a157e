/* SPDX-License-Identifier: Apache-2.0 */
/* Locks whose holder may be stopped for ever. */
#include "agent/vm/patience.h"

#include "tests.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t step;

/* A thread that another tool has stopped while it has the lock. */
static void *hold(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void a_stopped_holder_is_waited_for_once(void **state)
{
    pthread_t holder;
    pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
    pthread_barrier_init(&step, NULL, 2);
    pthread_create(&holder, NULL, hold, NULL);
    pthread_barrier_wait(&step);

    uint64_t begin = now_ns();
    assert_false(patience_lock(&lock));
    assert_in_range(now_ns() - begin, PATIENCE_NS, 20 * PATIENCE_NS);

    /* Each of a million objects would otherwise wait as long. Another lock is not affected. */
    begin = now_ns();
    for (int i = 0; i < 1000; i++) {
        assert_false(patience_lock(&lock));
        assert_true(patience_lock(&other));
        pthread_mutex_unlock(&other);
    }
    assert_in_range(now_ns() - begin, 0, 20 * PATIENCE_NS);

    /* Once the holder continues, nothing is lost. */
    pthread_barrier_wait(&step);
    pthread_join(holder, NULL);
    assert_true(patience_lock(&lock));
    pthread_mutex_unlock(&lock);
    pthread_barrier_destroy(&step);
}

/* Releases the lock within the limit. */
static void *hold_shortly(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&step);
    nanosleep(&(struct timespec){.tv_nsec = (long)(PATIENCE_NS / 10)}, NULL);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void a_busy_holder_is_waited_for(void **state)
{
    pthread_t holder;
    pthread_barrier_init(&step, NULL, 2);
    pthread_create(&holder, NULL, hold_shortly, NULL);
    pthread_barrier_wait(&step);
    assert_true(patience_lock(&lock));
    pthread_mutex_unlock(&lock);
    pthread_join(holder, NULL);
    pthread_barrier_destroy(&step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_holder_is_waited_for_once),
        cmocka_unit_test(a_busy_holder_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
