/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu=times and cpu=old: instrumented code counts every call in a call tree. clock=cpu: a timer on
 * each thread's CPU clock reads the thread's current node (tree.h), so calls do not read a clock.
 * clock=elapsed: every call reads the clock twice, and the cost of that is measured at start and
 * subtracted (report.c). doc/cpu-times.md describes the alternatives that were measured and why
 * these two were chosen.
 */
#include "agent/capture/times/methods.h"
#include "agent/capture/times/report.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/probe_class.h"
#include "agent/instrument/running.h"
#include "agent/instrument/shown_name.h"
#include "agent/session/capture.h"
#include "agent/session/session.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "jfr/losses.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#define PROBE      "java/lang/JvmscopeTimes"
#define TREE_LIMIT (UINT64_C(1) << 30)
/* requested interval; kernels round it to their tick, often 4 ms */
#define CPU_INTERVAL (1 * NS_PER_MS)
/*
 * bytes of code of a small method; with a clock, the size that the JIT always inlines is used
 * instead:
 */
#define SMALL_METHOD       10
#define SMALL_METHOD_TIMED 35
#define CALIBRATION        500 /* calls in a round */
#define CALIBRATION_NS     (15 * NS_PER_MS)
#define CALIBRATION_PASSES 3
/* after this many saves in a row without an improvement, the costs are final */
#define SAVES_ALIKE 2

/*
 * Amounts of work with which the clock is calibrated: from nothing to about 25 ns. Beyond that the
 * reading grows linearly.
 */
static const int curve_steps[TIMES_CURVE] = {0, 1, 2, 4, 8, 16, 32};

/*
 * Our data of a slot's thread. The memory is never unmapped, because a deleted timer may still have
 * a signal pending.
 */
struct timed_thread {
    timer_t timer;
    bool has_timer;
    struct times_slot *_Atomic slot;
    uint64_t last_cpu_ns;
};

static struct times_tree tree;
/* protects contexts, slots and timed threads */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct timed_thread *timed; /* TIMES_SLOTS of them, like the slots */
/*
 * The calling thread's data. Its context may be one of an earlier tree and belong to another thread
 * now.
 */
static __thread struct timed_thread *my_timed;
static __thread uint64_t my_generation;
static jclass probe_class;

static struct {
    bool elapsed, by_thread;
    int64_t eetop, carrier, thread_id; /* field offsets; carrier 0: no virtual threads */
    struct times_report_costs costs;
    struct times_context *calibration;
    struct times_point best[TIMES_CURVE]; /* measurements; negative: none yet */
    double best_call, best_count;         /* with a loop around the call */
    unsigned saves_alike;                 /* saves since the last improvement of a measurement */
    _Atomic uint64_t no_timer, no_slot, no_context;
} state;

/*
 * ---- the probes' native methods ----
 *
 * The VM finds them by name in the agent's library, because RegisterNatives for a class of
 * java.base prints a warning on stdout. `bind` in the probe class calls each of them once before
 * anything is instrumented, with zeros as addresses.
 */
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
    const int64_t values[] = {(int64_t)(uintptr_t)tree.slots, state.eetop, state.carrier,
                              (int64_t)(uintptr_t)tree.virtuals, state.thread_id};
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

static void start_timer(struct timed_thread *t)
{
    struct sigevent how = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF, .sigev_value.sival_ptr = t};
    how._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec every = {.it_interval.tv_nsec = CPU_INTERVAL,
                               .it_value.tv_nsec = CPU_INTERVAL};
    t->last_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &how, &t->timer) != 0) {
        atomic_fetch_add(&state.no_timer, 1);
        return;
    }
    t->has_timer = true;
    timer_settime(t->timer, 0, &every, NULL);
}

