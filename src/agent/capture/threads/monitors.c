/* SPDX-License-Identifier: Apache-2.0 */
/* Records JVM TI's monitor events. */
#include "agent/capture/threads/monitors.h"

#include "agent/capture/threads/at_start.h"
#include "agent/capture/threads/io.h"
#include "agent/capture/threads/locks.h"
#include "agent/capture/threads/mounts.h"
#include "agent/capture/threads/natives.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/owner.h"
#include "agent/capture/threads/stack.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/session/budget.h"

#include "base/clock.h"

bool monitor_wait_event_begin(struct jfr_event *e, uint32_t type, uint64_t thread,
                              const struct wait *was, uint64_t ns)
{
    if (!jfr_begin(thread_capture.jfr, type, 0, e))
        return false;
    jfr_put_time(e, was->start);
    jfr_put_long(e, (int64_t)ns);
    jfr_put_long(e, (int64_t)thread);
    jfr_put_long(e, (int64_t)was->trace);
    jfr_put_long(e, (int64_t)was->class);
    return true;
}

void threads_put_monitor_enter(uint64_t thread, const struct wait *how, uint64_t ns)
{
    struct jfr_event e;
    if (!monitor_wait_event_begin(&e, JFR_JAVA_MONITOR_ENTER, thread, how, ns))
        return;
    jfr_put_long(&e, (int64_t)how->owner);
    jfr_put_long(&e, how->object);
    jfr_commit(&e);
}

static void JNICALL on_enter(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object)
{
    uint64_t cost = budget_begin();
    /* called first, because it may end an earlier wait */
    struct waiter *w = waiter_self(jni, thread);
    uint64_t since = now_ns();
    if (!w)
        return;
    struct wait how = {.start = since, .plain = wait_is_plain(w)};
    if (!how.plain) {
        how.owner = owner_of_pending(jni, object, &how.monitor);
        how.class = object_class(jni, object);
        how.object = object_identity(object);
        if (w->arrived && locks_arrived(w, how.object))
            how.start = w->arrived;
        how.trace = stack_of_wait(jni, w);
    }
    wait_begin(w, WAIT_ENTER, &how);
    budget_end(COST_WAITS, cost);
}

/*
 * The thread holds the monitor here, so nothing but the event is written. (A virtual thread posts
 * this event after wait() too, without an enter before it.)
 */
static void JNICALL on_entered(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object)
{
    uint64_t ns, cost = budget_begin();
    struct waiter *w = waiter_self(jni, thread);
    struct wait was;
    if (!w || !wait_end(w, WAIT_ENTER, &was, &ns))
        return;
    if (w->late.mounted)
        mounts_late(w, &was, false, &ns);
    w->entered = was.start + ns;
    if (!wait_left_out(&was, ns))
        threads_put_monitor_enter(w->id, &was, ns);
    budget_end(COST_WAITS, cost);
}

static void JNICALL on_wait(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                            jlong timeout)
{
    uint64_t cost = budget_begin();
    /* called first, because it may end an earlier wait */
    struct waiter *w = waiter_self(jni, thread);
    uint64_t since = now_ns();
    if (!w)
        return;
    struct wait how = {.start = since, .timeout = timeout, .plain = wait_is_plain(w)};
    if (!how.plain || w->locks) {
        how.class = object_class(jni, object);
        how.object = object_identity(object);
    }
    if (!how.plain)
        how.trace = stack_of_wait(jni, w);
    if (w->locks)
        locks_wait(w, how.class, how.object, since);
    wait_begin(w, WAIT_OBJECT, &how);
    budget_end(COST_WAITS, cost);
}

static void put_monitor_wait(uint64_t thread, const struct wait *was, uint64_t ns, bool timed_out)
{
    struct jfr_event e;
    if (!monitor_wait_event_begin(&e, JFR_JAVA_MONITOR_WAIT, thread, was, ns))
        return;
    jfr_put_long(&e, 0);
    jfr_put_long(&e, was->timeout);
    jfr_put_byte(&e, timed_out);
    jfr_put_long(&e, was->object);
    jfr_commit(&e);
}

static void JNICALL on_waited(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                              jboolean timed_out)
{
    uint64_t ns, cost = budget_begin();
    at_start_timed_out(timed_out);
    struct waiter *w = waiter_self(jni, thread);
    struct wait was;
    at_start_timed_out(false);
    if (!w || !wait_end(w, WAIT_OBJECT, &was, &ns))
        return;
    if (w->late.mounted)
        mounts_late(w, &was, timed_out, &ns);
    if (w->locks)
        locks_waited(w, was.class, was.object, was.start + ns);
    if (!wait_left_out(&was, ns))
        put_monitor_wait(w->id, &was, ns, timed_out);
    budget_end(COST_WAITS, cost);
}

void threads_put_wait(uint64_t thread, enum wait_kind kind, const struct wait *was, uint64_t ns,
                      bool timed_out)
{
    switch (kind) {
    case WAIT_ENTER:
        threads_put_monitor_enter(thread, was, ns);
        break;
    case WAIT_OBJECT:
        put_monitor_wait(thread, was, ns, timed_out);
        break;
    case WAIT_SLEEP:
        threads_put_sleep(thread, was, ns);
        break;
    case WAIT_PARK:
        threads_put_park(thread, was, ns, false, 0);
        break;
    case WAIT_IO:
        threads_put_io_wait(thread, was, ns);
        break;
    case WAIT_UNMOUNTED:
        threads_put_unmounted(thread, was, ns);
        break;
    default:
        break;
    }
}

const struct vm_callbacks thread_monitor_events = {.ti = {.MonitorContendedEnter = on_enter,
                                                          .MonitorContendedEntered = on_entered,
                                                          .MonitorWait = on_wait,
                                                          .MonitorWaited = on_waited}};
