/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements raw monitors, with events when they are contended, and sends the events of Java
 * monitors.
 */
#include "jvmpi/monitors.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/timed_wait.h"
#include "jvmpi/ids.h"
#include "jvmpi/layer.h"
#include "jvmpi/objects.h"
#include "jvmpi/settle.h"
#include "jvmpi/sources.h"
#include "jvmpi/threads.h"

#include <stdlib.h>
#include <string.h>

/* ---- raw monitors: our own, so that they work in every phase, thread and callback ---- */

/*
 * A thread that wants to enter a raw monitor, or waits. The structure is on that thread's stack and
 * is linked under the monitor's mutex.
 */
struct party {
    JNIEnv *env;
    struct party *next;
};

struct _JVMPI_RawMonitor {
    pthread_mutex_t mutex; /* protects the members below; held only briefly */
    pthread_cond_t entry, waiters;
    char *name;
    bool silent, owned;
    pthread_t owner;
    JNIEnv *owner_env;
    /* returning: threads that were notified and do not run yet */
    int entries, entering, waiting, returning;
    uint64_t notified;
    struct party *entrants, *sleepers; /* as many as `entering` and `waiting` */
    struct _JVMPI_RawMonitor *next;    /* list of all monitors; protected by all_mutex */
};

static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct _JVMPI_RawMonitor *all;

static bool is_monitor(JVMPI_RawMonitor m)
{
    pthread_mutex_lock(&all_mutex);
    const struct _JVMPI_RawMonitor *i = all;
    while (i && i != m)
        i = i->next;
    pthread_mutex_unlock(&all_mutex);
    return i;
}

/* Returns true when the event is enabled. */
static bool report(JVMPI_RawMonitor m, jint type)
{
    JVMPI_Event e = {.event_type = type, .u.raw_monitor = {m->name, m}};
    bool on = !m->silent && layer_enabled(type);
    if (on)
        layer_notify(vm_jni(), &e);
    return on;
}

JVMPI_RawMonitor raw_monitor_create(char *name)
{
    struct _JVMPI_RawMonitor *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->name = strdup(name ? name : "");
    m->silent = name && name[0] == '_';
    pthread_mutex_init(&m->mutex, NULL);
    pthread_cond_init(&m->entry, NULL);
    timed_wait_init(&m->waiters);
    pthread_mutex_lock(&all_mutex);
    m->next = all;
    all = m;
    pthread_mutex_unlock(&all_mutex);
    return m;
}

static void join(struct party **list, struct party *me)
{
    me->env = vm_jni();
    me->next = *list;
    *list = me;
}

static void part(struct party **list, struct party *me)
{
    while (*list != me)
        list = &(*list)->next;
    *list = me->next;
}

static bool owns(const struct _JVMPI_RawMonitor *m)
{
    return m->owned && pthread_equal(m->owner, pthread_self());
}

/* Requires the mutex. */
static void acquire(JVMPI_RawMonitor m, int entries)
{
    struct party me;
    m->entering++;
    join(&m->entrants, &me);
    while (m->owned)
        pthread_cond_wait(&m->entry, &m->mutex);
    part(&m->entrants, &me);
    m->entering--;
    m->owned = true;
    m->owner = pthread_self();
    m->owner_env = vm_jni();
    m->entries = entries;
    my.raw_held++;
    thread_took_monitor();
}

void layer_raw_monitor_enter(JVMPI_RawMonitor m)
{
    if (!is_monitor(m))
        return;
    pthread_mutex_lock(&m->mutex);
    if (owns(m)) {
        m->entries++;
        pthread_mutex_unlock(&m->mutex);
        return;
    }
    bool contended = m->owned, begun = false;
    if (contended) {
        pthread_mutex_unlock(&m->mutex);
        begun = report(m, JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER);
        pthread_mutex_lock(&m->mutex);
    }
    acquire(m, 1);
    pthread_mutex_unlock(&m->mutex);
    if (contended && (begun || !layer_enabled(JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER)))
        (void)report(m, JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTERED);
}

void layer_raw_monitor_exit(JVMPI_RawMonitor m)
{
    if (!is_monitor(m))
        return;
    pthread_mutex_lock(&m->mutex);
    bool mine = owns(m), wanted = false;
    if (mine && --m->entries == 0) {
        m->owned = false;
        my.raw_held--;
        wanted = m->entering > 0 || m->returning > 0;
        pthread_cond_signal(&m->entry);
    }
    pthread_mutex_unlock(&m->mutex);
    if (wanted)
        report(m, JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT);
}