NATIVE(jlong, newSlot)(JNIEnv *jni, jclass class, jlong eetop)
{
    struct thread *thread = state.by_thread ? threads_self(jni) : NULL;
    struct times_slot *s = NULL;
    pthread_mutex_lock(&lock);
    if (tree.active && eetop) {
        struct times_context *c = times_context_take(&tree, !state.by_thread);
        s = c ? times_slot_add(&tree, (uint64_t)eetop, c, NULL) : NULL;
        if (!c)
            atomic_fetch_add(&state.no_context, 1);
        else if (!s) {
            times_context_give(&tree, c);
            atomic_fetch_add(&state.no_slot, 1);
        } else {
            c->thread = thread ? atomic_load(&thread->serial) : THREAD_UNKNOWN;
            if (thread)
                atomic_store(&thread->counted, true);
            struct timed_thread *t = my_timed = &timed[s - tree.slots];
            my_generation = tree.generation;
            *t = (struct timed_thread){0};
            atomic_store(&t->slot, s);
            if (!state.elapsed)
                start_timer(t);
        }
    }
    pthread_mutex_unlock(&lock);
    return address_of(s ? s : &tree.lost);
}

/* Takes the lock, because another tree may begin meanwhile. */
NATIVE(jlong, newNode)(JNIEnv *jni, jclass class, jlong node, jint method)
{
    if (!node)
        return 0;
    pthread_mutex_lock(&lock);
    const struct times_node *child = times_child(&tree, node_of(node), method);
    pthread_mutex_unlock(&lock);
    return address_of(child);
}

NATIVE(jlong, newContext)(JNIEnv *jni, jclass class, jlong thread)
{
    pthread_mutex_lock(&lock);
    struct times_context *c = times_context_take(&tree, !state.by_thread);
    if (c && thread && !times_virtual_add(&tree, (uint64_t)thread, c)) {
        times_context_give(&tree, c);
        c = NULL;
    }
    if (c)
        c->thread = THREAD_UNKNOWN;
    pthread_mutex_unlock(&lock);
    if (!c)
        atomic_fetch_add(&state.no_context, 1);
    return address_of(c ? c : &tree.lost_context);
}

/* Returns whether a context belongs to the tree. Contexts of an earlier session have no owner. */
static bool is_of_tree(const struct times_context *c)
{
    return c >= tree.contexts && c < tree.contexts + TIMES_CONTEXTS;
}

NATIVE(void, freeContext)(JNIEnv *jni, jclass class, jlong thread, jlong context)
{
    struct times_context *c = (struct times_context *)(uintptr_t)context;
    pthread_mutex_lock(&lock);
    if (is_of_tree(c) && (!thread || times_virtual_remove(&tree, (uint64_t)thread, c)))
        times_context_give(&tree, c);
    pthread_mutex_unlock(&lock);
}

