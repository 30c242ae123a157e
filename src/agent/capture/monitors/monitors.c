/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor=y writes the time blocked at monitors by class, stack and (with thread=y) thread, WAIT
 * and WAITED lines as they happen, and a dump of all monitors. Stacks are walked before the thread
 * blocks, never while it holds the monitor that others wait for.
 */
#include "agent/capture/monitors/monitors.h"

#include "agent/capture/monitors/sites.h"
#include "agent/session/session.h"
#include "agent/vm/virtual_list.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WAITS = 1 << 20 };

#define LIST_NS NS_PER_SECOND /* time for examining virtual threads that exist already */

/* A WAIT or WAITED line that the worker thread has not printed yet. */
struct wait_line {
    uint32_t class, thread;
    int64_t ms; /* the timeout, or the time waited */
    bool over;
};

/*
 * What a thread is doing. The thread itself writes it, but a dump counts the time for which a
 * thread has been blocked so far.
 */
struct activity {
    /*
     * Since when it is blocked, in ns, shifted left by one; the lowest bit is set once a dump has
     * counted it. 0: it is not blocked. Written after `site`.
     */
    _Atomic uint64_t since;
    _Atomic uint32_t site; /* site + 1; 0: none */
    /* It was blocked when the recording began; its site is known when it has the monitor. */
    _Atomic bool early;
    jweak thread; /* if it was blocked then */
    uint64_t wait_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    bool on;
    struct activity *activity; /* of platform threads: THREADS_MAX, by index in the thread table */
    /*
     * Java ids of virtual threads that are blocked or wait, to struct activity *. From JDK 24 on
     * such a thread may go on with another carrier. Requires the lock.
     */
    struct map virtual;
    uint64_t unexamined; /* virtual threads of which it is unknown whether they were blocked */
    bool unlisted;       /* and so it is of all that existed */
    jfieldID tid;
    VEC(struct wait_line) waits;
    _Atomic uint64_t waited, lost;
} monitors;

static bool wanted(const struct options *o)
{
    /* A recording has the events of capture/threads/ instead. */
    return option_on(o, OPT_MONITOR) && !option_format(o)->events;
}

static int load(struct session *s, struct buf *why)
{
    monitors.activity = calloc(THREADS_MAX, sizeof(*monitors.activity));
    monitors.on = monitor_sites_init(&s->options) == 0 && monitors.activity;
    return monitors.on ? 0 : -ENOMEM;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    monitors.tid = vm_field(jni, "java/lang/Thread", "tid", "J");
    return option_on(&s->options, OPT_PARK) ? park_on(jni, why) : 0;
}

static void stop(struct session *s, JNIEnv *jni)
{
    park_off(jni);
}

/* jni: NULL when the VM has ended. */
static void forget_thread(JNIEnv *jni, struct activity *d)
{
    if (d->thread && jni)
        (*jni)->DeleteWeakGlobalRef(jni, d->thread);
    d->thread = NULL;
}

static void release(struct session *s)
{
    JNIEnv *jni = vm_jni();
    monitors.on = false;
    for (uint32_t i = 0; monitors.activity && i < threads_used(); i++)
        forget_thread(jni, &monitors.activity[i]);
    monitor_sites_release();
    free(monitors.activity);
    uint64_t id, activity;
    for (size_t i = 0; map_next(&monitors.virtual, &i, &id, &activity);) {
        forget_thread(jni, (struct activity *)(uintptr_t)activity);
        free((void *)(uintptr_t)activity);
    }
    map_release(&monitors.virtual);
    vec_release(&monitors.waits);
    memset(&monitors, 0, sizeof(monitors));
}

/* ---- threads that are blocked or wait ---- */

/*
 * Returns what a virtual thread is doing; NULL when that is unknown. add: it begins to do
 * something.
 */
static struct activity *virtual_activity(JNIEnv *jni, jthread thread, bool add)
{
    if (!monitors.tid)
        return NULL;
    uint64_t id = (uint64_t)(*jni)->GetLongField(jni, thread, monitors.tid);
    struct activity *d = NULL;
    pthread_mutex_lock(&lock);
    const uint64_t *slot = map_get(&monitors.virtual, id);
    if (slot) {
        d = (struct activity *)(uintptr_t)*slot;
    } else if (add) {
        d = calloc(1, sizeof(*d));
        if (!d || map_put(&monitors.virtual, id, (uint64_t)(uintptr_t)d) < 0) {
            free(d);
            d = NULL;
            monitors.lost++;
        }
    }
    pthread_mutex_unlock(&lock);
    return d;
}

