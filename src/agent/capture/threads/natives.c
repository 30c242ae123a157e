/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records notify, start, interrupt, sleep, park, unpark and the wait of the thread that handles
 * references. These are native methods, which are bound to functions of ours
 * (agent/instrument/rebind.h).
 */
#include "agent/capture/threads/natives.h"

#include "agent/capture/threads/deadlocks.h"
#include "agent/capture/threads/io.h"
#include "agent/capture/threads/monitors.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/stack.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/unpark.h"
#include "agent/capture/threads/waiters.h"
#include "agent/instrument/rebind.h"
#include "agent/session/budget.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

typedef void(JNICALL *on_object)(JNIEnv *, jobject);
typedef void(JNICALL *on_time)(JNIEnv *, jclass, jlong);
typedef void(JNICALL *on_park)(JNIEnv *, jobject, jboolean, jlong);
typedef void(JNICALL *on_unpark)(JNIEnv *, jobject, jobject);
typedef void(JNICALL *on_pending)(JNIEnv *, jclass);
typedef jobject(JNICALL *current_thread)(JNIEnv *, jclass);

static struct {
    on_object notify, notify_all, start, interrupt;
    on_time sleep;
    on_park park;
    on_unpark unpark;
    on_pending pending;
    current_thread current;
    bool sleep_ns;
    bool instrument; /* contanalysis=y */
    bool bound;
} real;

struct waiter *native_self(JNIEnv *jni)
{
    jobject thread = NULL;
    if (thread_capture.virtual_too && real.current)
        thread = real.current(jni, NULL);
    struct waiter *w = waiter_self(jni, thread);
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
    return w;
}

void threads_interaction_left_out(void)
{
    static __thread uint32_t left_out;
    waiter_leaves_out(&left_out, LOSS_BUDGET_WAKES);
}

static void interaction_on(JNIEnv *jni, jobject object, bool all)
{
    if (!budget_keeps(&budget_wakes_of)) {
        threads_interaction_left_out();
        return;
    }
    uint64_t cost = budget_begin();
    if (!threads_natives_enter())
        return;
    struct waiter *w = native_self(jni);
    if (w)
        threads_put_interaction(TYPE_NOTIFY, w, stack_here(jni, w), object_class(jni, object),
                                object_identity(object), 0, all);
    threads_natives_leave();
    budget_end(COST_WAITS, cost);
}

static void JNICALL our_notify(JNIEnv *jni, jobject object)
{
    interaction_on(jni, object, false);
    real.notify(jni, object);
}

static void JNICALL our_notify_all(JNIEnv *jni, jobject object)
{
    interaction_on(jni, object, true);
    real.notify_all(jni, object);
}

static uint64_t tid_of(JNIEnv *jni, jobject thread)
{
    return thread ? (uint64_t)(*jni)->GetLongField(jni, thread, thread_capture.tid) : 0;
}

/*
 * The threads that called start() for threads that have not run yet, for jdk.ThreadStart. Two
 * threads may share an entry; the later one overwrites it, and the event of the earlier one then
 * lacks its starter.
 */
enum { STARTS = 256 };

static struct {
    uint64_t started, by, trace;
} starts[STARTS];

static pthread_mutex_t starts_lock = PTHREAD_MUTEX_INITIALIZER;

static void note_start(uint64_t started, uint64_t by, uint64_t trace)
{
    pthread_mutex_lock(&starts_lock);
    starts[started % STARTS].started = started;
    starts[started % STARTS].by = by;
    starts[started % STARTS].trace = trace;
    pthread_mutex_unlock(&starts_lock);
}

bool natives_started_by(uint64_t started, uint64_t *ret_by, uint64_t *ret_trace)
{
    pthread_mutex_lock(&starts_lock);
    bool known = started && starts[started % STARTS].started == started;
    if (known) {
        *ret_by = starts[started % STARTS].by;
        *ret_trace = starts[started % STARTS].trace;
        starts[started % STARTS].started = 0;
    }
    pthread_mutex_unlock(&starts_lock);
    return known;
}

static void forget_starts(void)
{
    pthread_mutex_lock(&starts_lock);
    memset(starts, 0, sizeof(starts));
    pthread_mutex_unlock(&starts_lock);
}

static void JNICALL our_start(JNIEnv *jni, jobject thread)
{
    if (threads_natives_enter()) {
        struct waiter *w = native_self(jni);
        if (w) {
            uint64_t trace = stack_here(jni, w), started = tid_of(jni, thread);
            note_start(started, w->id, trace);
            threads_put_interaction(TYPE_START, w, trace, 0, object_identity(thread), started,
                                    false);
        }
        threads_natives_leave();
    }
    real.start(jni, thread);
}