NATIVE(void, keepContext)(JNIEnv *jni, jclass class, jlong thread, jlong context)
{
    struct times_context *c = (struct times_context *)(uintptr_t)context;
    pthread_mutex_lock(&lock);
    bool kept = !thread || !is_of_tree(c) || times_virtual_add(&tree, (uint64_t)thread, c);
    pthread_mutex_unlock(&lock);
    if (!kept)
        atomic_fetch_add(&state.no_context, 1);
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
        uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        struct times_context *c = s ? atomic_load(&s->context) : NULL;
        struct times_node *n = c ? atomic_load(&c->current) : NULL;
        struct times_reading *seen = n && tree.active ? times_reading_of(&tree, n) : NULL;
        if (seen) {
            seen->samples++;
            seen->cpu_ns += now - t->last_cpu_ns;
        }
        t->last_cpu_ns = now;
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

static void forget_thread(struct timed_thread *t)
{
    struct times_slot *s = atomic_load(&t->slot);
    if (t->has_timer)
        timer_delete(t->timer);
    t->has_timer = false;
    atomic_store(&t->slot, NULL);
    if (!s || !tree.active)
        return;
    struct times_context *own = s->own;
    times_slot_remove(&tree, s);
    /* With thread=y the tree of a context remains that of its thread. */
    if (!state.by_thread)
        times_context_give(&tree, own);
}

static void on_thread_ended(struct thread *thread, JNIEnv *jni)
{
    if (!my_timed)
        return;
    pthread_mutex_lock(&lock);
    if (my_generation == tree.generation)
        forget_thread(my_timed);
    my_timed = NULL;
    pthread_mutex_unlock(&lock);
}

static const struct thread_listener listener = {.ended = on_thread_ended};

/* ---- instrumentation ---- */

struct editing {
    struct edit *e;
    struct buf code;
    int local, number, r;
    int enter, exit, caught;
};

/*
 * Returns whether this is straight-line code without calls, allocations or jumps, and no longer
 * than a few instructions: an accessor, or a method whose time a clock cannot distinguish from
 * nothing (doc/cpu-times.md).
 */
static bool is_small(const struct edit *e)
{
    if (e->code_len > (state.elapsed ? SMALL_METHOD_TIMED : SMALL_METHOD) ||
        (e->method->access & ACC_SYNCHRONIZED))
        return false;
    for (struct insn i = {0}; edit_next(e, &i);)
        if ((op_info[i.op] & (OP_IS_BRANCH | OP_IS_SWITCH)) ||
            (i.op >= OP_INVOKEVIRTUAL && i.op <= OP_ATHROW && i.op != OP_ARRAYLENGTH))
            return false;
    return true;
}

static void put_caught(void *data, uint32_t pc)
{
    struct editing *s = data;
    buf_clear(&s->code);
    code_load(&s->code, 'J', (unsigned)s->local);
    int r = code_int(s->e->rewrite, &s->code, s->number);
    code_invokestatic(&s->code, s->caught);
    if (r == 0)
        r = edit_insert(s->e, EDIT_BEFORE, pc, 0, &s->code, 3);
    s->r = s->r < 0 ? s->r : r;
}

static int put_probes(struct editing *s)
{
    int r = code_int(s->e->rewrite, &s->code, s->number);
    code_invokestatic(&s->code, s->enter);
    code_store(&s->code, 'J', (unsigned)s->local);
    if (r == 0)
        r = edit_insert(s->e, EDIT_ENTRY, 0, 0, &s->code, 2);
    buf_clear(&s->code);
    code_load(&s->code, 'J', (unsigned)s->local);
    code_invokestatic(&s->code, s->exit);
    for (struct insn i = {0}; edit_next(s->e, &i) && r == 0;)
        if (op_info[i.op] & OP_IS_RETURN)
            r = edit_insert(s->e, EDIT_BEFORE, i.pc, 0, &s->code, 2);
    code_op(&s->code, OP_ATHROW);
    if (r == 0)
        r = edit_catch_all(s->e, &s->code, 2);
    if (r == 0)
        edit_handlers(s->e, put_caught, s);
    return r < 0 ? r : s->r;
}

static int put_count(struct editing *s)
{
    struct rewrite *w = s->e->rewrite;
    int count = rewrite_methodref(w, PROBE, "count", "(I)V");
    int r = count < 0 ? count : code_int(w, &s->code, s->number);
    if (r < 0)
        return r;
    code_invokestatic(&s->code, count);
    return edit_insert(s->e, EDIT_ENTRY, 0, 0, &s->code, 1);
}

static int edit_calls(struct editing *s)
{
    struct rewrite *w = s->e->rewrite;
    s->enter = rewrite_methodref(w, PROBE, state.elapsed ? "enterTimed" : "enter", "(I)J");
    s->exit = rewrite_methodref(w, PROBE, state.elapsed ? "exitTimed" : "exit", "(J)V");
    s->caught = rewrite_methodref(w, PROBE, "caught", "(JI)V");
    s->local = edit_local(s->e, 'J');
    const int needed[] = {s->enter, s->exit, s->caught, s->local};
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (needed[i] < 0)
            return needed[i];
    return put_probes(s);
}

/* Instruments VirtualThread.mount and unmount, which show which virtual thread a carrier runs. */
static int edit_virtual_thread(struct editing *s)
{
    struct rewrite *w = s->e->rewrite;
    struct str name = class_utf8(w->class, s->e->method->name);
    bool mount = str_is(name, "mount");
    if (!mount && !str_is(name, "unmount"))
        return 0;
    int hook = rewrite_methodref(w, PROBE, mount ? "mounted" : "unmounting", "()V");
    if (hook < 0)
        return hook;
    code_invokestatic(&s->code, hook);
    int r = mount ? 0 : edit_insert(s->e, EDIT_ENTRY, 0, 0, &s->code, 0);
    for (struct insn i = {0}; mount && edit_next(s->e, &i) && r == 0;)
        if (op_info[i.op] & OP_IS_RETURN)
            r = edit_insert(s->e, EDIT_BEFORE, i.pc, 0, &s->code, 0);
    return r < 0 ? r : 1;
}

static int64_t add_method(const struct instrument_class *c, const struct class_method *m)
{
    struct shown_name room;
    return times_method_add(instrument_shown_name(c, &room), class_utf8(c->file, m->name),
                            class_utf8(c->file, m->descriptor), c->source, m->access);
}

static int edit_method(const struct instrument_class *c, struct edit *e)
{
    struct editing s = {.e = e, .code = BUF(256)};
    int r;
    if (c->virtual_thread) {
        r = state.carrier ? edit_virtual_thread(&s) : 0;
    } else if (class_method_is_bridge(c->file, e->method)) {
        r = 0; /* its calls would count twice under one name */
    } else {
        int64_t number = add_method(c, e->method);
        bool small = is_small(e);
        s.number = (int)number;
        times_method_mark(number, small ? TIMES_SMALL : NULL);
        r = number < 0 ? (int)number : small ? put_count(&s) : edit_calls(&s);
        r = r < 0 ? r : 1;
    }
    buf_release(&s.code);
    return r;
}

static void left_method(const struct instrument_class *c, const struct class_method *m,
                        enum instrument_reason why)
{
    if (!c->virtual_thread && !class_method_is_bridge(c->file, m))
        times_method_mark(add_method(c, m), instrument_reasons[why]);
}

static const struct instrument_client client = {
    .name = "cpu=times", .edit = edit_method, .virtual_threads = true, .left = left_method};

/* ---- the capture ---- */

static bool wanted(const struct options *o)
{
    return option_is(o, OPT_CPU, "times") || option_is(o, OPT_CPU, "old");
}

static int map_timed(void)
{
    if (!timed)
        timed = calloc(TIMES_SLOTS, sizeof(*timed));
    return timed ? 0 : -ENOMEM;
}

/*
 * Returns the best of the rounds that fit into a time limit, in nanoseconds per call, because that
 * round was disturbed least. Negative on failure.
 */
static double best_round(JNIEnv *jni, const char *name, int32_t number, int steps, uint64_t for_ns,
                         double *ret_seen)
{
    jmethodID run = (*jni)->GetStaticMethodID(jni, probe_class, name, "(III)J");
    uint64_t best = UINT32_MAX, best_seen = UINT32_MAX, end = now_ns() + for_ns;
    for (int i = 0; run && (i == 0 || now_ns() < end); i++) {
        jlong answer = (*jni)->CallStaticLongMethod(jni, probe_class, run, (jint)number,
                                                    (jint)CALIBRATION, (jint)steps);
        if ((*jni)->ExceptionCheck(jni)) {
            run = NULL;
            break;
        }
        best = MIN(best, (uint64_t)answer & UINT32_MAX);
        best_seen = MIN(best_seen, (uint64_t)answer >> 32);
    }
    vm_clear_exception(jni);
    if (ret_seen)
        *ret_seen = (double)best_seen / CALIBRATION;
    return run ? (double)best / CALIBRATION : -1;
}

/* Keeps the better of two measurements. Returns whether the difference is significant. */
static bool improve(double *best, double found)
{
    bool better = found >= 0 && (*best < 0 || found < 0.98 * *best);
    if (found >= 0 && (*best < 0 || found < *best))
        *best = found;
    return better;
}

/* Makes one pass over all measurements. Returns whether any of them improved. */
static bool calibrate_pass(JNIEnv *jni)
{
    int32_t number = state.costs.calibration;
    bool better = improve(&state.best_count,
                          best_round(jni, "calibrateCount", number, 0, CALIBRATION_NS / 4, NULL));
    if (!state.elapsed)
        return improve(&state.best_call,
                       best_round(jni, "calibrate", number, 0, CALIBRATION_NS, NULL)) ||
               better;
    for (int i = 0; i < TIMES_CURVE; i++) {
        double seen = -1, alone = best_round(jni, "calibrateWork", number, curve_steps[i],
                                             CALIBRATION_NS / 8, NULL);
        double whole =
            best_round(jni, "calibrateTimed", number, curve_steps[i], CALIBRATION_NS / 4, &seen);
        better |= improve(&state.best[i].true_ns, alone);
        better |= improve(&state.best[i].seen_ns, seen);
        if (i == 0)
            better |= improve(&state.best_call, whole);
    }
    return better;
}

/*
 * Builds the curve of report.h from the best measurements. Points that noise has put out of order
 * are dropped.
 */
static void make_curve(struct times_report_costs *c)
{
    c->points = 0;
    for (int i = 0; state.elapsed && i < TIMES_CURVE; i++) {
        const struct times_point *p = &state.best[i];
        const struct times_point *last = c->points ? &c->curve[c->points - 1] : NULL;
        if (p->true_ns >= 0 && p->seen_ns >= 0 &&
            (!last || (p->true_ns > last->true_ns && p->seen_ns > last->seen_ns)))
            c->curve[c->points++] = *p;
    }
    c->count_ns = MAX(0, state.best_count);
    c->call_ns = MAX(0, state.best_call - (state.elapsed ? MAX(0, state.best[0].true_ns) : 0));
}

/*
 * Measures what the probes of a call cost, and keeps the best value found at the start or later,
 * because the JIT compiles the loops at a time of its own choosing. It uses a separate context, so
 * that its node is not affected by other calls. Returns false after a pass that improves nothing,
 * which is then the last one.
 */
static bool calibrate(JNIEnv *jni, int passes)
{
    bool better = false;
    jmethodID show = (*jni)->GetStaticMethodID(jni, probe_class, "show", "(J)J");
    pthread_mutex_lock(&lock);
    if (!state.calibration)
        state.calibration = times_context_take(&tree, false);
    pthread_mutex_unlock(&lock);
    if (show && state.calibration) {
        state.calibration->thread = THREAD_UNKNOWN;
        jlong before =
            (*jni)->CallStaticLongMethod(jni, probe_class, show, address_of(state.calibration));
        vm_clear_exception(jni);
        for (int pass = 0; pass < passes && (better = calibrate_pass(jni)); pass++)
            ;
        (*jni)->CallStaticLongMethod(jni, probe_class, show, before);
    }
    vm_clear_exception(jni);
    make_curve(&state.costs);
    return better;
}

static int prepare_calibration(void)
{
    static const struct str none = {"", 0}, name = {"<calibration>", 13};
    int64_t n = times_method_add(none, name, none, none, 0);
    state.costs = (struct times_report_costs){.calibration = (int32_t)n};
    state.calibration = NULL;
    state.best_call = state.best_count = -1;
    state.saves_alike = 0;
    for (int i = 0; i < TIMES_CURVE; i++)
        state.best[i] = (struct times_point){-1, -1};
    return n < 0 ? (int)n : 0;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    state.elapsed = option_is(&s->options, OPT_CLOCK, "elapsed");
    state.by_thread = option_on(&s->options, OPT_THREAD);
    atomic_store(&state.no_timer, 0);
    atomic_store(&state.no_slot, 0);
    atomic_store(&state.no_context, 0);
    if (!state.eetop)
        state.eetop = probe_field_offset(jni, "java/lang/Thread", "eetop", "J");
    if (!state.carrier && vm.version >= 21) {
        state.thread_id = probe_field_offset(jni, "java/lang/Thread", "tid", "J");
        state.carrier = state.thread_id <= 0
                            ? 0
                            : MAX(0, probe_field_offset(jni, "java/lang/VirtualThread",
                                                        "carrierThread", "Ljava/lang/Thread;"));
    }
    if (state.eetop <= 0 || sizeof(void *) != 8) {
        buf_printf(why, "cpu=times: only HotSpot on 64 bits");
        return -ENOTSUP;
    }
    int r = map_timed();
    if (r == 0)
        r = times_begin(&tree, TREE_LIMIT, state.elapsed);
    if (r < 0) {
        buf_printf(why, "cpu=times: out of memory");
        return r;
    }
    install_handler();
    r = probe_define(jni, PROBE, &probe_class, why);
    if (r == 0)
        r = threads_listen(&listener);
    if (r == 0)
        r = instrument_choose(s->options.v[OPT_INCLUDE].text, s->options.v[OPT_EXCLUDE].text);
    if (r == 0)
        r = prepare_calibration();
    if (r == 0)
        calibrate(jni, CALIBRATION_PASSES);
    if (r == 0)
        r = instrument_on(&client, jni, why);
    if (r == 0 && vm.late && s->out.jfr)
        instrument_lose_running(s->out.jfr, jni, LOSS_TIMES_RUNNING, NULL);
    return r;
}

/* Requires the lock. */
static void forget_threads(void)
{
    for (int i = 0; i < TIMES_SLOTS; i++)
        if (timed[i].has_timer || atomic_load(&timed[i].slot))
            forget_thread(&timed[i]);
}

/*
 * Begins a new tree. The calls made while classes were changed remain in the tree that ends here.
 * Calls in progress then find no context, like those of code that was entered before its class was
 * changed, and the calls that they make from now on have no caller.
 */
static int begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = 0;
    if (!vm.late)
        return r;
    pthread_mutex_lock(&lock);
    forget_threads();
    r = times_begin(&tree, TREE_LIMIT, state.elapsed);
    state.calibration = NULL;
    pthread_mutex_unlock(&lock);
    if (r < 0)
        buf_string(why, "cpu=times: out of memory");
    return r;
}

