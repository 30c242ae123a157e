/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/sampler.h"

#include "agent/common/fault.h"
#include "agent/common/rounds.h"
#include "agent/sampler/jvmti.h"
#include "agent/sampler/ring.h"
#include "agent/sampler/slots.h"
#include "agent/stacks/names.h"
#include "agent/vm/virtual_threads.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * A sample with room for its frames. A handler takes it; the handler or sampler_drain gives it
 * back.
 */
enum { BUFFER_FREE, BUFFER_BUSY, BUFFER_FULL };

struct buffer {
    _Atomic int state;
    struct sample sample;
    struct jfr_frame frames[];
};

struct pool {
    char *memory;
    size_t bytes, stride;
    uint32_t n;
};

/* The members that every handler uses come first and occupy as few cache lines as possible. */
static struct {
    atomic_int inside; /* the number of handlers running */
    atomic_bool on;
    int signal;
    _Atomic uint32_t one_of; /* one of this many ticks is recorded */
    _Atomic uint64_t calls, samples, truncated, lost, coalesced;
    struct pool pool;
    struct record_ring ring; /* samples whose stacks are walked later */
    struct sampler_options options;
    _Atomic uint64_t measured, measured_ns, max_ns;
    _Atomic uint64_t failed[WALK_FAILURES], cost[COST_BUCKETS];
} __attribute__((aligned(64))) sampler;

/* Used only by sampler_drain. */
static struct {
    struct jfr_frame *frames;
    uint64_t ns, round;
} later;

enum { SAMPLER_FETCH = offsetof(__typeof__(sampler), measured) };

/* ---- in the signal handler ---- */

static struct buffer *buffer_at(uint32_t i)
{
    return (struct buffer *)(void *)(sampler.pool.memory + (size_t)i * sampler.pool.stride);
}

/*
 * Takes a free buffer. If samples are not kept, it prefers the CPU's own buffer, which is in its
 * caches; otherwise it takes the next one.
 */
static struct buffer *take_buffer(void)
{
    static _Atomic uint32_t next;
    int cpu = sampler.options.keep ? -1 : sched_getcpu();
    uint32_t hint = cpu >= 0 ? (uint32_t)cpu : atomic_fetch_add(&next, 1);
    uint32_t n = sampler.pool.n, tries = MIN(n, 64);
    for (uint32_t i = 0; i < tries; i++) {
        struct buffer *b = buffer_at((hint + i) % n);
        int expected = BUFFER_FREE;
        if (atomic_compare_exchange_strong(&b->state, &expected, BUFFER_BUSY))
            return b;
    }
    return NULL;
}

/* A signal of ours: the end of one or more intervals of a thread. */
struct tick {
    struct sampler_slot *slot;
    uint32_t weight;
    uint32_t kernel_count;
    uint64_t kernel[PERF_KERNEL_FRAMES]; /* the kernel's stack when the interval ended */
};

/* The arguments for walking the stack in the handler. */
struct interrupted {
    const struct tick *tick;
    JNIEnv *env;
    void *ucontext;
};

/* Stores the kernel's frames followed by the thread's own. */
at_each_sample static int walk_interrupted(void *context, struct jfr_frame *frames, uint32_t max,
                                           bool *ret_cut)
{
    const struct interrupted *i = context;
    uint32_t kernel = 0;
    for (; sampler.options.kernel && kernel < MIN(i->tick->kernel_count, max - 1); kernel++)
        frames[kernel] = (struct jfr_frame){.method = walk_id_of_kernel(i->tick->kernel[kernel]),
                                            .bci = -1,
                                            .type = JFR_FRAME_KERNEL};
    int n = sampler.options.walk(i->ucontext, i->env, frames + kernel, max - kernel, ret_cut);
    return n < 0 ? n : n + (int)kernel;
}

/* Detects truncation: the walk was asked for one frame more than the depth. */
static void settle_depth(struct sample *s)
{
    if (s->n <= (int)sampler.options.depth)
        return;
    s->n = (int)sampler.options.depth;
    s->truncated = true;
}