static void JNICALL our_interrupt(JNIEnv *jni, jobject thread)
{
    if (threads_natives_enter()) {
        struct waiter *w = native_self(jni);
        jint state = 0;
        /* "target thread in waiting state (check via getState() == (WAITING | TIMED_WAITING))" */
        if (w && (*vm.ti)->GetThreadState(vm.ti, thread, &state) == JVMTI_ERROR_NONE &&
            state & JVMTI_THREAD_STATE_WAITING)
            threads_put_interaction(TYPE_INTERRUPT, w, stack_here(jni, w), 0,
                                    object_identity(thread), tid_of(jni, thread), false);
        threads_natives_leave();
    }
    real.interrupt(jni, thread);
}

void threads_put_sleep(uint64_t thread, const struct wait *was, uint64_t ns)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, JFR_THREAD_SLEEP, 0, &e))
        return;
    jfr_put_time(&e, was->start);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)was->trace);
    jfr_put_long(&e, was->timeout);
    jfr_commit(&e);
}

static void JNICALL our_sleep(JNIEnv *jni, jclass class, jlong time)
{
    struct wait how = {.timeout = real.sleep_ns ? (time + 999999) / 1000000 : time};
    struct waiter *w;
    uint64_t ns;
    if (threads_natives_enter()) {
        w = native_self(jni);
        how.trace = w ? stack_of_wait(jni, w) : 0;
        if (w)
            wait_begin(w, WAIT_SLEEP, &how);
        threads_natives_leave();
    }
    real.sleep(jni, class, time);
    if (threads_natives_enter()) {
        w = native_self(jni);
        if (w && wait_end(w, WAIT_SLEEP, &how, &ns)) {
            if (wait_lacks(&how, ns) && !(*jni)->ExceptionCheck(jni))
                how.trace = stack_here(jni, w);
            threads_put_sleep(w->id, &how, ns);
        }
        threads_natives_leave();
    }
}

void threads_put_park(uint64_t thread, const struct wait *was, uint64_t ns, bool absolute,
                      jlong time)
{
    struct jfr_event e;
    if (!monitor_wait_event_begin(&e, JFR_THREAD_PARK, thread, was, ns))
        return;
    jfr_put_long(&e, absolute ? INT64_MIN : was->timeout ? was->timeout : INT64_MIN);
    jfr_put_long(&e, absolute ? time : INT64_MIN);
    jfr_put_long(&e, was->object);
    jfr_commit(&e);
}

/*
 * Returns the class of the object on which a thread parks; usually it is the same object as the
 * last time.
 */
static uint64_t class_of_blocker(JNIEnv *jni, struct waiter *w, jobject blocker, uint32_t identity)
{
    if (!blocker)
        return 0;
    uint64_t chunk = jfr_writer_chunks(thread_capture.jfr);
    if (!w->blocker_class || w->blocker != identity || w->blocker_chunk != (uint32_t)chunk) {
        w->blocker = identity;
        w->blocker_chunk = (uint32_t)chunk;
        w->blocker_class = object_class(jni, blocker);
    }
    return w->blocker_class;
}

/* Reads on what a thread parks, and where. */
static void describe_park(JNIEnv *jni, struct waiter *w, jthread thread, struct wait *ret,
                          bool with_stack)
{
    jobject blocker =
        thread ? (*jni)->GetObjectField(jni, thread, thread_capture.park_blocker) : NULL;
    ret->object = object_identity(blocker);
    ret->class = class_of_blocker(jni, w, blocker, ret->object);
    ret->owned = blocker && thread_capture.watch && deadlock_watch_owned(jni, blocker);
    if (with_stack)
        ret->trace = stack_here(jni, w);
    if (blocker)
        (*jni)->DeleteLocalRef(jni, blocker);
}

/* Writes a park that has just ended; the thread is still in its method. */
static void park_ends(JNIEnv *jni, struct waiter *w, jthread thread, struct wait *was, uint64_t ns,
                      bool absolute, jlong time)
{
    if (wait_left_out(was, ns))
        return;
    if (wait_lacks(was, ns))
        describe_park(jni, w, thread, was, true);
    threads_put_park(w->id, was, ns, absolute, time);
}