static void stop(struct session *s, JNIEnv *jni)
{
    if (!tree.active)
        return;
    instrument_off(&client, jni);
    threads_unlisten(&listener);
    pthread_mutex_lock(&lock);
    forget_threads();
    if (vm.dying)
        tree.active = false;
    else
        times_end(&tree);
    pthread_mutex_unlock(&lock);
    times_report_release();
    times_methods_forget();
}

static uint64_t save(struct session *s, JNIEnv *jni, bool *ret_all)
{
    uint64_t events = 0;
    /*
     * If the VM is killed, these counts are the last ones, so they use the cost of probes that the
     * JIT has compiled by now.
     */
    if (tree.active && state.saves_alike < SAVES_ALIKE)
        state.saves_alike = calibrate(jni, 1) ? 0 : state.saves_alike + 1;
    *ret_all = tree.active && times_report(s, jni, &tree, &state.costs, state.elapsed,
                                           state.by_thread, true, &events) == 0;
    return events;
}

static void prepare(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    if (tree.active)
        calibrate(jni, CALIBRATION_PASSES);
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    uint64_t events = 0;
    if (!tree.active)
        return;
    jfr_lose_total(s->out.jfr, LOSS_TIMES_THREAD,
                   atomic_load(&state.no_slot) + atomic_load(&state.no_context));
    jfr_lose_total(s->out.jfr, LOSS_TIMES_TIMER, atomic_load(&state.no_timer));
    int r =
        times_report(s, jni, &tree, &state.costs, state.elapsed, state.by_thread, false, &events);
    if (r < 0)
        session_message(s, "cpu=times: the section is missing: %s", strerror(-r));
}

static void status(struct session *s, struct buf *out)
{
    buf_printf(out, "times.methods %u\ntimes.bytes %llu\ntimes.call_cost_ps %llu\n",
               times_method_count(), (unsigned long long)MIN(atomic_load(&tree.used), tree.limit),
               (unsigned long long)(state.costs.call_ns * 1000));
    buf_printf(out,
               "times.threads_without_timer %llu\ntimes.threads_lost "
               "%llu\ntimes.virtual_threads_lost %llu\n",
               (unsigned long long)atomic_load(&state.no_timer),
               (unsigned long long)atomic_load(&state.no_slot),
               (unsigned long long)atomic_load(&state.no_context));
}

const struct capture capture_cpu_times = {
    .name = "cpu",
    .title = "CPU usage by timing methods",
    .options = OPTION_BIT(OPT_CPU),
    .changes_classes = true,
    .needs = {.can_retransform_classes = 1},
    .wanted = wanted,
    .start = start,
    .begin = begin,
    .stop = stop,
    .save = save,
    .counts = "times",
    .prepare = prepare,
    .dump = dump,
    .status = status,
};
