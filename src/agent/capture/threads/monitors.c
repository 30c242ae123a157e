/* SPDX-License-Identifier: Apache-2.0 */
/* monContendedEnter, monContendedEntered, monWait, monWaited: JVM TI's monitor events. */
#include "agent/capture/threads/threads.h"

#include "base/clock.h"

void put_monitor_enter(const struct waiter *w, const struct wait *how, uint64_t ns)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, JFR_JAVA_MONITOR_ENTER, 0, &e))
        return;
    jfr_put_time(&e, how->start);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)how->trace);
    jfr_put_long(&e, (int64_t)how->class);
    jfr_put_long(&e, (int64_t)how->owner);
    jfr_put_long(&e, how->object);
    jfr_commit(&e);
}

static void JNICALL on_enter(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object)
{
    uint64_t since = now_ns();
    struct waiter *w = waiter_self(jni, thread);
    if (!w)
        return;
    struct wait how = {.start = since};
    how.owner = owner_of_pending(jni, object, &how.monitor);
    how.class = object_class(jni, object);
    how.object = object_identity(object);
    if (w->arrived && locks_arrived(w, how.object))
        how.start = w->arrived;
    how.trace = stack_here(jni, w);
    wait_begin(w, WAIT_ENTER, &how);
}

/* Here the thread holds the monitor: nothing but the event. (After wait() virtual threads post one without an enter.) */
static void JNICALL on_entered(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object)
{
    struct waiter *w = waiter_self(jni, thread);
    struct wait was;
    uint64_t ns;
    if (!w || !wait_end(w, WAIT_ENTER, &was, &ns))
        return;
    w->entered = was.start + ns;
    put_monitor_enter(w, &was, ns);
}

static void JNICALL on_wait(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object, jlong timeout)
{
    uint64_t since = now_ns();
    struct waiter *w = waiter_self(jni, thread);
    if (!w)
        return;
    struct wait how = {
        .start = since, .timeout = timeout, .class = object_class(jni, object), .object = object_identity(object)};
    how.trace = stack_here(jni, w);
    if (w->locks)
        locks_wait(w, how.class, how.object, since);
    wait_begin(w, WAIT_OBJECT, &how);
}

static void JNICALL on_waited(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object, jboolean timed_out)
{
    struct waiter *w = waiter_self(jni, thread);
    struct wait was;
    uint64_t ns;
    struct jfr_event e;
    if (!w || !wait_end(w, WAIT_OBJECT, &was, &ns))
        return;
    if (w->locks)
        locks_waited(w, was.class, was.object, was.start + ns);
    if (!jfr_begin(thread_capture.jfr, JFR_JAVA_MONITOR_WAIT, 0, &e))
        return;
    jfr_put_time(&e, was.start);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)was.trace);
    jfr_put_long(&e, (int64_t)was.class);
    jfr_put_long(&e, 0);
    jfr_put_long(&e, was.timeout);
    jfr_put_byte(&e, timed_out);
    jfr_put_long(&e, was.object);
    jfr_commit(&e);
}

const struct vm_callbacks thread_monitor_events = {.ti = {.MonitorContendedEnter = on_enter,
                                                          .MonitorContendedEntered = on_entered,
                                                          .MonitorWait = on_wait,
                                                          .MonitorWaited = on_waited}};