static void park_begins(JNIEnv *jni, jthread thread, bool absolute, jlong time)
{
    struct waiter *w = waiter_self(jni, thread);
    if (!w)
        return;
    struct wait how = {.timeout = absolute ? 0 : time, .plain = wait_is_plain(w)};
    if (!how.plain)
        describe_park(jni, w, thread, &how, !w->was_short || budget_keeps(&budget_stacks_of));
    if (absolute) {
        int64_t left = (int64_t)time * 1000000 - (int64_t)clock_ns(CLOCK_REALTIME);
        how.timeout = MAX(left, 1);
    }
    wait_begin(w, WAIT_PARK, &how);
}

/* The largest delay of the coarse clock, in ns. */
static uint64_t tick_ns;

/*
 * Parks with a cheap clock, which shows whether the park was so long that it is written. Returns
 * false, and does nothing, if the park has to be timed.
 */
static bool park_untimed(JNIEnv *jni, jobject unsafe, jboolean absolute, jlong time)
{
    uint64_t cost = budget_begin();
    struct waiter *w = waiter_untimed(jni);
    if (likely(!w))
        return false;
    /* the start that is written if the park is still going on at a flush */
    struct wait was, how = {.start = clock_ns(CLOCK_MONOTONIC_COARSE) + tick_ns, .plain = true};
    w->run.since = 0; /* it is also unknown for how long the thread ran before */
    wait_begin(w, WAIT_PARK, &how);
    budget_end(COST_WAITS, cost);
    uint64_t start = budget_ticks();
    real.park(jni, unsafe, absolute, time);
    uint64_t ns = budget_ns_between(start, budget_ticks());
    cost = budget_begin();
    if (likely(ns < BUDGET_SHORT_NS)) {
        seqlock_stamp_set(&w->waits[WAIT_PARK].start, 0);
        waiter_leaves_out(&w->parks_left_out, LOSS_BUDGET_WAITS);
    } else if (threads_natives_enter()) {
        jobject thread = real.current ? real.current(jni, NULL) : NULL;
        seqlock_stamp_set(&w->waits[WAIT_PARK].start, now_ns() - ns);
        if (wait_end(w, WAIT_PARK, &was, &ns))
            park_ends(jni, w, thread, &was, ns, absolute, time);
        if (thread)
            (*jni)->DeleteLocalRef(jni, thread);
        threads_natives_leave();
    }
    budget_end(COST_WAITS, cost);
    return true;
}

static void JNICALL our_park(JNIEnv *jni, jobject unsafe, jboolean absolute, jlong time)
{
    if (park_untimed(jni, unsafe, absolute, time))
        return;
    uint64_t cost = budget_begin();
    jobject thread = real.current ? real.current(jni, NULL) : NULL;
    if (threads_natives_enter()) {
        park_begins(jni, thread, absolute, time);
        threads_natives_leave();
    }
    budget_end(COST_WAITS, cost);
    real.park(jni, unsafe, absolute, time);
    cost = budget_begin();
    if (threads_natives_enter()) {
        struct waiter *w = waiter_self(jni, thread);
        struct wait was;
        uint64_t ns;
        if (w && wait_end(w, WAIT_PARK, &was, &ns))
            park_ends(jni, w, thread, &was, ns, absolute, time);
        threads_natives_leave();
    }
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
    budget_end(COST_WAITS, cost);
}

void threads_put_unpark(JNIEnv *jni, struct waiter *w, jobject thread, uint64_t since,
                        uint64_t until)
{
    struct jfr_event e;
    uint64_t trace = stack_here(jni, w), target = tid_of(jni, thread);
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_UNPARK], 0, &e))
        return;
    if (since == 0)
        since = until = now_ns();
    jfr_put_time(&e, since);
    jfr_put_long(&e, (int64_t)(until - since));
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, (int64_t)target);
    jfr_commit(&e);
}

/*
 * The event is written after the call returned: the thread may have been delayed inside the call
 * before it took effect, and the woken thread must not wait for us. `thread` is still valid,
 * because it is a reference of the caller's.
 */
static void JNICALL our_unpark(JNIEnv *jni, jobject unsafe, jobject thread)
{
    if (!budget_keeps(&budget_wakes_of)) {
        real.unpark(jni, unsafe, thread);
        uint64_t cost = budget_begin();
        threads_interaction_left_out();
        budget_end(COST_WAITS, cost);
        return;
    }
    uint64_t since = now_ns();
    real.unpark(jni, unsafe, thread);
    uint64_t until = now_ns();
    uint64_t cost = budget_begin();
    if (!thread || !threads_natives_enter())
        return;
    struct waiter *w = native_self(jni);
    if (w)
        threads_put_unpark(jni, w, thread, since, until);
    threads_natives_leave();
    budget_end(COST_WAITS, cost);
}

