/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native methods of the probes of cpu=times, which the VM finds by name in the agent's library,
 * because RegisterNatives for a class of java.base prints a warning on stdout. `bind` in the probe
 * class calls each of them once before anything is instrumented, with zeros as addresses. With
 * clock=cpu, the thread that gets a slot also gets a timer on its CPU clock.
 */
#include "agent/capture/times/readings.h"
#include "agent/capture/times/state.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* requested interval; kernels round it to their tick, often 4 ms */
#define CPU_INTERVAL (1 * NS_PER_MS)

/* first readings that wait to be settled (readings.h); more often than reports only if many end */
enum { FIRSTS_MOST = 4096 };

/*
 * Our data of a slot's thread. The memory is never unmapped, because a deleted timer may still have
 * a signal pending.
 */
struct timed_thread {
    timer_t timer;
    bool has_timer;
    struct times_slot *_Atomic slot;
    bool measures; /* it has the slot in order to measure the cost of probes */
    _Atomic pid_t tid;
    struct times_clock clock;
};

static struct timed_thread *timed;   /* TIMES_SLOTS of them, like the slots */
static struct times_account account; /* under the lock */
/*
 * The calling thread's data. Its context may be one of an earlier tree and belong to another thread
 * now.
 */
static __thread struct timed_thread *my_timed;
static __thread uint64_t my_generation;
static __thread bool measuring; /* the cost of probes */

#define NATIVE(type, name)       EXPORT type JNICALL Java_java_lang_JvmscopeTimes_##name
#define DECLARE(type, name, ...) NATIVE(type, name)(JNIEnv *, jclass, ##__VA_ARGS__)
DECLARE(jlong, constant, jint);
DECLARE(jlong, newSlot, jlong);
DECLARE(jlong, newNode, jlong, jint);
DECLARE(jlong, newContext, jlong);
DECLARE(void, freeContext, jlong, jlong);
DECLARE(void, keepContext, jlong, jlong);
DECLARE(void, unwind, jlong, jlong, jlong);

NATIVE(jlong, constant)(JNIEnv *jni, jclass class, jint which)
{
    const int64_t values[] = {(int64_t)(uintptr_t)cpu_times.tree.slots, cpu_times.eetop,
                              cpu_times.carrier, (int64_t)(uintptr_t)cpu_times.tree.virtuals,
                              cpu_times.thread_id};
    return which >= 0 && which < (jint)ARRAY_SIZE(values) ? values[which] : 0;
}

static struct times_node *node_of(jlong address)
{
    return (struct times_node *)(uintptr_t)address;
}

static jlong address_of(const void *p)
{
    return (jlong)(uintptr_t)p;
}

/* Returns how often the calling thread has stopped running, in order to wait or for another. */
static uint64_t switches(void)
{
    struct rusage used = {0};
    getrusage(RUSAGE_THREAD, &used);
    return (uint64_t)used.ru_nvcsw + (uint64_t)used.ru_nivcsw;
}

/*
 * The timer is due at once, so that the next tick that finds the thread running reads it. This is
 * the random part of a tick after which a first reading comes.
 */
static void start_timer(struct timed_thread *t)
{
    struct sigevent how = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF, .sigev_value.sival_ptr = t};
    how._sigev_un._tid = atomic_load(&t->tid);
    struct itimerspec every = {.it_interval.tv_nsec = CPU_INTERVAL, .it_value.tv_nsec = 1};
    times_clock_begin(&t->clock, clock_ns(CLOCK_THREAD_CPUTIME_ID), switches());
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &how, &t->timer) != 0) {
        atomic_fetch_add(&cpu_times.no_timer, 1);
        return;
    }
    t->has_timer = true;
    timer_settime(t->timer, 0, &every, NULL);
}

/*
 * Returns whether the calling thread gets its slot to measure the cost of probes and runs none of
 * the program's code. At the beginning the main thread measures.
 */
static bool only_measures(JNIEnv *jni)
{
    const struct thread *t = measuring ? threads_self(jni) : NULL;
    return t && (t->own || (t->name && strcmp(t->name, "Attach Listener") == 0 && t->group &&
                            strcmp(t->group, "system") == 0));
}