static void count_sample(const struct sample *s)
{
    atomic_fetch_add(&sampler.samples, s->weight);
    if (s->n < 0)
        atomic_fetch_add(&sampler.failed[-1 - s->n], s->weight);
    if (s->truncated)
        atomic_fetch_add(&sampler.truncated, s->weight);
}

/*
 * Returns whether the signal interrupted a blocking system call: the kernel then returns EINTR from
 * the call, or goes back to its instruction to restart it (SA_RESTART).
 */
static bool in_blocking_call(const void *ucontext)
{
    const mcontext_t *m = &((const ucontext_t *)ucontext)->uc_mcontext;
#if defined(__x86_64__)
    const uint8_t *pc = (const uint8_t *)m->gregs[REG_RIP], call[] = {0x0f, 0x05}; /* syscall */
    return (m->gregs[REG_RAX] == -EINTR && memcmp(pc - 2, call, 2) == 0) ||
           memcmp(pc, call, 2) == 0;
#elif defined(__aarch64__)
    const uint32_t *pc = (const uint32_t *)m->pc, call = 0xd4000001; /* svc #0 */
    return ((int64_t)m->regs[0] == -EINTR && pc[-1] == call) || pc[0] == call;
#else
    return false;
#endif
}

typedef int fill_fn(void *context, struct jfr_frame *frames, uint32_t max, bool *ret_cut);

/* Takes a sample whose frames come from `fill`. */
at_each_sample static void take_sample(const struct sample *sample, fill_fn *fill, void *context)
{
    uint32_t depth = sampler.options.depth;
    struct buffer *b = take_buffer();
    if (!b) {
        atomic_fetch_add(&sampler.lost, sample->weight);
        return;
    }
    struct sample *s = &b->sample;
    *s = *sample;
    s->time_ns = now_ns();
    s->frames = b->frames;
    s->n = fill(context, s->frames, depth + 1, &s->truncated);
    settle_depth(s);
    count_sample(s);
    bool done = sampler.options.on_sample(sampler.options.context, s);
    atomic_store(&b->state, done ? BUFFER_FREE : BUFFER_FULL);
}

/* A sample whose stack was copied. The kernel's frames and the snapshot follow it. */
struct later {
    struct ring_record head;
    struct sample sample; /* without frames */
    struct sampler_slot *slot;
    uint64_t kernel_count;
    uint64_t kernel[];
};

/* Copies the stack for later. Returns false when it must be walked now. */
at_each_sample static bool keep_for_later(const struct tick *tick, const struct sample *sample,
                                          JNIEnv *env, const void *ucontext)
{
    struct snapshot measured;
    uint64_t position, kernel = sampler.options.kernel ? tick->kernel_count : 0;
    if (!stack_vm_measure(ucontext, env, &measured))
        return false;
    struct ring_record *record = ring_take(
        &sampler.ring, sizeof(struct later) + kernel * 8 + snapshot_bytes(&measured), &position);
    if (!record)
        return false;
    struct later *l = (struct later *)(void *)record;
    l->sample = *sample;
    l->sample.time_ns = now_ns();
    l->slot = tick->slot;
    l->kernel_count = kernel;
    for (uint64_t i = 0; i < kernel; i++)
        l->kernel[i] = tick->kernel[i];
    stack_vm_take(&measured, (struct snapshot *)(void *)(l->kernel + kernel));
    ring_put(record, position);
    return true;
}

at_each_sample static void take_interrupted(const struct tick *tick, struct thread *t, JNIEnv *env,
                                            void *ucontext)
{
    struct interrupted i = {tick, env, ucontext};
    struct sample sample = {.thread = t,
                            .serial = atomic_load(&t->serial),
                            .id = virtual_thread_id(t),
                            .weight = tick->weight,
                            .idle = sampler.options.wall && in_blocking_call(ucontext),
                            .mark = &tick->slot->mark};
    trace_context_read(&sample.context);
    atomic_store_explicit(&tick->slot->sampled_ns, now_ns(), memory_order_relaxed);
    atomic_store_explicit(&tick->slot->blocked, sample.idle, memory_order_relaxed);
    if (!sampler.options.later || !keep_for_later(tick, &sample, env, ucontext))
        take_sample(&sample, walk_interrupted, &i);
}