/*
 * Since JDK 9 the "Reference Handler" waits inside the VM for references that a collection has
 * cleared. JVM TI reports it as runnable all the while and posts no event.
 */
static void JNICALL our_pending(JNIEnv *jni, jclass reference)
{
    struct waiter *w;
    if (threads_natives_enter()) {
        w = waiter_self(jni, NULL);
        if (w)
            wait_begin(w, WAIT_OBJECT, &(struct wait){.trace = stack_here(jni, w)});
        threads_natives_leave();
    }
    real.pending(jni, reference);
    if (threads_natives_enter()) {
        struct wait was = {0};
        uint64_t ns;
        w = waiter_self(jni, NULL);
        if (w && wait_end(w, WAIT_OBJECT, &was, &ns))
            threads_put_wait(w->id, WAIT_OBJECT, &was, ns, false);
        threads_natives_leave();
    }
}

/* ---- binding ---- */

enum { INSTRUMENT_ROWS = 2 }; /* index of the first row that needs contanalysis=y */

static const struct rebind_row rows[] = {
    {"start0", (void *)our_start, (void **)&real.start},
    {"interrupt0", (void *)our_interrupt, (void **)&real.interrupt},
    {"sleep", (void *)our_sleep, (void **)&real.sleep},
    {"sleep0", (void *)our_sleep, (void **)&real.sleep},
    {"sleepNanos0", (void *)our_sleep, (void **)&real.sleep},
    {"park", (void *)our_park, (void **)&real.park},
    {"unpark", (void *)our_unpark, (void **)&real.unpark},
};

/* Binds the natives of a boot class. Returns their number, or 0 if the class lacks one of them. */
static int bind_class(JNIEnv *jni, const char *name, const JNINativeMethod *methods, int n)
{
    jclass c = vm_find_class(jni, name);
    bool bound = c && (*jni)->RegisterNatives(jni, c, methods, n) == JNI_OK;
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return bound ? n : 0;
}

/* binds the natives of Object, of Reference and of I/O; rebind_natives handles the others */
static int bind_others(JNIEnv *jni, bool ours)
{
    int n = io_bind(jni, ours);
    on_pending pending = ours ? our_pending : real.pending;
    const JNINativeMethod reference = {(char *)"waitForReferencePendingList", (char *)"()V",
                                       (void *)pending};
    if (real.pending)
        n += bind_class(jni, "java/lang/ref/Reference", &reference, 1);
    if (!real.instrument || !real.notify || !real.notify_all)
        return n;
    on_object notify = ours ? our_notify : real.notify;
    on_object all = ours ? our_notify_all : real.notify_all;
    const JNINativeMethod object[] = {{(char *)"notify", (char *)"()V", (void *)notify},
                                      {(char *)"notifyAll", (char *)"()V", (void *)all}};
    return n + bind_class(jni, "java/lang/Object", object, 2);
}

static int bind(JNIEnv *jni, bool ours)
{
    size_t skip = real.instrument ? 0 : INSTRUMENT_ROWS;
    return rebind_natives(jni, rows + skip, ARRAY_SIZE(rows) - skip, ours, bind_others);
}

int natives_bind(JNIEnv *jni, bool instrument, struct buf *why)
{
    if (!vm.hotspot)
        return 0; /* record only JVM TI's own events */
    forget_starts();
    struct timespec tick = {0};
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    tick_ns = (uint64_t)tick.tv_sec * NS_PER_SECOND + (uint64_t)tick.tv_nsec;
    real.notify = (on_object)vm_libjvm_function("JVM_MonitorNotify");
    real.notify_all = (on_object)vm_libjvm_function("JVM_MonitorNotifyAll");
    real.current = (current_thread)vm_libjvm_function("JVM_CurrentThread");
    real.pending = (on_pending)vm_libjvm_function("JVM_WaitForReferencePendingList");
    real.sleep_ns = vm.version >= 21;
    real.instrument = instrument;
    int r = bind(jni, true);
    real.bound = r >= 0;
    if (r < 0)
        buf_printf(why, "threads=y: the VM refuses to bind native methods");
    return r;
}

void natives_unbind(JNIEnv *jni)
{
    if (!real.bound)
        return;
    real.bound = false;
    /*
     * When the VM ends, the natives remain bound, because our functions then only call the
     * originals.
     */
    if (!vm.dying)
        (void)!bind(jni, false);
}