NATIVE(jlong, newSlot)(JNIEnv *jni, jclass class, jlong eetop)
{
    struct thread *thread = cpu_times.by_thread ? threads_self(jni) : NULL;
    struct times_slot *s = NULL;
    pthread_mutex_lock(&cpu_times.lock);
    if (cpu_times.tree.active && eetop) {
        struct times_context *c = times_context_take(&cpu_times.tree, !cpu_times.by_thread);
        s = c ? times_slot_add(&cpu_times.tree, (uint64_t)eetop, c, NULL) : NULL;
        if (!c)
            atomic_fetch_add(&cpu_times.no_context, 1);
        else if (!s) {
            times_context_give(&cpu_times.tree, c);
            atomic_fetch_add(&cpu_times.no_slot, 1);
        } else {
            c->thread = thread ? atomic_load(&thread->serial) : THREAD_UNKNOWN;
            if (thread)
                atomic_store(&thread->counted, true);
            struct timed_thread *t = my_timed = &timed[s - cpu_times.tree.slots];
            my_generation = cpu_times.tree.generation;
            *t = (struct timed_thread){.measures = only_measures(jni)};
            atomic_store(&t->tid, (pid_t)syscall(SYS_gettid));
            atomic_store(&t->slot, s);
            if (!cpu_times.elapsed)
                start_timer(t);
        }
    }
    pthread_mutex_unlock(&cpu_times.lock);
    return address_of(s ? s : &cpu_times.tree.lost);
}

/* Takes the lock, because another tree may begin meanwhile. */
NATIVE(jlong, newNode)(JNIEnv *jni, jclass class, jlong node, jint method)
{
    if (!node)
        return 0;
    pthread_mutex_lock(&cpu_times.lock);
    const struct times_node *child = times_child(&cpu_times.tree, node_of(node), method);
    pthread_mutex_unlock(&cpu_times.lock);
    return address_of(child);
}

NATIVE(jlong, newContext)(JNIEnv *jni, jclass class, jlong thread)
{
    pthread_mutex_lock(&cpu_times.lock);
    struct times_context *c = times_context_take(&cpu_times.tree, !cpu_times.by_thread);
    if (c && thread && !times_virtual_add(&cpu_times.tree, (uint64_t)thread, c)) {
        times_context_give(&cpu_times.tree, c);
        c = NULL;
    }
    if (c)
        c->thread = THREAD_UNKNOWN;
    pthread_mutex_unlock(&cpu_times.lock);
    if (!c)
        atomic_fetch_add(&cpu_times.no_context, 1);
    return address_of(c ? c : &cpu_times.tree.lost_context);
}

/* Returns whether a context belongs to the tree. Contexts of an earlier session have no owner. */
static bool is_of_tree(const struct times_context *c)
{
    return c >= cpu_times.tree.contexts && c < cpu_times.tree.contexts + TIMES_CONTEXTS;
}

NATIVE(void, freeContext)(JNIEnv *jni, jclass class, jlong thread, jlong context)
{
    struct times_context *c = (struct times_context *)(uintptr_t)context;
    pthread_mutex_lock(&cpu_times.lock);
    if (is_of_tree(c) && (!thread || times_virtual_remove(&cpu_times.tree, (uint64_t)thread, c)))
        times_context_give(&cpu_times.tree, c);
    pthread_mutex_unlock(&cpu_times.lock);
}

NATIVE(void, keepContext)(JNIEnv *jni, jclass class, jlong thread, jlong context)
{
    struct times_context *c = (struct times_context *)(uintptr_t)context;
    pthread_mutex_lock(&cpu_times.lock);
    bool kept =
        !thread || !is_of_tree(c) || times_virtual_add(&cpu_times.tree, (uint64_t)thread, c);
    pthread_mutex_unlock(&cpu_times.lock);
    if (!kept)
        atomic_fetch_add(&cpu_times.no_context, 1);
}

NATIVE(void, unwind)(JNIEnv *jni, jclass class, jlong context, jlong parent, jlong now)
{
    struct times_context *c = (struct times_context *)(uintptr_t)context;
    if (!c)
        return;
    struct times_node *n = atomic_load(&c->current), *to = node_of(parent);
    struct times_node *end = n;
    while (end != to && end != c->root && end->method != TIMES_BEYOND)
        end = end->parent;
    for (; end == to && n != to; n = n->parent) {
        uint64_t took = (uint64_t)now - n->started;
        n->total_ns += took;
        n->slowest_ns = MAX(n->slowest_ns, took);
    }
    atomic_store(&c->current, to);
}

/* ---- the CPU timer ---- */

static struct sigaction chained;

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    struct timed_thread *t = info->si_code == SI_TIMER ? info->si_value.sival_ptr : NULL;
    if (t && timed && t >= timed && t < timed + TIMES_SLOTS) {
        struct times_slot *s = atomic_load(&t->slot);
        struct times_context *c = s ? atomic_load(&s->context) : NULL;
        struct times_node *n = c ? atomic_load(&c->current) : NULL;
        struct times_reading *seen =
            n && cpu_times.tree.active ? times_reading_of(&cpu_times.tree, n) : NULL;
        /* A late signal of a deleted timer may find the data of another thread. */
        if (s && atomic_load(&t->tid) == (pid_t)syscall(SYS_gettid))
            times_clock_read(&t->clock, seen, clock_ns(CLOCK_THREAD_CPUTIME_ID),
                             t->clock.read ? 0 : switches());
    } else if (chained.sa_flags & SA_SIGINFO) {
        chained.sa_sigaction(number, info, context);
    } else if (chained.sa_handler != SIG_DFL && chained.sa_handler != SIG_IGN) {
        chained.sa_handler(number);
    }
    errno = saved;
}

