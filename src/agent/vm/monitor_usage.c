/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/monitor_usage.h"

#include <errno.h>
#include <string.h>

enum { RIGHT_SINCE = 23 };

int monitor_entrants_add(jvmtiEnv *ti, JNIEnv *jni, monitor_entrant_vec *entrants, jthread thread)
{
    jint state = 0;
    jobject monitor = NULL;
    if (vm.version >= RIGHT_SINCE || (*ti)->GetThreadState(ti, thread, &state) ||
        !(state & JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER) ||
        (*ti)->GetCurrentContendedMonitor(ti, thread, &monitor) || !monitor)
        return 0;
    struct monitor_entrant e = {(*jni)->NewLocalRef(jni, thread), monitor};
    if (e.thread && vec_push(entrants, e) == 0)
        return 0;
    (*jni)->DeleteLocalRef(jni, e.thread);
    (*jni)->DeleteLocalRef(jni, monitor);
    return -ENOMEM;
}

int monitor_entrants_find(jvmtiEnv *ti, JNIEnv *jni, monitor_entrant_vec *entrants)
{
    jint n = 0;
    jthread *threads = NULL;
    int r = 0;
    if (vm.version >= RIGHT_SINCE)
        return 0;
    if (vm_all_threads(&n, &threads))
        return -ENOTSUP;
    for (jint i = 0; i < n; i++) {
        if (r == 0)
            r = monitor_entrants_add(ti, jni, entrants, threads[i]);
        (*jni)->DeleteLocalRef(jni, threads[i]);
    }
    (*ti)->Deallocate(ti, (unsigned char *)threads);
    return r;
}

void monitor_entrants_release(JNIEnv *jni, monitor_entrant_vec *entrants)
{
    for (size_t i = 0; i < entrants->len; i++) {
        (*jni)->DeleteLocalRef(jni, entrants->data[i].thread);
        (*jni)->DeleteLocalRef(jni, entrants->data[i].monitor);
    }
    vec_release(entrants);
}

static bool is_in(JNIEnv *jni, jthread thread, const jthread *list, jint n)
{
    for (jint i = 0; i < n; i++)
        if ((*jni)->IsSameObject(jni, list[i], thread))
            return true;
    return false;
}

/* Keeps each thread once, without those that are in `others` and without NULL. */
static jint keep_once(JNIEnv *jni, jthread *list, jint n, const jthread *others, jint n_others)
{
    jint kept = 0;
    for (jint i = 0; i < n; i++) {
        jthread t = list[i];
        if (t && !is_in(jni, t, list, kept) && !is_in(jni, t, others, n_others))
            list[kept++] = t;
        else
            (*jni)->DeleteLocalRef(jni, t);
    }
    return kept;
}

/* Adds the threads that wait to enter and that the VM has not named. */
static jvmtiError add_entrants(jvmtiEnv *ti, JNIEnv *jni, const monitor_entrant_vec *entrants,
                               jobject monitor, jvmtiMonitorUsage *u)
{
    unsigned char *memory = NULL;
    jint n = u->waiter_count;
    jlong bytes = (jlong)(((size_t)n + entrants->len) * sizeof(jthread));
    jvmtiError error = entrants->len ? (*ti)->Allocate(ti, bytes, &memory) : JVMTI_ERROR_NONE;
    if (error || !memory)
        return error;
    jthread *all = (jthread *)(void *)memory;
    if (n)
        memcpy(all, u->waiters, (size_t)n * sizeof(*all));
    for (size_t i = 0; i < entrants->len; i++) {
        const struct monitor_entrant *e = &entrants->data[i];
        if ((*jni)->IsSameObject(jni, e->monitor, monitor) &&
            !(*jni)->IsSameObject(jni, e->thread, u->owner) && !is_in(jni, e->thread, all, n) &&
            !is_in(jni, e->thread, u->notify_waiters, u->notify_waiter_count))
            all[n++] = (*jni)->NewLocalRef(jni, e->thread);
    }
    (*ti)->Deallocate(ti, (unsigned char *)u->waiters);
    u->waiters = all;
    u->waiter_count = n;
    return JVMTI_ERROR_NONE;
}

jvmtiError monitor_usage(jvmtiEnv *ti, JNIEnv *jni, const monitor_entrant_vec *entrants,
                         jobject monitor, jvmtiMonitorUsage *ret)
{
    jvmtiMonitorUsage u = {0};
    jvmtiError error = (*ti)->GetObjectMonitorUsage(ti, monitor, &u);
    if (!error && vm.version < RIGHT_SINCE) {
        u.notify_waiter_count = keep_once(jni, u.notify_waiters, u.notify_waiter_count, NULL, 0);
        u.waiter_count =
            keep_once(jni, u.waiters, u.waiter_count, u.notify_waiters, u.notify_waiter_count);
        error = add_entrants(ti, jni, entrants, monitor, &u);
        if (error)
            monitor_usage_release(ti, jni, &u);
    }
    if (!error)
        *ret = u;
    return error;
}

void monitor_usage_release(jvmtiEnv *ti, JNIEnv *jni, jvmtiMonitorUsage *u)
{
    for (jint i = 0; i < u->waiter_count; i++)
        (*jni)->DeleteLocalRef(jni, u->waiters[i]);
    for (jint i = 0; i < u->notify_waiter_count; i++)
        (*jni)->DeleteLocalRef(jni, u->notify_waiters[i]);
    (*jni)->DeleteLocalRef(jni, u->owner);
    (*ti)->Deallocate(ti, (unsigned char *)u->waiters);
    (*ti)->Deallocate(ti, (unsigned char *)u->notify_waiters);
    *u = (jvmtiMonitorUsage){0};
}
