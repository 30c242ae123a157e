/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/settle.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/monitors.h"
#include "jvmpi/threads.h"

#include "base/clock.h"
#include "base/timed_wait.h"
#include "base/vec.h"
#include "jvmpi/kernel_thread.h"
#include "jvmpi/thread_table.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void pause_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* ---- threads that start and end, and references that end ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
TIMED_WAIT_STATIC(changed)
/*
 * frozen: threads between freeze and unfreeze; changing: threads between the begin and the end of a
 * change
 */
static int frozen, changing;
static __thread int own_freezes;

/*
 * Returns whether the caller must not wait: it may hold a lock of the agent, or a dump may wait for
 * it.
 */
static bool must_go_on(void)
{
    return own_freezes || my.notifying || my.raw_held || my.ending;
}

/*
 * Returns whether a change must not wait for a dump. A dump waits for reports in progress, so the
 * threads that make them must not wait for it, and neither must those for which a VM that ends
 * waits (layer_vm_ends).
 */
static bool must_change(void)
{
    bool awaited = layer_end_waits() && atomic_load(&layer.stage) != STAGE_OPEN;
    return must_go_on() || my.reports || awaited;
}

void layer_known_change_begin(void)
{
    struct timespec until = timed_wait_end(10 * NS_PER_SECOND);
    bool may_wait = !layer_mutation("unfrozen-threads") && !must_change();
    pthread_mutex_lock(&mutex);
    while (frozen > 0 && may_wait && !pthread_cond_timedwait(&changed, &mutex, &until))
        ;
    changing++;
    pthread_mutex_unlock(&mutex);
}