void layer_raw_monitor_wait(JVMPI_RawMonitor m, jlong ms)
{
    if (!is_monitor(m))
        return;
    pthread_mutex_lock(&m->mutex);
    if (owns(m)) {
        int entries = m->entries;
        uint64_t seen = m->notified;
        uint64_t end = now_ns() + (uint64_t)(ms > 0 ? ms : 0) * NS_PER_MS;
        struct timespec until = {(time_t)(end / NS_PER_SECOND), (long)(end % NS_PER_SECOND)};
        struct party me;
        m->owned = false;
        my.raw_held--;
        if (my.ending)
            layer_requests_release(); /* the thread may wait for one that requests a dump */
        m->waiting++;
        join(&m->sleepers, &me);
        pthread_cond_signal(&m->entry);
        if (m->entering > 0) {
            pthread_mutex_unlock(&m->mutex);
            report(m, JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT);
            pthread_mutex_lock(&m->mutex);
        }
        while (m->notified == seen && (ms <= 0 || now_ns() < end))
            if (ms > 0)
                pthread_cond_timedwait(&m->waiters, &m->mutex, &until);
            else
                pthread_cond_wait(&m->waiters, &m->mutex);
        part(&m->sleepers, &me);
        m->waiting--;
        if (m->returning > 0 && m->notified != seen)
            m->returning--;
        acquire(m, entries);
    }
    pthread_mutex_unlock(&m->mutex);
}

void layer_raw_monitor_notify_all(JVMPI_RawMonitor m)
{
    if (!is_monitor(m))
        return;
    pthread_mutex_lock(&m->mutex);
    if (owns(m)) {
        m->notified++;
        m->returning = m->waiting;
        pthread_cond_broadcast(&m->waiters);
    }
    pthread_mutex_unlock(&m->mutex);
}

void layer_raw_monitor_destroy(JVMPI_RawMonitor m)
{
    bool found = false;
    pthread_mutex_lock(&all_mutex);
    for (struct _JVMPI_RawMonitor **i = &all; *i && !found; i = found ? i : &(*i)->next) {
        if (*i == m) {
            *i = m->next;
            found = true;
        }
    }
    pthread_mutex_unlock(&all_mutex);
    if (!found)
        return;
    pthread_mutex_lock(&m->mutex);
    bool idle = !m->entering && !m->waiting;
    my.raw_held -= owns(m);
    pthread_mutex_unlock(&m->mutex);
    if (!idle)
        return; /* a thread is still inside, so the memory is not freed */
    pthread_cond_destroy(&m->entry);
    pthread_cond_destroy(&m->waiters);
    pthread_mutex_destroy(&m->mutex);
    free(m->name);
    free(m);
}

bool layer_raw_monitor_wanted(const JNIEnv *env, JNIEnv **ret_owner, bool *ret_mine)
{
    bool found = false;
    pthread_mutex_lock(&all_mutex);
    for (struct _JVMPI_RawMonitor *m = all; m && env && !found; m = m->next) {
        pthread_mutex_lock(&m->mutex);
        const struct party *p = m->owned ? m->entrants : NULL;
        while (p && p->env != env)
            p = p->next;
        if (p) {
            found = true;
            *ret_owner = m->owner_env;
            *ret_mine = owns(m);
        }
        pthread_mutex_unlock(&m->mutex);
    }
    pthread_mutex_unlock(&all_mutex);
    return found;
}

static void put_pointer(struct buf *b, const void *p)
{
    buf_bytes(b, &p, sizeof(p));
}

/* Adds the raw monitors that the dump has to contain. */
static void put_parties(struct buf *out, const struct party *list, const struct map *threads)
{
    uint32_t n = 0;
    for (const struct party *p = list; p; p = p->next)
        n += map_get(threads, (uintptr_t)p->env) != NULL;
    buf_be32(out, n);
    for (; list; list = list->next)
        if (map_get(threads, (uintptr_t)list->env))
            put_pointer(out, list->env);
}

void layer_raw_monitors_put(struct buf *out, const struct map *threads)
{
    pthread_mutex_lock(&all_mutex);
    for (struct _JVMPI_RawMonitor *m = all; m; m = m->next) {
        pthread_mutex_lock(&m->mutex);
        buf_u8(out, JVMPI_MONITOR_RAW);
        put_pointer(out, m->name);
        put_pointer(out, m);
        bool owned = m->owned && map_get(threads, (uintptr_t)m->owner_env);
        put_pointer(out, owned ? m->owner_env : NULL);
        buf_be32(out, (uint32_t)(owned ? m->entries : 0));
        put_parties(out, m->entrants, threads);
        put_parties(out, m->sleepers, threads);
        pthread_mutex_unlock(&m->mutex);
    }
    pthread_mutex_unlock(&all_mutex);
}

