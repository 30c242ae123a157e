/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor dump (specification, section 4.4): all threads with their traces and status, and all
 * monitors in use.
 */
#include "agent/vm/monitor_usage.h"
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
    monitor_entrant_vec entrants;
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
    jvmtiMonitorUsage usage;
    jobjectID id = report_object(m->env, object);
    if (!id || !map_at(&m->seen, (uintptr_t)id, 1, &added) || !added ||
        monitor_usage(vm.ti, m->env, &m->entrants, object, &usage))
        return;
    buf_u8(&m->out, JVMPI_MONITOR_JAVA);
    put_pointer(&m->out, id);
    JNIEnv *owner = env_in_dump(m, usage.owner);
    put_pointer(&m->out, owner);
    /* For the VM an owner that is just leaving has no entries any more. */
    buf_be32(&m->out, (uint32_t)(!owner ? 0 : usage.entry_count > 0 ? usage.entry_count : 1));
    put_threads(m, usage.waiters, usage.waiter_count);
    put_threads(m, usage.notify_waiters, usage.notify_waiter_count);
    monitor_usage_release(vm.ti, m->env, &usage);
}

/* Adds the monitors that a thread holds, and the one that it wants or waits on. */
static void put_monitors_of(struct monitors *m, const struct reported_thread *t)
{
    jint n = 0;
    jobject *owned = NULL, wanted = NULL;
    if (!(*vm.ti)->GetOwnedMonitorInfo(vm.ti, t->thread, &n, &owned)) {
        for (jint i = 0; i < n; i++) {
            put_monitor(m, owned[i]);
            (*m->env)->DeleteLocalRef(m->env, owned[i]);
        }
        vm_free(owned);
    }
    if ((*vm.ti)->GetCurrentContendedMonitor(vm.ti, t->thread, &wanted) || !wanted)
        wanted = object_of(m->env, thread_waited_object(t->env));
    if (wanted)
        put_monitor(m, wanted);
    (*m->env)->DeleteLocalRef(m->env, wanted);
}

static int put_trace(struct monitors *m, JNIEnv *env, JVMPI_CallTrace *trace, jint *status)
{
    trace->env_id = env;
    get_call_trace(trace, TRACE_DEPTH);
    *status = get_thread_status(env);
    return map_put(&m->threads, (uintptr_t)env, 1);
}

jint request_monitor_dump(JNIEnv *env)
{
    struct monitors m = {.env = env, .out = BUF(INT32_MAX)};
    reported_thread_vec threads = {0};
    thread_ends_hold(); /* before the list is made: it has no thread whose end is reported */
    brackets_hold();
    bool ok = threads_reported(env, &threads) == 0;
    size_t n = threads.len;
    JVMPI_CallTrace *traces = calloc(n + 1, sizeof(*traces));
    JVMPI_CallFrame *frames = calloc(n * TRACE_DEPTH + 1, sizeof(*frames));
    jint *status = calloc(n + 1, sizeof(*status));
    ok = ok && traces && frames && status;
    for (size_t i = 0; ok && i < n; i++) {
        traces[i].frames = frames + i * TRACE_DEPTH;
        ok = !put_trace(&m, threads.data[i].env, &traces[i], &status[i]) &&
             !monitor_entrants_add(vm.ti, env, &m.entrants, threads.data[i].thread);
    }
    for (size_t i = 0; ok && i < n; i++)
        put_monitors_of(&m, &threads.data[i]);
    threads_release(env, &threads);
    monitor_entrants_release(env, &m.entrants);
    raw_monitors_put(&m.out, &m.threads);
    if (atomic_load(&layer.stage) != STAGE_OPEN)
        /* Threads may run methods of classes whose CLASS_LOAD was left out. */
        classes_replay(env);
    jint ret = ok && !buf_error(&m.out) ? JVMPI_SUCCESS : JVMPI_FAIL;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_MONITOR_DUMP | JVMPI_REQUESTED_EVENT,
                     .u.monitor_dump = {(char *)m.out.data, (char *)m.out.data + m.out.len, (jint)n,
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