void layer_known_change_end(void)
{
    pthread_mutex_lock(&mutex);
    changing--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void layer_known_freeze(void)
{
    struct timespec until = timed_wait_end(1 * NS_PER_SECOND);
    own_freezes++;
    pthread_mutex_lock(&mutex);
    frozen++;
    while (changing > 0 && !pthread_cond_timedwait(&changed, &mutex, &until))
        ;
    pthread_mutex_unlock(&mutex);
}

void layer_known_unfreeze(void)
{
    pthread_mutex_lock(&mutex);
    frozen--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    own_freezes--;
}

/* ---- classes that are linked ---- */

static atomic_int classes_frozen;

void layer_class_linked(void)
{
    if (likely(!atomic_load(&classes_frozen)) || must_go_on())
        return;
    struct timespec until = timed_wait_end(10 * NS_PER_SECOND);
    pthread_mutex_lock(&mutex);
    while (atomic_load(&classes_frozen) && !pthread_cond_timedwait(&changed, &mutex, &until))
        ;
    pthread_mutex_unlock(&mutex);
}

void layer_classes_freeze(void)
{
    atomic_fetch_add(&classes_frozen, 1);
}

void layer_classes_unfreeze(void)
{
    pthread_mutex_lock(&mutex);
    atomic_fetch_sub(&classes_frozen, 1);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* ---- requests ---- */

/* All are protected by the mutex. */
/* requests in progress: those that began before layer_requests_close, and the others */
static int requests[2];
static bool closing, held_back;
static __thread int own_period; /* the period in which the calling thread's request is counted */

void layer_request_begin(void)
{
    struct timespec until = timed_wait_end(10 * NS_PER_SECOND);
    bool may_wait = !my.notifying && !my.raw_held && !my.ending;
    if (my.requests++)
        return;
    pthread_mutex_lock(&mutex);
    while (held_back && may_wait && !pthread_cond_timedwait(&changed, &mutex, &until))
        ;
    own_period = closing;
    requests[own_period]++;
    pthread_mutex_unlock(&mutex);
}

void layer_request_end(void)
{
    if (--my.requests)
        return;
    pthread_mutex_lock(&mutex);
    requests[own_period]--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void layer_requests_close(void)
{
    struct timespec until = timed_wait_end(10 * NS_PER_SECOND);
    pthread_mutex_lock(&mutex);
    closing = held_back = true;
    while (requests[0] > 0 && !my.notifying && !my.raw_held &&
           !pthread_cond_timedwait(&changed, &mutex, &until))
        ;
    pthread_mutex_unlock(&mutex);
}

void layer_requests_release(void)
{
    pthread_mutex_lock(&mutex);
    held_back = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* ---- reports in progress ---- */

enum {
    POLL_US = 50,
    CHECK_US = 2000,
    /*
     * A thread counts as waiting for the caller when it has slept for this long: on a busy machine
     * it may just wait for a thread that holds a lock and has no processor.
     */
    SLEEP_MS = 200,
    SLEEP_AT_END_MS = 1000, /* at the end of the VM, where events would otherwise be left out */
    LIMIT_MS = 10000,
    CHAIN = 8 /* the length of the longest chain of threads that wait for each other */
};

struct report {
    struct thread_entry *of;
    unsigned number;
    uint64_t slept;    /* for kernel_thread_slept */
    uint64_t since_ns; /* when it was last seen awake */
};

typedef VEC(struct report) report_vec;

/*
 * Returns true when the thread waits for the caller. *ret_known is set if it waits for something
 * that the layer knows, so that no guess is needed. *ret_by is the thread on which it depends. With
 * suspended threads this may be another one: the thread that has suspended it or, if the caller has
 * suspended the thread for which it waits, that thread, which may continue in native code but
 * cannot complete what it does.
 */
static bool waits_for_me(struct thread_entry *t, bool *ret_known, struct thread_entry **ret_by)
{
    *ret_by = t;
    *ret_known = atomic_load(&t->locked);
    for (int i = 0; t && i < CHAIN; i++) {
        JNIEnv *owner = NULL;
        bool mine = false;
        struct thread_entry *suspender =
            atomic_load(&t->suspended) ? atomic_load(&t->suspender) : NULL;
        uintptr_t awaits = atomic_load(&t->awaits);
        if (atomic_load(&t->leaving))
            return true;
        if (suspender) {
            /*
             * The threads before it wait for something that will not happen, so do not wait for
             * them.
             */
            *ret_known = atomic_load(&t->locked) || awaits;
            *ret_by = t;
        } else {
            *ret_known |= atomic_load(&t->settling) || awaits;
        }
        if (atomic_load(&t->settling) && (my.reports || my.raw_held))
            return true; /* perhaps for the caller */
        if (suspender && suspender != my_entry) {
            *ret_known = false;
            *ret_by = t = suspender;
        } else if (awaits) {
            t = flight_thread(awaits);
            mine = t && t == my_entry;
        } else if (layer_raw_monitor_wanted(atomic_load(&t->env), &owner, &mine)) {
            *ret_known = true;
            t = thread_find(owner);
        } else {
            return false;
        }
        if (mine)
            return true;
    }
    return false;
}

/*
 * Returns true when the caller need not wait for the report any more. A handler may also want a
 * lock that the layer does not know, so a thread that sleeps for long is assumed to want one of the
 * caller's. A suspended one resumes when the thread that suspended it resumes it.
 */
static bool is_settled(struct report *r, unsigned sleep_ms)
{
    bool known;
    struct thread_entry *by;
    if (atomic_load(&r->of->reporting) != r->number || waits_for_me(r->of, &known, &by))
        return true;
    if (!kernel_thread_slept(atomic_load(&by->tid), &r->slept) || known)
        r->since_ns = now_ns();
    return now_ns() - r->since_ns >= sleep_ms * NS_PER_MS;
}

/* Waits for the end of a collection, for example, which may have stopped other threads too. */
static void pass_safepoint(void)
{
    jthread self = NULL;
    JNIEnv *env = vm_jni();
    if (env && !(*vm.ti)->GetCurrentThread(vm.ti, &self))
        (*env)->DeleteLocalRef(env, self);
}

static void settle(report_vec *all, unsigned sleep_ms)
{
    uint64_t began = now_ns(), checked = 0;
    while (all->len && now_ns() - began < LIMIT_MS * NS_PER_MS) {
        size_t n = 0;
        bool check = now_ns() - checked >= CHECK_US * 1000;
        if (check) {
            pass_safepoint();
            checked = now_ns();
        }
        for (size_t i = 0; i < all->len; i++) {
            struct report *r = &all->data[i];
            if (check ? !is_settled(r, sleep_ms) : atomic_load(&r->of->reporting) == r->number)
                all->data[n++] = *r;
        }
        all->len = n;
        if (n)
            pause_us(POLL_US);
    }
}

static void settle_all(unsigned sleep_ms)
{
    unsigned bucket;
    report_vec all = {0};
    for (struct thread_entry *t = thread_next(NULL, &bucket); t; t = thread_next(t, &bucket)) {
        unsigned number = atomic_load(&t->reporting);
        if (t != my_entry && number % 2 && atomic_load(&t->env))
            (void)!vec_push(&all, ((struct report){t, number, 0, now_ns()}));
    }
    if (!all.len)
        return;
    if (my_entry)
        atomic_store(&my_entry->settling, true);
    settle(&all, sleep_ms);
    if (my_entry)
        atomic_store(&my_entry->settling, false);
    vec_release(&all);
}

void layer_reports_settle(void)
{
    if (!layer_mutation("unsettled"))
        settle_all(SLEEP_MS);
}

void layer_reports_close(void)
{
    /*
     * After this, each processor has either completed its stores or will see what the caller has
     * stored before.
     */
    if (syscall(__NR_membarrier, 1 /* MEMBARRIER_CMD_GLOBAL */, 0, 0))
        pause_us(1000);
    settle_all(SLEEP_AT_END_MS);
}