/* ---- Java monitors ---- */

/*
 * Normally the end of a wait is reported only if its beginning was: threads may begin to wait
 * before the layer can report it. If the event of the beginning is disabled, the end is reported
 * regardless. The same applies to Thread.sleep (sleep.c).
 */
static __thread bool entering_reported, waiting_reported;

static bool may_report(JNIEnv *env, jint type, jthread thread)
{
    return layer_enabled(type) && atomic_load(&layer.live) && thread_ready(my_own(), env) &&
           !layer_thread_is_virtual(env, thread);
}

static void report_java(JNIEnv *env, jint type, jobject object)
{
    JVMPI_Event e = {.event_type = type, .u.monitor = {layer_report_object(env, object)}};
    layer_notify_naming(env, &e, e.u.monitor.object, object);
}

static void JNICALL on_contended_enter(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object)
{
    if (layer_thread_is_virtual(env, thread))
        return;
    bool may = may_report(env, JVMPI_EVENT_MONITOR_CONTENDED_ENTER, thread);
    if (may)
        report_java(env, JVMPI_EVENT_MONITOR_CONTENDED_ENTER, object);
    /* set only now, because the event's handler may enter monitors as well */
    entering_reported = may;
    if (atomic_load(&layer.live) && thread_ready(my_own(), env))
        layer_contention_began(object);
}

static void JNICALL on_contended_entered(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object)
{
    layer_contention_ended();
    if ((entering_reported || !layer_enabled(JVMPI_EVENT_MONITOR_CONTENDED_ENTER)) &&
        may_report(env, JVMPI_EVENT_MONITOR_CONTENDED_ENTERED, thread))
        report_java(env, JVMPI_EVENT_MONITOR_CONTENDED_ENTERED, object);
    entering_reported = false;
}

static __thread uint64_t wait_began_ns;

static void report_wait(JNIEnv *env, jint type, jobject object, jlong ms)
{
    JVMPI_Event e = {.event_type = type, .u.monitor_wait = {layer_report_object(env, object), ms}};
    layer_notify_naming(env, &e, e.u.monitor_wait.object, object);
}

static void JNICALL on_wait(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
                            jlong timeout)
{
    bool may = may_report(env, JVMPI_EVENT_MONITOR_WAIT, thread);
    if (may)
        report_wait(env, JVMPI_EVENT_MONITOR_WAIT, object, timeout);
    waiting_reported = may;
}

/*
 * Called before every wait, even if only MONITOR_WAITED is enabled, because that event has the
 * duration of the wait.
 */
static void JNICALL on_wait_began(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
                                  jlong timeout)
{
    wait_began_ns = now_ns();
}

/*
 * Called at the end of every wait. JVM TI does not report the beginning of a wait for another
 * thread that initializes a class, but it does report its end.
 */
static void JNICALL on_waited(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
                              jboolean timed_out)
{
    uint64_t now = now_ns();
    if ((waiting_reported || !layer_enabled(JVMPI_EVENT_MONITOR_WAIT)) &&
        may_report(env, JVMPI_EVENT_MONITOR_WAITED, thread))
        report_wait(env, JVMPI_EVENT_MONITOR_WAITED, object,
                    wait_began_ns ? (jlong)((now - wait_began_ns) / NS_PER_MS) : 0);
    waiting_reported = false;
    wait_began_ns = 0;
}

static void JNICALL on_wait_watched(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
                                    jlong timeout)
{
    if (atomic_load(&layer.live) && !layer_thread_is_virtual(env, thread))
        thread_waits_on(env, object);
}

static void JNICALL on_waited_watched(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
                                      jboolean timed_out)
{
    if (atomic_load(&layer.live) && !layer_thread_is_virtual(env, thread))
        thread_waits_on(env, NULL);
}

int layer_waits_watch(void)
{
    static const struct vm_callbacks watch = {
        .ti = {.MonitorWait = on_wait_watched, .MonitorWaited = on_waited_watched}};
    return vm.version < 23 || !vm.have.can_generate_monitor_events ? 0 : vm_events_on(&watch);
}

const struct vm_callbacks contention_events = {
    .ti = {.MonitorContendedEnter = on_contended_enter,
           .MonitorContendedEntered = on_contended_entered}};
const struct vm_callbacks wait_events = {.ti = {.MonitorWait = on_wait}};
const struct vm_callbacks waited_events = {
    .ti = {.MonitorWait = on_wait_began, .MonitorWaited = on_waited}};
