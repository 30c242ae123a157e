/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor dump (specification, section 4.4): all threads with their traces and status, all monitors that are in use. */
#include "base/buf.h"
#include "base/map.h"
#include "jvmpi/layer.h"

#include <stdlib.h>

enum { TRACE_DEPTH = 256 };

struct monitors {
    JNIEnv *env;
    struct buf out;
    struct map seen; /* ids of the objects */
};

static void put_pointer(struct buf *b, const void *p)
{
    buf_bytes(b, &p, sizeof(p));
}

static void put_threads(struct monitors *m, jthread *threads, jint n)
{
    buf_be32(&m->out, (uint32_t)n);
    for (jint i = 0; i < n; i++)
        put_pointer(&m->out, env_of(m->env, threads[i]));
}

static void put_monitor(struct monitors *m, jobject object)
{
    bool added = false;
    jvmtiMonitorUsage usage = {0};
    jobjectID id = id_of(object);
    if (!id || !map_at(&m->seen, (uintptr_t)id, 1, &added) || !added || (*vm.ti)->GetObjectMonitorUsage(vm.ti, object, &usage))
        return;
    buf_u8(&m->out, JVMPI_MONITOR_JAVA);
    put_pointer(&m->out, id);
    put_pointer(&m->out, usage.owner ? env_of(m->env, usage.owner) : NULL);
    buf_be32(&m->out, (uint32_t)usage.entry_count);
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

/* The monitors a thread holds, and the one it wants or waits on. */
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
    struct monitors m = {env, BUF(INT32_MAX), {0}};
    jint n = 0, used = 0;
    jthread *threads = NULL;
    if ((*vm.ti)->GetAllThreads(vm.ti, &n, &threads))
        return JVMPI_FAIL;
    JVMPI_CallTrace *traces = calloc((size_t)n + 1, sizeof(*traces));
    JVMPI_CallFrame *frames = calloc((size_t)n * TRACE_DEPTH + 1, sizeof(*frames));
    jint *status = calloc((size_t)n + 1, sizeof(*status));
    for (jint i = 0; i < n && traces && frames && status; i++) {
        JNIEnv *thread_env = env_of(env, threads[i]);
        if (thread_env) {
            traces[used].env_id = thread_env;
            traces[used].frames = frames + (size_t)used * TRACE_DEPTH;
            get_call_trace(&traces[used], TRACE_DEPTH);
            status[used++] = get_thread_status(thread_env);
        }
        put_monitors_of(&m, threads[i]);
        (*env)->DeleteLocalRef(env, threads[i]);
    }
    vm_free(threads);
    raw_monitors_put(&m.out);
    jint ret = traces && frames && status && !buf_error(&m.out) ? JVMPI_SUCCESS : JVMPI_FAIL;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_MONITOR_DUMP | JVMPI_REQUESTED_EVENT,
                     .u.monitor_dump = {(char *)m.out.data, (char *)m.out.data + m.out.len, used, traces, status}};
    if (ret == JVMPI_SUCCESS)
        notify(env, &e);
    free(traces);
    free(frames);
    free(status);
    buf_release(&m.out);
    map_release(&m.seen);
    return ret;
}