/*
 * Only every eighth handler is measured, because two reads of the thread's CPU clock, each a system
 * call, took a tenth of a handler's time.
 */
enum { MEASURED_OF = 8 };

/*
 * Returns the thread's CPU time at the start of a handler, or 0 when this one is not measured.
 * Elapsed time would be wrong, because on a busy machine a handler may be preempted for
 * milliseconds.
 */
at_each_sample static uint64_t begin_cost(void)
{
    uint64_t call = atomic_fetch_add(&sampler.calls, 1);
    return hash_u64(call) % MEASURED_OF == 0 ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
}

at_each_sample static void count_cost(uint64_t start)
{
    if (!start)
        return;
    uint64_t ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start, bucket = ns / COST_STEP_NS;
    atomic_fetch_add(&sampler.measured, 1);
    atomic_fetch_add(&sampler.measured_ns, ns);
    atomic_fetch_add(&sampler.cost[MIN(bucket, COST_BUCKETS - 1)], 1);
    uint64_t max = atomic_load(&sampler.max_ns);
    while (ns > max && !atomic_compare_exchange_weak(&sampler.max_ns, &max, ns))
        ;
}

/* Returns the slot that a signal is meant for, or NULL when the signal is not ours. */
static struct sampler_slot *slot_of(const siginfo_t *info)
{
    if (info->si_code == SI_TIMER || info->si_code == SI_QUEUE)
        return slot_by_address(info->si_value.sival_ptr);
    if (info->si_code == POLL_IN || info->si_code == POLL_HUP)
        return slot_by_descriptor(info->si_fd);
    /* When the signal queue is full, the kernel delivers signals without further information. */
    if (info->si_code == SI_USER && info->si_pid == 0)
        return slot_by_tid((pid_t)syscall(SYS_gettid));
    return NULL;
}

/*
 * Prefetches what the handler will need, all at once. After an interval of the program none of it
 * is in the cache. Loading one line after the other takes a tenth of a microsecond each, and more
 * when the page's address must be translated again.
 */
at_each_sample static void fetch_beginning(const siginfo_t *info, const void *ucontext)
{
    enum { BUFFER_FETCH = 512 };

    if (info->si_code == SI_TIMER) {
        __builtin_prefetch(info->si_value.sival_ptr);
        __builtin_prefetch((const char *)info->si_value.sival_ptr + 64);
    }
    for (size_t at = 0; at < SAMPLER_FETCH; at += 64)
        __builtin_prefetch((const char *)&sampler + at, 1);
    if (sampler.options.later) {
        __builtin_prefetch(ring_place(&sampler.ring), 1);
        return;
    }
    stack_vm_fetch(ucontext);
    int cpu = sched_getcpu();
    const char *buffer = sampler.pool.memory + (size_t)MAX(cpu, 0) * sampler.pool.stride;
    for (size_t at = 0; at < BUFFER_FETCH; at += 64)
        __builtin_prefetch(buffer + at, 1);
}

/*
 * Returns the number of intervals that a signal stands for, or 0 if there is none or the signal is
 * not ours.
 */
static uint32_t take_tick(struct tick *ret, const siginfo_t *info)
{
    ret->slot = atomic_load(&sampler.on) ? slot_of(info) : NULL;
    ret->kernel_count = 0;
    if (!ret->slot)
        return 0;
    if (ret->slot->perf.fd) {
        uint32_t taken = perf_clock_take(&ret->slot->perf, ret->kernel, &ret->kernel_count);
        return ret->weight = taken ? taken + ret->slot->left_out : 0;
    }
    if (ret->slot->has_timer)
        ret->weight = info->si_code == SI_TIMER ? 1 + (uint32_t)MAX(info->si_overrun, 0) : 1;
    else
        ret->weight = atomic_exchange(&ret->slot->weight, 0);
    return ret->weight;
}

/* Returns whether a tick is one of the few that are recorded; each has the same chance. */
at_each_sample static bool is_kept(const struct tick *tick, uint32_t one_of)
{
    return likely(one_of <= 1) ||
           hash_u64(now_ns() ^ (uint64_t)(uintptr_t)tick->slot) % one_of == 0;
}

