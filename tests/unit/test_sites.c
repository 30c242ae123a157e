/* SPDX-License-Identifier: Apache-2.0 */
/* The table of allocation sites while every object is tracked, with a VM that is slow. */
#include "agent/capture/alloc/sites_private.h"
#include "base/clock.h"

#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>

enum { OBJECTS = 200000, LATE = 100 };

/* Objects are numbers; odd ones are dead. */
static _Atomic uint32_t dropped;

/* Takes as long as on a busy machine: two seconds for all. */
static jboolean JNICALL is_same(JNIEnv *jni, jobject a, jobject b)
{
    static unsigned calls;
    if (++calls % 1000 == 0)
        nanosleep(&(struct timespec){.tv_nsec = 10 * (long)NS_PER_MS}, NULL);
    return (uintptr_t)a % 2 == 1;
}

static void JNICALL delete_weak(JNIEnv *jni, jweak object)
{
    assert_non_null(object);
    atomic_fetch_add(&dropped, 1);
}

static const struct JNINativeInterface_ functions = {.IsSameObject = is_same,
                                                     .DeleteWeakGlobalRef = delete_weak};
static JNIEnv vm_of_test = &functions;

/* Drops all sites, as the next recording does. */
static void end(void)
{
    sites_lock();
    sites_start_again();
    sites_unlock();
    sites_drop_forgotten(&vm_of_test);
}

static int64_t begin(void)
{
    struct options o = {0};
    o.v[OPT_DEPTH].number = 1;
    sites_begin(&o, true, true);
    sites_lock();
    int64_t site = sites_find("LKept;", NULL, NULL, 0);
    sites_unlock();
    assert_true(site >= 0);
    return site;
}

/* A thread of the program, whose objects are tracked meanwhile. */
static void *allocate(void *arg)
{
    int64_t site = *(const int64_t *)arg;
    for (uintptr_t i = 1; i <= LATE; i++) {
        bool locked = sites_lock_patiently(16);
        if (locked) {
            sites_follow(&vm_of_test, site, (jweak)(2 * (OBJECTS + i)), 1, 16);
            sites_unlock();
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)NS_PER_MS}, NULL);
    }
    return NULL;
}

static void no_object_is_given_up_while_millions_are_counted(void **state)
{
    int64_t site = begin();
    pthread_t program;
    sites_lock();
    for (uintptr_t i = 1; i <= OBJECTS; i++)
        sites_follow(&vm_of_test, site, (jweak)i, 1, 16);
    assert_int_equal(pthread_create(&program, NULL, allocate, &site), 0);
    sites_count_live(&vm_of_test);
    sites_unlock();
    pthread_join(program, NULL);

    sites_lock();
    bool all = sites_all_tracked();
    uint32_t dead = dropped;
    struct estimate then = sites_at(site)->live;
    sites_count_live(&vm_of_test);
    struct estimate now = sites_at(site)->live;
    sites_unlock();
    assert_true(all);
    assert_int_equal(dead, OBJECTS / 2);
    /*
     * Objects that are made meanwhile are not counted as alive, because no collection has examined
     * them.
     */
    assert_int_equal((uint64_t)then.objects, OBJECTS / 2);
    assert_int_equal((uint64_t)now.objects, OBJECTS / 2 + LATE);
    assert_int_equal((uint64_t)now.bytes, 16 * (OBJECTS / 2 + LATE));
    end();
    assert_int_equal(dropped, OBJECTS + LATE);
}

static void *wait_in_vain(void *arg)
{
    *(bool *)arg = sites_lock_patiently(16);
    return NULL;
}

static void live_figures_are_not_called_exact_when_an_object_was_given_up(void **state)
{
    bool locked = true;
    pthread_t program;
    begin();
    sites_lock();
    bool before = sites_all_tracked();
    int r = pthread_create(&program, NULL, wait_in_vain, &locked);
    if (r == 0)
        pthread_join(program, NULL);
    bool after = sites_all_tracked();
    sites_unlock();
    end();
    sites_lock();
    bool again = sites_all_tracked();
    sites_unlock();
    assert_int_equal(r, 0);
    assert_true(before);
    assert_false(locked);
    assert_false(after);
    assert_true(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_object_is_given_up_while_millions_are_counted),
        cmocka_unit_test(live_figures_are_not_called_exact_when_an_object_was_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