static struct activity *activity_of(JNIEnv *jni, jthread thread, const struct thread *self,
                                    bool add)
{
    return thread_is_virtual(jni, thread) ? virtual_activity(jni, thread, add)
                                          : &monitors.activity[thread_index(self)];
}

/* Forgets a virtual thread that is neither blocked nor waits any more. */
static void activity_ends(JNIEnv *jni, jthread thread, struct activity *d)
{
    if (atomic_load(&d->since) || d->wait_ns || !thread_is_virtual(jni, thread))
        return;
    uint64_t id = (uint64_t)(*jni)->GetLongField(jni, thread, monitors.tid);
    pthread_mutex_lock(&lock);
    map_remove(&monitors.virtual, id);
    pthread_mutex_unlock(&lock);
    forget_thread(jni, d);
    free(d);
}

/* Threads that were blocked when the recording began and still are. */
struct early {
    uint32_t threads;
    uint64_t ns;
};

static bool is_blocked(jthread thread)
{
    jint state = 0;
    return (*vm.ti)->GetThreadState(vm.ti, thread, &state) == JVMTI_ERROR_NONE &&
           state & JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER;
}

/*
 * Returns whether a thread that was blocked when the recording began still is. If it was getting
 * its monitor back after Object.wait, no event has shown the end of that (up to JDK 26). of: a
 * reference to the thread, or NULL.
 */
static bool is_blocked_still(JNIEnv *jni, jobject of)
{
    jthread thread = of ? (*jni)->NewLocalRef(jni, of) : NULL;
    bool blocked = thread && is_blocked(thread);
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
    return blocked;
}

struct was_blocked {
    uint64_t id, since;
    jweak thread;
};

/*
 * Ends the time of the virtual threads that were blocked when the recording began and are so no
 * longer. Their states are read without the lock, for which a thread may wait that changes its own.
 */
static void end_early_virtual(JNIEnv *jni)
{
    uint64_t id, activity;
    VEC(struct was_blocked) early = {0};
    pthread_mutex_lock(&lock);
    bool room = vec_reserve(&early, monitors.virtual.len) == 0;
    for (size_t i = 0; room && map_next(&monitors.virtual, &i, &id, &activity);) {
        const struct activity *d = (struct activity *)(uintptr_t)activity;
        uint64_t since = atomic_load(&d->since);
        if (since && d->thread && atomic_load(&d->early))
            early.data[early.len++] =
                (struct was_blocked){id, since, (*jni)->NewWeakGlobalRef(jni, d->thread)};
    }
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < early.len; i++) {
        bool blocked = is_blocked_still(jni, early.data[i].thread);
        pthread_mutex_lock(&lock);
        const uint64_t *slot = blocked ? NULL : map_get(&monitors.virtual, early.data[i].id);
        if (slot)
            atomic_compare_exchange_strong(&((struct activity *)(uintptr_t)*slot)->since,
                                           &early.data[i].since, 0);
        pthread_mutex_unlock(&lock);
        if (early.data[i].thread)
            (*jni)->DeleteWeakGlobalRef(jni, early.data[i].thread);
    }
    vec_release(&early);
}

/* Counts the time up to now, so that a dump has the waits that have not ended. */
static void count_so_far(struct activity *d, struct early *early)
{
    uint64_t since = atomic_load(&d->since), now = now_ns();
    uint32_t site = atomic_load(&d->site);
    if (!since || now <= since >> 1)
        return;
    if (atomic_load(&d->early)) {
        early->threads++;
        early->ns += now - (since >> 1);
    } else if (atomic_compare_exchange_strong(&d->since, &since, now << 1 | 1)) {
        monitor_sites_add(site, !(since & 1), now - (since >> 1));
    }
}