at_each_sample static void on_signal(int number, siginfo_t *info, void *ucontext)
{
    int saved = errno;
    struct tick tick;
    fetch_beginning(info, ucontext);
    atomic_fetch_add(&sampler.inside, 1);
    if (take_tick(&tick, info) && slot_is_own(tick.slot)) {
        uint64_t start = begin_cost();
        struct thread *t = slot_thread(tick.slot);
        JNIEnv *env = t && !t->own ? atomic_load(&t->env) : NULL;
        uint32_t one_of = atomic_load_explicit(&sampler.one_of, memory_order_relaxed);
        if (env && is_kept(&tick, one_of)) {
            struct tick kept = tick;
            kept.weight *= one_of;
            take_interrupted(&kept, t, env, ucontext);
        }
        atomic_fetch_add_explicit(&tick.slot->ticks, tick.weight, memory_order_relaxed);
        if (!sampler.options.later || tick.slot->perf.fd)
            slot_shift(tick.slot, tick.weight);
        count_cost(start);
        rounds_due();
    }
    atomic_fetch_sub(&sampler.inside, 1);
    errno = saved;
}

/* ---- sampling by JVM TI, on a thread of the agent ---- */

struct asked {
    JNIEnv *jni;
    jthread thread;
};

static int ask_stack(void *context, struct jfr_frame *frames, uint32_t max, bool *ret_cut)
{
    const struct asked *a = context;
    jint n = 0;
    jvmtiFrameInfo *found = malloc(max * sizeof(*found));
    if (!found ||
        (*vm.ti)->GetStackTrace(vm.ti, a->thread, 0, (jint)max, found, &n) != JVMTI_ERROR_NONE)
        n = -1;
    for (jint i = 0; i < n; i++) {
        bool native = found[i].location < 0;
        frames[i] = (struct jfr_frame){.method = (uintptr_t)found[i].method,
                                       .bci = native ? -1 : (int32_t)found[i].location,
                                       .type = native ? JFR_FRAME_NATIVE : JFR_FRAME_JAVA};
        /*
         * Resolve the name now, because using the id of a method whose class was unloaded crashes
         * some VMs.
         */
        (void)names_method(a->jni, found[i].method);
    }
    free(found);
    return n > 0 ? n : -1 - (n == 0 ? WALK_NOT_JAVA : WALK_EXITING);
}

static void sample_by_jvmti(struct thread *t, JNIEnv *jni, jthread thread, uint32_t weight,
                            bool idle, _Atomic uint64_t *mark)
{
    struct asked a = {jni, thread};
    uint64_t start = begin_cost();
    uint32_t serial = atomic_load(&t->serial);
    take_sample(&(struct sample){.thread = t,
                                 .serial = serial,
                                 .id = serial,
                                 .weight = weight,
                                 .idle = idle,
                                 .mark = mark},
                ask_stack, &a);
    count_cost(start);
}

static bool idle_by_jvmti(const struct thread *t, uint64_t mark, uint32_t weight)
{
    atomic_fetch_add(&sampler.coalesced, 1);
    return sampler.options.idle(sampler.options.context, t, mark, weight);
}

/* ---- outside signal handlers ---- */

/*
 * Chooses one of the signals that profilers use for which no action is set, so that JFR's own CPU
 * sampler (JDK 25, SIGPROF) and others can run at the same time. The choice is made only once,
 * because the handler stays installed.
 */
static int install_handler(void)
{
    if (sampler.signal)
        return 0;
    const int candidates[] = {SIGVTALRM, SIGPROF, SIGSTKFLT};
    for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
        struct sigaction old,
            ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
        sigemptyset(&ours.sa_mask);
        if (sigaction(candidates[i], NULL, &old) < 0 || old.sa_handler != SIG_DFL)
            continue;
        if (sigaction(candidates[i], &ours, NULL) == 0) {
            sampler.signal = candidates[i];
            return 0;
        }
    }
    return -EBUSY;
}