/* The handler stays installed: a late signal under SIG_DFL would end the process. */
static void install_handler(void)
{
    struct sigaction now = {0};
    sigaction(SIGPROF, NULL, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
        return;
    chained = now;
    struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&ours.sa_mask);
    sigaction(SIGPROF, &ours, NULL);
}

/* Returns the interval of the kernel's tick: the coarse clock advances with it. */
static uint64_t tick_ns(void)
{
    enum { USUAL = 4, LONGEST = 10 };

    /* Kernels without such a clock return the precision of another one. */
    struct timespec t = {0};
    bool known = clock_getres(CLOCK_MONOTONIC_COARSE, &t) == 0 && t.tv_sec == 0 &&
                 (uint64_t)t.tv_nsec <= LONGEST * NS_PER_MS && (uint64_t)t.tv_nsec >= NS_PER_MS / 2;
    return MAX(known ? (uint64_t)t.tv_nsec : USUAL * NS_PER_MS, CPU_INTERVAL);
}

static void forget_thread(struct timed_thread *t)
{
    struct times_slot *s = atomic_load(&t->slot);
    if (t->has_timer)
        timer_delete(t->timer);
    t->has_timer = false;
    atomic_store(&t->slot, NULL);
    if (!s || !cpu_times.tree.active)
        return;
    struct times_context *own = s->own;
    times_slot_remove(&cpu_times.tree, s);
    /* With thread=y the tree of a context remains that of its thread. */
    if (!cpu_times.by_thread)
        times_context_give(&cpu_times.tree, own);
}

/* Returns the CPU time of a thread, or 0 if there is no such thread any more. */
static uint64_t thread_cpu_ns(pid_t tid)
{
    /* the kernel's number of a thread's clock: its id, inverted, and the kind of the clock */
    return clock_ns((clockid_t)(~(unsigned)tid << 3 | 6));
}

/* Settles the readings of all threads. Returns the time without a reading. Requires the lock. */
static uint64_t settle(void)
{
    uint64_t rest = 0, lost = 0;
    for (int i = 0; i < TIMES_SLOTS; i++) {
        struct timed_thread *t = &timed[i];
        if (!atomic_load(&t->slot) || t->measures)
            continue;
        uint64_t left = times_clock_rest(&t->clock, thread_cpu_ns(atomic_load(&t->tid)));
        rest += t->has_timer ? left : 0;
        lost += atomic_load(&t->clock.lost_ns) + (t->has_timer ? 0 : left);
        (void)!times_account_first(&account, &t->clock);
    }
    return times_account_settle(&account, rest, lost);
}

uint64_t times_threads_settle(void)
{
    pthread_mutex_lock(&cpu_times.lock);
    uint64_t unread = timed && cpu_times.tree.active && !cpu_times.elapsed ? settle() : 0;
    pthread_mutex_unlock(&cpu_times.lock);
    return unread;
}

void times_threads_measuring(bool on)
{
    measuring = on;
}

/* Gives up the slot of the calling thread, which ends. Requires the lock. */
static void end_thread(struct timed_thread *t)
{
    bool timed_by_timer = t->has_timer, had_slot = atomic_load(&t->slot);
    forget_thread(t);
    if (cpu_times.elapsed || !had_slot || !cpu_times.tree.active || t->measures)
        return;
    uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    (void)!times_account_end(&account, &t->clock, now, timed_by_timer);
    if (account.firsts.len >= FIRSTS_MOST)
        settle();
}

static void on_thread_ended(struct thread *thread, JNIEnv *jni)
{
    if (!my_timed)
        return;
    pthread_mutex_lock(&cpu_times.lock);
    if (my_generation == cpu_times.tree.generation)
        end_thread(my_timed);
    my_timed = NULL;
    pthread_mutex_unlock(&cpu_times.lock);
}

const struct thread_listener times_listener = {.ended = on_thread_ended};

int times_threads_prepare(void)
{
    if (!timed)
        timed = calloc(TIMES_SLOTS, sizeof(*timed));
    if (!timed)
        return -ENOMEM;
    install_handler();
    times_account_begin(&account, tick_ns());
    return 0;
}

void times_threads_forget(void)
{
    for (int i = 0; i < TIMES_SLOTS; i++)
        if (timed[i].has_timer || atomic_load(&timed[i].slot))
            forget_thread(&timed[i]);
    times_account_begin(&account, tick_ns());
}