static void count_all_so_far(struct session *s, JNIEnv *jni)
{
    uint64_t id, activity;
    struct early early = {0};
    for (uint32_t i = 0; i < threads_used(); i++) {
        struct activity *d = &monitors.activity[i];
        uint64_t since = atomic_load(&d->since);
        if (since && atomic_load(&d->early) && !is_blocked_still(jni, d->thread))
            atomic_compare_exchange_strong(&d->since, &since, 0);
        count_so_far(d, &early);
    }
    end_early_virtual(jni);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; map_next(&monitors.virtual, &i, &id, &activity);)
        count_so_far((struct activity *)(uintptr_t)activity, &early);
    pthread_mutex_unlock(&lock);
    if (early.threads)
        session_warn(s,
                     "monitor=y: MONITOR TIME lacks %llu ms of %u thread%s that %s been blocked "
                     "since before the recording began: this VM does not say at which monitors",
                     (unsigned long long)((early.ns + NS_PER_MS / 2) / NS_PER_MS), early.threads,
                     early.threads == 1 ? "" : "s", early.threads == 1 ? "has" : "have");
    if (monitors.unlisted || monitors.unexamined)
        session_warn(s,
                     "monitor=y: MONITOR TIME may lack time of %llu%s virtual threads that existed "
                     "when the recording began: which of them were blocked is unknown",
                     (unsigned long long)monitors.unexamined, monitors.unlisted ? " or more" : "");
}

struct listing {
    JNIEnv *jni;
    uint64_t since_ns, late;
};

static void note_virtual(const struct existing_virtual *v, void *arg)
{
    struct listing *l = arg;
    JNIEnv *jni = l->jni;
    bool added = false;
    uint64_t since = now_ns() << 1;
    if (since >> 1 > l->since_ns + LIST_NS) {
        l->late++;
        return;
    }
    if (!is_blocked(v->thread))
        return;
    struct activity *d = calloc(1, sizeof(*d));
    jweak thread = d ? (*jni)->NewWeakGlobalRef(jni, v->thread) : NULL;
    if (thread) {
        *d = (struct activity){.since = since, .early = true, .thread = thread};
        pthread_mutex_lock(&lock);
        /* A thread with an entry has posted already that it is blocked anew. */
        uint64_t *slot = map_at(&monitors.virtual, v->id, (uint64_t)(uintptr_t)d, &added);
        l->late += !slot;
        pthread_mutex_unlock(&lock);
    } else {
        l->late++;
    }
    if (added && is_blocked(v->thread))
        return;
    pthread_mutex_lock(&lock);
    /* It has entered meanwhile, so no event ends this. The thread itself frees what it has seen. */
    const uint64_t *slot = added ? map_get(&monitors.virtual, v->id) : NULL;
    if (slot && *slot == (uint64_t)(uintptr_t)d)
        atomic_compare_exchange_strong(&d->since, &since, 0);
    pthread_mutex_unlock(&lock);
    if (!added && thread)
        (*jni)->DeleteWeakGlobalRef(jni, thread);
    if (!added)
        free(d);
}

/* Notes the threads that are blocked already: they post no event until they have entered. */
static void later(struct session *s, JNIEnv *jni)
{
    jthread *threads = NULL;
    jint n = 0;
    struct listing l = {.jni = jni, .since_ns = now_ns()};
    if (!vm.late)
        return;
    if (monitors.tid) {
        monitors.unlisted = virtual_threads_visit(jni, note_virtual, &l, &monitors.unexamined) < 0;
        monitors.unexamined += l.late;
    }
    if (vm_all_threads(&n, &threads) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        struct thread *t = is_blocked(threads[i]) ? threads_find(jni, threads[i]) : NULL;
        struct activity *d = t && !t->own ? &monitors.activity[thread_index(t)] : NULL;
        uint64_t since = now_ns() << 1, none = 0;
        if (d && !atomic_load(&d->since)) {
            d->thread = (*jni)->NewWeakGlobalRef(jni, threads[i]);
            atomic_store(&d->early, true);
            if (!atomic_compare_exchange_strong(&d->since, &none, since))
                atomic_store(&d->early, false); /* it is blocked anew, and has posted that */
            else if (!is_blocked(threads[i]))
                /* It has entered meanwhile, so no event ends this. */
                atomic_compare_exchange_strong(&d->since, &since, 0);
        }
        (*jni)->DeleteLocalRef(jni, threads[i]);
    }
    vm_free(threads);
}

static void JNICALL on_enter(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject monitor)
{
    struct thread *self = threads_self(jni);
    uint64_t since = now_ns(); /* the time for walking the stack counts as blocked time */
    struct activity *d = self && !self->own ? activity_of(jni, thread, self, true) : NULL;
    if (!d)
        return;
    atomic_store(&d->site, monitors_site(jni, monitor, self, 0));
    atomic_store(&d->early, false);
    atomic_store(&d->since, since << 1);
}