static int make_pool(const struct sampler_options *o)
{
    struct pool *p = &sampler.pool;
    if (fault_here())
        return -ENOMEM;
    p->stride =
        (sizeof(struct buffer) + (o->depth + 1) * sizeof(struct jfr_frame) + 63) & ~(size_t)63;
    p->n = MAX(o->keep, (unsigned)sysconf(_SC_NPROCESSORS_CONF) * 2 + 14);
    p->bytes = p->stride * p->n;
    /* Pages take memory only when they are used. */
    p->memory = mapped_new(p->bytes);
    return p->memory ? 0 : -ENOMEM;
}

/*
 * Allocates the ring. It has room for the samples that all CPUs take during a few rounds of
 * sampler_drain, with stacks of a common size.
 */
static int make_ring(const struct sampler_options *o)
{
    enum { USUAL = 8 << 10, LEAST = 512 << 10, MOST = 64 << 20, ROUNDS_NS = 200000000 };

    uint64_t wanted =
                 (uint64_t)sysconf(_SC_NPROCESSORS_CONF) * (ROUNDS_NS / o->interval_ns + 1) * USUAL,
             size = LEAST;
    while (size < wanted && size < MOST)
        size *= 2;
    later.frames = calloc(o->depth + 1, sizeof(*later.frames));
    return later.frames ? ring_open(&sampler.ring, size) : -ENOMEM;
}

static void free_pool(void)
{
    ring_close(&sampler.ring);
    free(later.frames);
    later.frames = NULL;
    mapped_free(sampler.pool.memory, sampler.pool.bytes);
    sampler.pool = (struct pool){0};
}

static void clear_counters(void)
{
    for (int i = 0; i < WALK_FAILURES; i++)
        atomic_store(&sampler.failed[i], 0);
    for (int i = 0; i < COST_BUCKETS; i++)
        atomic_store(&sampler.cost[i], 0);
    _Atomic uint64_t *const single[] = {&sampler.samples,     &sampler.truncated, &sampler.lost,
                                        &sampler.coalesced,   &sampler.calls,     &sampler.measured,
                                        &sampler.measured_ns, &sampler.max_ns};
    for (size_t i = 0; i < ARRAY_SIZE(single); i++)
        atomic_store(single[i], 0);
}

static void report_unsignalled(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                               uint32_t weight)
{
    atomic_fetch_add(&sampler.samples, weight);
    if (!mark)
        atomic_fetch_add(&sampler.failed[WALK_UNSIGNALLED], weight);
    sampler.options.unsignalled(context, serial, mark, time_ns, weight);
}

static int start_source(const struct sampler_options *o)
{
    if (!o->walk)
        return sampler_jvmti_start(&(struct sampler_jvmti){.wall = o->wall,
                                                           .interval_ns = o->interval_ns,
                                                           .sample = sample_by_jvmti,
                                                           .idle = idle_by_jvmti});
    atomic_store(&sampler.on, true);
    return slots_start(&(struct slots_options){.signal = sampler.signal,
                                               .interval_ns = o->interval_ns,
                                               .wall = o->wall,
                                               .perf = o->perf,
                                               .idle = o->idle,
                                               .unsignalled = report_unsignalled,
                                               .context = o->context,
                                               .coalesced = &sampler.coalesced});
}

/* Looks for the thread-local variable of tracers, which may be loaded at any time. */
static void find_contexts(void)
{
    if (sampler.options.contexts && sampler.options.walk)
        trace_context_find();
}

int sampler_start(const struct sampler_options *o, JNIEnv *jni, struct buf *why)
{
    clear_counters();
    later.ns = 0;
    sampler.options = *o;
    sampler.one_of = 1;
    int r = o->walk ? install_handler() : 0;
    if (r < 0) {
        buf_printf(why, "another profiler uses the signals SIGVTALRM, SIGPROF and SIGSTKFLT");
        return r;
    }
    r = make_pool(o);
    if (r == 0 && o->later)
        r = make_ring(o);
    if (r == 0) {
        find_contexts();
        r = start_source(o);
    }
    if (r < 0) {
        buf_printf(why, "sampling cannot start: %s", strerror(-r));
        sampler_stop();
        sampler_release();
    }
    return r;
}

