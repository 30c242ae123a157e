/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the monitor dump (specification, section 4.4), which has all threads with their traces and
 * status, and all monitors in use.
 */
#include "agent/vm/monitor_usage.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "jvmpi/classes.h"
#include "jvmpi/dumps.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/layer.h"
#include "jvmpi/lookup.h"
#include "jvmpi/memory.h"
#include "jvmpi/monitors.h"
#include "jvmpi/objects.h"
#include "jvmpi/settle.h"
#include "jvmpi/threads.h"
#include "jvmpi/traces.h"

#include <stdlib.h>

enum { TRACE_DEPTH = 256 };

/* A thread that waits for a monitor. */
struct party {
    JNIEnv *env;
    size_t monitor; /* index in the list */
    bool notify;    /* the thread is in Object.wait; otherwise it waits to enter */
};

struct monitor {
    jobjectID id;
    JNIEnv *owner;
    jint entries;
};

struct monitors {
    JNIEnv *env;
    struct map seen;    /* ids of the objects */
    struct map threads; /* environments of the threads whose traces the dump has */
    struct map places;  /* environment -> 1 + index of the thread's only party */
    monitor_entrant_vec entrants;
    VEC(struct monitor) list;
    VEC(struct party) parties;
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

/*
 * The VM may report a thread that is just entering among those that wait, and the program continues
 * between two requests. So a thread that owns the monitor does not count as waiting for it, and a
 * thread waits for one monitor at most: the one where it was seen last.
 */
static int add_parties(struct monitors *m, const jthread *threads, jint n, bool notify)
{
    size_t monitor = m->list.len - 1;
    int r = 0;
    for (jint i = 0; i < n && r == 0; i++) {
        JNIEnv *env = env_in_dump(m, threads[i]);
        if (!env || (env == m->list.data[monitor].owner && !layer_mutation("waiting-owner")))
            continue;
        r = vec_push(&m->parties, ((struct party){env, monitor, notify}));
        if (r == 0)
            r = map_put(&m->places, (uintptr_t)env, m->parties.len);
    }
    return r;
}

static int add_monitor(struct monitors *m, jobject object)
{
    bool added = false;
    jvmtiMonitorUsage usage;
    jobjectID id = layer_report_object(m->env, object);
    if (!id || !map_at(&m->seen, (uintptr_t)id, 1, &added) || !added ||
        monitor_usage(vm.ti, m->env, &m->entrants, object, &usage))
        return 0;
    JNIEnv *owner = env_in_dump(m, usage.owner);
    /* When an owner is just leaving, the VM reports that it has entered no times. */
    jint entries = !owner ? 0 : usage.entry_count > 0 ? usage.entry_count : 1;
    int r = vec_push(&m->list, ((struct monitor){id, owner, entries}));
    if (r == 0 && layer_mutation("waiting-owner"))
        r = add_parties(m, &usage.owner, 1, false);
    if (r == 0)
        r = add_parties(m, usage.waiters, usage.waiter_count, false);
    if (r == 0)
        r = add_parties(m, usage.notify_waiters, usage.notify_waiter_count, true);
    monitor_usage_release(vm.ti, m->env, &usage);
    return r;
}

/* Adds the monitors that a thread holds, and the one that it wants to enter or waits on. */
static int add_monitors_of(struct monitors *m, const struct reported_thread *t)
{
    jint n = 0;
    int r = 0;
    jobject *owned = NULL, wanted = NULL;
    if (!thread_owned_monitors(t->thread, &n, &owned)) {
        for (jint i = 0; i < n; i++) {
            r = r ? r : add_monitor(m, owned[i]);
            (*m->env)->DeleteLocalRef(m->env, owned[i]);
        }
        vm_free(owned);
    }
    if ((*vm.ti)->GetCurrentContendedMonitor(vm.ti, t->thread, &wanted) || !wanted)
        wanted = layer_object_of(m->env, thread_waited_object(t->env));
    if (wanted && r == 0)
        r = add_monitor(m, wanted);
    (*m->env)->DeleteLocalRef(m->env, wanted);
    return r;
}

static void put_parties(struct monitors *m, struct buf *out, size_t monitor, size_t first,
                        bool notify)
{
    uint32_t n = 0;
    size_t at = out->len;
    buf_be32(out, 0);
    for (size_t i = first; i < m->parties.len && m->parties.data[i].monitor == monitor; i++) {
        const struct party *p = &m->parties.data[i];
        const uint64_t *place = map_get(&m->places, (uintptr_t)p->env);
        if (p->notify != notify || *place != i + 1)
            continue;
        put_pointer(out, p->env);
        n++;
    }
    for (size_t i = 0; i < 4 && !buf_error(out); i++)
        out->data[at + i] = (uint8_t)(n >> (24 - 8 * i));
}

static void put_monitors(struct monitors *m, struct buf *out)
{
    size_t first = 0; /* of the monitor's parties */
    for (size_t i = 0; i < m->list.len; i++) {
        const struct monitor *monitor = &m->list.data[i];
        buf_u8(out, JVMPI_MONITOR_JAVA);
        put_pointer(out, monitor->id);
        put_pointer(out, monitor->owner);
        buf_be32(out, (uint32_t)monitor->entries);
        put_parties(m, out, i, first, false);
        put_parties(m, out, i, first, true);
        while (first < m->parties.len && m->parties.data[first].monitor == i)
            first++;
    }
}

/* Makes the status of a thread agree with the lists, which were read at another time. */
static jint agreed_status(const struct monitors *m, const JNIEnv *env, jint status)
{
    enum { FLAGS = JVMPI_THREAD_SUSPENDED | JVMPI_THREAD_INTERRUPTED };

    const uint64_t *place = map_get(&m->places, (uintptr_t)env);
    if (place)
        return (status & FLAGS) | (m->parties.data[*place - 1].notify ? JVMPI_THREAD_CONDVAR_WAIT
                                                                      : JVMPI_THREAD_MONITOR_WAIT);
    bool entered = (status & ~FLAGS) == JVMPI_THREAD_MONITOR_WAIT;
    return entered ? (status & FLAGS) | JVMPI_THREAD_RUNNABLE : status;
}

static int put_trace(struct monitors *m, JNIEnv *env, JVMPI_CallTrace *trace, jint *status)
{
    trace->env_id = env;
    layer_get_call_trace(trace, TRACE_DEPTH);
    *status = layer_get_thread_status(env);
    return map_put(&m->threads, (uintptr_t)env, 1);
}

/* The arrays of the event. */
struct taken {
    JVMPI_CallTrace *traces;
    JVMPI_CallFrame *frames;
    jint *status;
};

/* Makes the dump without the raw monitors. */
static bool take_monitors(struct monitors *m, const reported_thread_vec *threads, struct taken *t)
{
    size_t n = threads->len;
    t->traces = calloc(n + 1, sizeof(*t->traces));
    t->frames = calloc(n * TRACE_DEPTH + 1, sizeof(*t->frames));
    t->status = calloc(n + 1, sizeof(*t->status));
    bool ok = t->traces && t->frames && t->status;
    for (size_t i = 0; ok && i < n; i++) {
        t->traces[i].frames = t->frames + i * TRACE_DEPTH;
        ok = !put_trace(m, threads->data[i].env, &t->traces[i], &t->status[i]) &&
             (!threads->data[i].thread ||
              !monitor_entrants_add(vm.ti, m->env, &m->entrants, threads->data[i].thread));
    }
    for (size_t i = 0; ok && i < n; i++)
        ok = !threads->data[i].thread || !add_monitors_of(m, &threads->data[i]);
    for (size_t i = 0; ok && i < n; i++)
        t->status[i] = agreed_status(m, threads->data[i].env, t->status[i]);
    return ok;
}

jint layer_request_monitor_dump(JNIEnv *env)
{
    struct monitors m = {.env = env};
    struct buf out = BUF(INT32_MAX);
    struct taken t = {0};
    reported_thread_vec threads = {0};
    /* before the list is made, so that it has no thread whose end is reported */
    layer_known_freeze();
    layer_brackets_hold();
    bool ok = threads_reported(env, &threads) == 0 && take_monitors(&m, &threads, &t);
    if (ok)
        put_monitors(&m, &out);
    layer_raw_monitors_put(&out, &m.threads);
    if (atomic_load(&layer.stage) != STAGE_OPEN)
        /* Threads may run methods of classes whose CLASS_LOAD was left out. */
        classes_replay(env);
    jint ret = ok && !buf_error(&out) ? JVMPI_SUCCESS : JVMPI_FAIL;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_MONITOR_DUMP | JVMPI_REQUESTED_EVENT,
                     .u.monitor_dump = {(char *)out.data, (char *)out.data + out.len,
                                        (jint)threads.len, t.traces, t.status}};
    layer_reports_settle();
    if (ret == JVMPI_SUCCESS)
        layer_notify(env, &e);
    layer_brackets_release();
    layer_known_unfreeze();
    threads_release(env, &threads);
    monitor_entrants_release(env, &m.entrants);
    free(t.traces);
    free(t.frames);
    free(t.status);
    buf_release(&out);
    map_release(&m.seen);
    map_release(&m.threads);
    map_release(&m.places);
    vec_release(&m.list);
    vec_release(&m.parties);
    return ret;
}
