/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/jvmti.h"

#include "agent/vm/own_thread.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/waker.h"

#include <errno.h>
#include <stdlib.h>

enum { ROUND_SHARE = 50 }; /* a round takes at most 1/ROUND_SHARE of the time between rounds */

/* What was last seen of a thread, by its index in the table of threads. */
struct seen {
    uint32_t serial;
    int64_t cpu_ns; /* samples were taken up to this CPU time */
    int64_t last_ns;
    _Atomic uint64_t mark;
};

static struct {
    struct sampler_jvmti options;
    struct seen *seen; /* THREADS_MAX elements */
    atomic_bool exists, stop;
    struct waker waker, ended; /* `stop` is set; the thread has ended */
    bool first_round;
    _Atomic uint64_t threads;
} jvmti;

/*
 * For CPU time: returns the number of whole intervals that the thread has used and that no sample
 * represents yet.
 */
static uint32_t due(struct seen *s, int64_t cpu)
{
    int64_t interval = (int64_t)jvmti.options.interval_ns;
    if (cpu - s->cpu_ns < interval)
        return 0;
    int64_t n = (cpu - s->cpu_ns) / interval;
    s->cpu_ns += n * interval;
    return (uint32_t)MIN(n, INT32_MAX);
}

/*
 * Returns the CPU time from which to count a thread that is seen for the first time: its present
 * time minus what it can have used since the last round. Its whole CPU time would be too much,
 * because a kernel thread may return as another Java thread (main becomes DestroyJavaVM). A random
 * part of an interval is subtracted as well, so that threads which use less than an interval get
 * their share of samples.
 */
static int64_t first_seen(uint32_t serial, int64_t cpu, uint32_t rounds)
{
    int64_t since = jvmti.first_round ? 0 : (int64_t)(rounds * jvmti.options.interval_ns);
    return cpu - MIN(cpu, since) -
           (int64_t)(hash_u64(now_ns() ^ serial) % jvmti.options.interval_ns);
}

static void sample_thread(JNIEnv *jni, jthread thread, uint32_t rounds)
{
    struct thread *t = threads_find(jni, thread);
    jlong cpu;
    if (!t || t->own || (*vm.ti)->GetThreadCpuTime(vm.ti, thread, &cpu) != JVMTI_ERROR_NONE)
        return;
    struct seen *s = &jvmti.seen[thread_index(t)];
    uint32_t serial = atomic_load(&t->serial);
    bool ran = s->serial != serial || cpu != s->last_ns;
    if (s->serial != serial) {
        s->serial = serial;
        s->cpu_ns = first_seen(serial, cpu, rounds);
        atomic_store(&s->mark, 0);
    }
    s->last_ns = cpu;
    if (!jvmti.options.wall) {
        uint32_t weight = due(s, cpu);
        if (weight)
            jvmti.options.sample(t, jni, thread, weight, false, &s->mark);
        return;
    }
    uint64_t mark = atomic_load(&s->mark);
    jint state = 0;
    if (!ran && mark && jvmti.options.idle(t, mark, rounds))
        return;
    if ((*vm.ti)->GetThreadState(vm.ti, thread, &state) == JVMTI_ERROR_NONE)
        jvmti.options.sample(t, jni, thread, rounds, !(state & JVMTI_THREAD_STATE_RUNNABLE),
                             &s->mark);
}

/* Samples the threads. rounds: the number of intervals since the last round. */
static void sample_round(JNIEnv *jni, uint32_t rounds)
{
    jint n = 0;
    jthread *all = NULL;
    if (vm_all_threads(&n, &all) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        sample_thread(jni, all[i], rounds);
        (*jni)->DeleteLocalRef(jni, all[i]);
    }
    vm_free(all);
    atomic_store(&jvmti.threads, (uint64_t)n);
    jvmti.first_round = false;
}

static void JNICALL run(jvmtiEnv *ti, JNIEnv *jni, void *unused)
{
    uint64_t interval = jvmti.options.interval_ns, last = now_ns();
    while (!atomic_load(&jvmti.stop)) {
        uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), now = now_ns();
        uint64_t rounds = MAX(1, (now - last + interval / 2) / interval);
        last += rounds * interval;
        sample_round(jni, (uint32_t)rounds);
        uint64_t pause = MAX(interval, ROUND_SHARE * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin));
        (void)waker_wait(&jvmti.waker, pause);
    }
    waker_wake(&jvmti.ended);
}

static int need_cpu_time(void)
{
    jvmtiCapabilities wanted = {.can_get_thread_cpu_time = 1}, missing = {0};
    int r = vm_need(&wanted, &missing);
    return r < 0 ? r : missing.can_get_thread_cpu_time ? -ENOTSUP : 0;
}

int sampler_jvmti_start(const struct sampler_jvmti *o)
{
    int r = need_cpu_time();
    if (r < 0)
        return r;
    size_t bytes = THREADS_MAX * sizeof(*jvmti.seen);
    void *memory = mapped_new(bytes);
    if (!memory)
        return -ENOMEM;
    jvmti.options = *o;
    jvmti.seen = memory;
    jvmti.first_round = true;
    atomic_store(&jvmti.stop, false);
    jvmti.waker = jvmti.ended = (struct waker){0};
    r = own_thread_start(vm_jni(), "jvmscope sampler", run, NULL, NULL);
    atomic_store(&jvmti.exists, r == 0);
    return r;
}

void sampler_jvmti_stop(void)
{
    if (!atomic_exchange(&jvmti.exists, false))
        return;
    atomic_store(&jvmti.stop, true);
    waker_wake(&jvmti.waker);
    while (!waker_wait(&jvmti.ended, NS_PER_SECOND))
        continue;
    atomic_store(&jvmti.threads, 0);
}

void sampler_jvmti_release(void)
{
    mapped_free(jvmti.seen, THREADS_MAX * sizeof(*jvmti.seen));
    jvmti.seen = NULL;
}

uint64_t sampler_jvmti_threads(void)
{
    return atomic_load(&jvmti.threads);
}