void sampler_stop(void)
{
    sampler_jvmti_stop();
    slots_stop();
    atomic_store(&sampler.on, false);
    /* A handler takes microseconds, but a thread that is preempted inside one may take longer. */
    for (int i = 0; atomic_load(&sampler.inside) > 0 && i < 10000; i++)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

void sampler_settle(void)
{
    slots_settle();
}

void sampler_release(void)
{
    sampler_jvmti_release();
    if (atomic_load(&sampler.inside) > 0)
        return;
    slots_release();
    trace_context_release();
    free_pool();
}

/* Walks a stack that was copied. */
static void walk_later(struct later *l)
{
    struct sample *s = &l->sample;
    uint32_t depth = sampler.options.depth, kernel = (uint32_t)MIN(l->kernel_count, depth);
    s->frames = later.frames;
    for (uint32_t i = 0; i < kernel; i++)
        s->frames[i] = (struct jfr_frame){
            .method = walk_id_of_kernel(l->kernel[i]), .bci = -1, .type = JFR_FRAME_KERNEL};
    int n =
        stack_vm_walk_later((const struct snapshot *)(const void *)(l->kernel + l->kernel_count),
                            s->frames + kernel, depth + 1 - kernel, &s->truncated);
    s->n = n < 0 ? n : n + (int)kernel;
    settle_depth(s);
    count_sample(s);
}

void sampler_drain(void (*f)(void *context, const struct sample *s), void *context)
{
    uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    struct ring_record *record;
    later.round++;
    while ((record = ring_next(&sampler.ring))) {
        struct later *l = (struct later *)(void *)record;
        walk_later(l);
        _Atomic uint64_t mark = 0;
        l->sample.mark = &mark;
        f(context, &l->sample);
        slot_shift_later(l->slot, l->sample.thread, l->sample.serial, atomic_load(&mark),
                         l->sample.weight, later.round);
        ring_done(&sampler.ring, record);
    }
    later.ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    for (uint32_t i = 0; i < sampler.pool.n; i++) {
        struct buffer *b = buffer_at(i);
        if (atomic_load(&b->state) != BUFFER_FULL)
            continue;
        f(context, &b->sample);
        atomic_store(&b->state, BUFFER_FREE);
    }
}

void sampler_keep_one_of(uint32_t n)
{
    atomic_store(&sampler.one_of, sampler_can_thin() ? n : 1);
}

bool sampler_can_thin(void)
{
    const struct sampler_options *o = &sampler.options;
    return atomic_load(&sampler.on) && o->walk && !o->wall && !o->perf;
}

void sampler_fill(void)
{
    ring_fill(&sampler.ring);
}

void sampler_work(void)
{
    slots_work();
    find_contexts();
}

void sampler_cost(uint64_t *ret_handler_ns, uint64_t *ret_later_ns)
{
    uint64_t measured = sampler.measured;
    *ret_handler_ns =
        measured
            ? (uint64_t)((double)sampler.measured_ns / (double)measured * (double)sampler.calls)
            : 0;
    *ret_later_ns = later.ns;
}

void sampler_counters(struct sampler_counters *ret)
{
    *ret = (struct sampler_counters){
        .samples = sampler.samples,
        .truncated = sampler.truncated,
        .lost = sampler.lost,
        .coalesced = sampler.coalesced,
        .handler_measured = sampler.measured,
        .handler_max_ns = sampler.max_ns,
    };
    sampler_cost(&ret->handler_ns, &ret->later_ns);
    for (int i = 0; i < WALK_FAILURES; i++)
        ret->failed[i] = sampler.failed[i];
    for (int i = 0; i < COST_BUCKETS; i++)
        ret->cost[i] = sampler.cost[i];
    slots_count(&ret->threads, &ret->uncovered);
    ret->threads += sampler_jvmti_threads();
}

uint64_t sampler_java_ns(void)
{
    return sampler.options.wall || !sampler.options.walk ? 0 : slots_java_ns();
}

uint64_t sampler_cost_percentile(const struct sampler_counters *c, double share)
{
    uint64_t below = 0;
    for (int i = 0; i < COST_BUCKETS - 1; i++) {
        below += c->cost[i];
        if ((double)below >= share * (double)c->handler_measured)
            return (uint64_t)(i + 1) * COST_STEP_NS;
    }
    return c->handler_max_ns;
}
