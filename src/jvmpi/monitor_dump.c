/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor dump (specification, section 4.4): all threads with their traces and status, and all
 * monitors in use.
 */
#include "base/buf.h"
#include "base/map.h"
#include "jvmpi/layer.h"

#include <stdlib.h>

enum { TRACE_DEPTH = 256 };

struct monitors {
    JNIEnv *env;
    struct buf out;
    struct map seen;    /* ids of the objects */
    struct map threads; /* environments of the threads whose traces the dump has */
};

static void put_pointer(struct buf *b, const void *p)
{
    buf_bytes(b, &p, sizeof(p));
}

/* Returns the thread's environment if the dump has its trace. */
static JNIEnv *env_in_dump(struct monitors *m, jthread thread)
{
    JNIEnv *env = thread ? env_of(m->env, thread) : NULL;
    return env && map_get(&m->threads, (uintptr_t)env) ? env : NULL;
}

static void put_threads(struct monitors *m, jthread *threads, jint n)
{
    size_t at = m->out.len;
    uint32_t reported = 0;
    buf_be32(&m->out, 0);
    for (jint i = 0; i < n; i++) {
        JNIEnv *env = env_in_dump(m, threads[i]);
        reported += env != NULL;
        if (env)
            put_pointer(&m->out, env);
    }
    for (size_t i = 0; i < 4 && !buf_error(&m->out); i++)
        m->out.data[at + i] = (uint8_t)(reported >> (24 - 8 * i));
}

static void put_monitor(struct monitors *m, jobject object)
{
    bool added = false;
    jvmtiMonitorUsage usage = {0};
    jobjectID id = report_object(m->env, object);
    if (!id || !map_at(&m->seen, (uintptr_t)id, 1, &added) || !added ||
        (*vm.ti)->GetObjectMonitorUsage(vm.ti, object, &usage))
        return;
    buf_u8(&m->out, JVMPI_MONITOR_JAVA);
    put_pointer(&m->out, id);
    JNIEnv *owner = env_in_dump(m, usage.owner);
    put_pointer(&m->out, owner);
    /* For the VM an owner that is just leaving has no entries any more. */
    buf_be32(&m->out, (uint32_t)(!owner ? 0 : usage.entry_count > 0 ? usage.entry_count : 1));
    put_threads(m, usage.waiters, usage.waiter_count);
    put_threads(m, usage.notify_waiters, usage.notify_waiter_count);
    for (jint i = 0; i < usage.waiter_count; i++)
        (*m->env)->DeleteLocalRef(m->env, usage.waiters[i]);
    for (jint i = 0; i < usage.notify_waiter_count; i++)
        (*m->env)->DeleteLocalRef(m->env, usage.notify_waiters[i]);
    if (usage.owner)
        (*m->env)->DeleteLocalRef(m->env, usage.owner);
    vm_free(usage.waiters);
    vm_free(usage.notify_waiters);
}

/* Adds the monitors that a thread holds, and the one that it wants or waits on. */
static void put_monitors_of(struct monitors *m, jthread thread)
{
    jint n = 0;
    jobject *owned = NULL, wanted = NULL;
    if (!(*vm.ti)->GetOwnedMonitorInfo(vm.ti, thread, &n, &owned)) {
        for (jint i = 0; i < n; i++) {
            put_monitor(m, owned[i]);
            (*m->env)->DeleteLocalRef(m->env, owned[i]);
        }
        vm_free(owned);
    }
    if (!(*vm.ti)->GetCurrentContendedMonitor(vm.ti, thread, &wanted) && wanted) {
        put_monitor(m, wanted);
        (*m->env)->DeleteLocalRef(m->env, wanted);
    }
}

jint request_monitor_dump(JNIEnv *env)
{
    struct monitors m = {env, BUF(INT32_MAX), {0}, {0}};
    jint n = 0, used = 0;
    jthread *threads = NULL;
    thread_ends_hold(); /* before the list is made: it has no thread whose end is reported */
    if ((*vm.ti)->GetAllThreads(vm.ti, &n, &threads)) {
        thread_ends_release();
        return JVMPI_FAIL;
    }
    brackets_hold();
    JVMPI_CallTrace *traces = calloc((size_t)n + 1, sizeof(*traces));
    JVMPI_CallFrame *frames = calloc((size_t)n * TRACE_DEPTH + 1, sizeof(*frames));
    jint *status = calloc((size_t)n + 1, sizeof(*status));
    bool ok = traces && frames && status;
    for (jint i = 0; i < n && ok; i++) {
        JNIEnv *thread_env = env_of(env, threads[i]);
        if (!env_is_reported(thread_env))
            continue;
        traces[used].env_id = thread_env;
        traces[used].frames = frames + (size_t)used * TRACE_DEPTH;
        get_call_trace(&traces[used], TRACE_DEPTH);
        status[used++] = get_thread_status(thread_env);
        ok = map_put(&m.threads, (uintptr_t)thread_env, 1) == 0;
    }
    for (jint i = 0; i < n; i++) {
        if (ok)
            put_monitors_of(&m, threads[i]);
        (*env)->DeleteLocalRef(env, threads[i]);
    }
    vm_free(threads);
    raw_monitors_put(&m.out, &m.threads);
    if (atomic_load(&layer.stage) != STAGE_OPEN)
        /* Threads may run methods of classes whose CLASS_LOAD was left out. */
        classes_replay(env);
    jint ret = ok && !buf_error(&m.out) ? JVMPI_SUCCESS : JVMPI_FAIL;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_MONITOR_DUMP | JVMPI_REQUESTED_EVENT,
                     .u.monitor_dump = {(char *)m.out.data, (char *)m.out.data + m.out.len, used,
                                        traces, status}};
    if (ret == JVMPI_SUCCESS)
        layer_notify(env, &e);
    brackets_release();
    thread_ends_release();
    free(traces);
    free(frames);
    free(status);
    buf_release(&m.out);
    map_release(&m.seen);
    map_release(&m.threads);
    return ret;
}