static void JNICALL on_entered(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject monitor)
{
    struct thread *self = threads_self(jni);
    struct activity *d = self ? activity_of(jni, thread, self, false) : NULL;
    uint64_t since = d ? atomic_exchange(&d->since, 0) : 0;
    if (!since)
        return;
    uint64_t ns = now_ns() - (since >> 1);
    uint32_t site = atomic_exchange(&d->early, false) ? monitors_site(jni, monitor, self, 0)
                                                      : atomic_load(&d->site);
    monitor_sites_add(site, !(since & 1), ns);
    activity_ends(jni, thread, d);
}

static void add_wait(JNIEnv *jni, const struct thread *self, jobject object, int64_t ms, bool over)
{
    int64_t class = monitor_sites_class(jni, object);
    pthread_mutex_lock(&lock);
    const struct wait_line line = {(uint32_t) class, self ? self->serial : 0, ms, over};
    if (class < 0 || monitors.waits.len >= MAX_WAITS || vec_push(&monitors.waits, line) < 0)
        monitors.lost++;
    pthread_mutex_unlock(&lock);
}

static void JNICALL on_wait(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                            jlong timeout)
{
    struct thread *self = threads_self(jni);
    if (!self || self->own)
        return;
    struct activity *d = activity_of(jni, thread, self, true);
    if (d) {
        d->wait_ns = now_ns();
        atomic_store(&d->since, 0); /* whatever it was getting back, it has */
    }
    add_wait(jni, self, object, timeout, false);
}

static void JNICALL on_waited(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                              jboolean timed_out)
{
    struct thread *self = threads_self(jni);
    struct activity *d = self ? activity_of(jni, thread, self, false) : NULL;
    if (!d || !d->wait_ns)
        return;
    monitors.waited++;
    add_wait(jni, self, object, (int64_t)((now_ns() - d->wait_ns + NS_PER_MS / 2) / NS_PER_MS),
             true);
    d->wait_ns = 0;
    activity_ends(jni, thread, d);
}

static void flush(struct session *s, JNIEnv *jni)
{
    __typeof__(monitors.waits) waits;
    pthread_mutex_lock(&lock);
    waits = monitors.waits;
    memset(&monitors.waits, 0, sizeof(monitors.waits));
    pthread_mutex_unlock(&lock);
    if (waits.len) {
        pthread_mutex_lock(&s->out.lock);
        for (size_t i = 0; i < waits.len; i++) {
            const struct wait_line *w = &waits.data[i];
            const char *class = monitor_sites_class_name(w->class);
            if (w->over)
                hprof_text_waited(&s->out.text, class, w->ms, w->thread);
            else
                hprof_text_wait(&s->out.text, class, w->ms, w->thread);
        }
        pthread_mutex_unlock(&s->out.lock);
    }
    vec_release(&waits);
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    count_all_so_far(s, jni);
    monitor_sites_write(s, jni);
    monitors_dump(s, jni);
}

static void status(struct session *s, struct buf *out)
{
    buf_printf(out, "monitor.entered %llu\nmonitor.waited %llu\nmonitor.lost %llu\n",
               (unsigned long long)monitor_sites_entered(),
               (unsigned long long)atomic_load(&monitors.waited),
               (unsigned long long)(atomic_load(&monitors.lost) + monitor_sites_lost()));
}

static const struct vm_callbacks events = {.ti = {.MonitorContendedEnter = on_enter,
                                                  .MonitorContendedEntered = on_entered,
                                                  .MonitorWait = on_wait,
                                                  .MonitorWaited = on_waited}};

const struct capture capture_monitors = {
    .name = "monitor",
    .title = "contended monitor usage",
    .options = OPTION_BIT(OPT_MONITOR) | OPTION_BIT(OPT_PARK),
    .needs = {.can_generate_monitor_events = 1},
    .own_stacks = true,
    .likes = {.can_get_owned_monitor_info = 1,
              .can_get_current_contended_monitor = 1,
              .can_get_monitor_info = 1},
    .events = &events,
    .wanted = wanted,
    .load = load,
    .start = start,
    .later = later,
    .stop = stop,
    .release = release,
    .flush = flush,
    .dump = dump,
    .status = status,
};
