/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor=y writes the time blocked at monitors by class, stack and (with thread=y) thread, WAIT
 * and WAITED lines as they happen, and a dump of all monitors. Stacks are walked before the thread
 * blocks, never while it holds the monitor that others wait for.
 */
#include "agent/capture/monitors/monitors.h"

#include "agent/output/dictionary.h"
#include "agent/session/session.h"
#include "agent/stacks/names.h"
#include "agent/stacks/own_stack.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/virtual_list.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1024, MAX_SITES = 1 << 16, MAX_WAITS = 1 << 20 };

/* The counts of one class, stack and thread. Rows are stored in order of arrival and never move. */
struct site {
    _Atomic uint64_t count, ns;
};

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
    uint32_t depth;
    bool by_thread;
    /* struct key_head and frames; the number of a key is also that of its site */
    struct strpool keys;
    struct strpool classes;    /* JVM descriptors */
    struct site *sites;        /* MAX_SITES of them; keys.strings.len are in use */
    struct activity *activity; /* of platform threads: THREADS_MAX, by index in the thread table */
    /*
     * Java ids of virtual threads that are blocked or wait, to struct activity *. From JDK 24 on
     * such a thread may go on with another carrier. Requires the lock.
     */
    struct map virtual;
    jfieldID tid;
    VEC(struct wait_line) waits;
    _Atomic uint64_t entered, waited, lost;
} monitors;

struct key_head {
    uint32_t class, thread;
};

struct frame {
    uint64_t method;
    int64_t bci;
};

static bool wanted(const struct options *o)
{
    /* A recording has the events of capture/threads/ instead. */
    return option_on(o, OPT_MONITOR) && !option_format(o)->events;
}

static int load(struct session *s, struct buf *why)
{
    monitors.sites = calloc(MAX_SITES, sizeof(*monitors.sites));
    monitors.activity = calloc(THREADS_MAX, sizeof(*monitors.activity));
    monitors.depth = (uint32_t)MIN(s->options.v[OPT_DEPTH].number, MAX_DEPTH);
    monitors.by_thread = option_on(&s->options, OPT_THREAD);
    monitors.on = monitors.sites && monitors.activity;
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

static void release(struct session *s)
{
    JNIEnv *jni = vm_jni();
    monitors.on = false;
    for (uint32_t i = 0; monitors.activity && jni && i < threads_used(); i++)
        if (monitors.activity[i].thread)
            (*jni)->DeleteWeakGlobalRef(jni, monitors.activity[i].thread);
    free(monitors.sites);
    free(monitors.activity);
    uint64_t id, activity;
    for (size_t i = 0; map_next(&monitors.virtual, &i, &id, &activity);)
        free((void *)(uintptr_t)activity);
    map_release(&monitors.virtual);
    strpool_release(&monitors.keys);
    strpool_release(&monitors.classes);
    vec_release(&monitors.waits);
    memset(&monitors, 0, sizeof(monitors));
}

/*
 * Returns the number of an object's class in monitors.classes, or -1 if there is no room. Requires
 * the lock.
 */
static int64_t class_number(JNIEnv *jni, jobject object)
{
    jclass class = (*jni)->GetObjectClass(jni, object);
    _cleanup_free_ char *signature = class ? shown_class_signature(class) : NULL;
    int64_t number = -1;
    if (signature) {
        pthread_mutex_lock(&lock);
        number = strpool_add(&monitors.classes, signature, strlen(signature));
        pthread_mutex_unlock(&lock);
    }
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
    return number < 0 ? -1 : number;
}

uint32_t monitors_site(JNIEnv *jni, jobject monitor, const struct thread *self, jint skip)
{
    struct {
        struct key_head head;
        struct frame frames[MAX_DEPTH];
    } key;

    jvmtiFrameInfo found[MAX_DEPTH + MONITORS_SKIP_MAX], *frames = found + skip;
    jint n = 0;
    int64_t class = class_number(jni, monitor), site = -1;
    if (class < 0)
        return 0;
    if (monitors.depth)
        n = MAX(own_stack(jni, found, (jint)monitors.depth + skip) - skip, 0);
    key.head = (struct key_head){(uint32_t) class, monitors.by_thread ? self->serial : 0};
    for (jint i = 0; i < n; i++) {
        /* The names are read now, while the class of the method cannot be unloaded. */
        names_method(jni, frames[i].method);
        key.frames[i] = (struct frame){(uint64_t)(uintptr_t)frames[i].method, frames[i].location};
    }
    pthread_mutex_lock(&lock);
    size_t len = sizeof(key.head) + (size_t)n * sizeof(*key.frames);
    site = strpool_find(&monitors.keys, (const char *)&key, len);
    if (site < 0 && monitors.keys.strings.len < MAX_SITES)
        site = strpool_add(&monitors.keys, (const char *)&key, len);
    pthread_mutex_unlock(&lock);
    return site < 0 ? 0 : (uint32_t)site + 1;
}

static void add_blocked(uint32_t site, bool count, uint64_t ns)
{
    if (!site) {
        monitors.lost += count;
        return;
    }
    atomic_fetch_add_explicit(&monitors.sites[site - 1].count, count, memory_order_relaxed);
    atomic_fetch_add_explicit(&monitors.sites[site - 1].ns, ns, memory_order_relaxed);
    monitors.entered += count;
}

void monitors_blocked(uint32_t site, uint64_t ns)
{
    add_blocked(site, true, ns);
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
 * its monitor back after Object.wait, no event has shown the end of that (up to JDK 26).
 */
static bool is_blocked_still(JNIEnv *jni, struct activity *d)
{
    jthread thread = d->thread ? (*jni)->NewLocalRef(jni, d->thread) : NULL;
    bool blocked = thread && is_blocked(thread);
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
    return blocked;
}

/* Counts the time up to now, so that a dump has the waits that have not ended. */
static void count_so_far(JNIEnv *jni, struct activity *d, struct early *early)
{
    uint64_t since = atomic_load(&d->since), now = now_ns();
    uint32_t site = atomic_load(&d->site);
    if (!since || now <= since >> 1)
        return;
    if (atomic_load(&d->early) && !is_blocked_still(jni, d)) {
        atomic_compare_exchange_strong(&d->since, &since, 0);
    } else if (atomic_load(&d->early)) {
        early->threads++;
        early->ns += now - (since >> 1);
    } else if (atomic_compare_exchange_strong(&d->since, &since, now << 1 | 1)) {
        add_blocked(site, !(since & 1), now - (since >> 1));
    }
}

static void count_all_so_far(struct session *s, JNIEnv *jni)
{
    uint64_t id, activity;
    struct early early = {0};
    for (uint32_t i = 0; i < threads_used(); i++)
        count_so_far(jni, &monitors.activity[i], &early);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; map_next(&monitors.virtual, &i, &id, &activity);)
        count_so_far(jni, (struct activity *)(uintptr_t)activity, &early);
    pthread_mutex_unlock(&lock);
    if (early.threads)
        session_warn(s,
                     "monitor=y: MONITOR TIME lacks %llu ms of %u thread%s that %s been blocked "
                     "since before the recording began: this VM does not say at which monitors",
                     (unsigned long long)((early.ns + NS_PER_MS / 2) / NS_PER_MS), early.threads,
                     early.threads == 1 ? "" : "s", early.threads == 1 ? "has" : "have");
}

/* Notes the platform threads that are blocked already: they post no event until they have entered.
 */
static void later(struct session *s, JNIEnv *jni)
{
    jthread *threads = NULL;
    jint n = 0;
    if (!vm.late || vm_all_threads(&n, &threads) != JVMTI_ERROR_NONE)
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
    add_blocked(site, !(since & 1), ns);
    activity_ends(jni, thread, d);
}

static void add_wait(JNIEnv *jni, const struct thread *self, jobject object, int64_t ms, bool over)
{
    int64_t class = class_number(jni, object);
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
            const char *class = strpool_get(&monitors.classes, w->class).data;
            if (w->over)
                hprof_text_waited(&s->out.text, class, w->ms, w->thread);
            else
                hprof_text_wait(&s->out.text, class, w->ms, w->thread);
        }
        pthread_mutex_unlock(&s->out.lock);
    }
    vec_release(&waits);
}

/* A row of MONITOR TIME. */
struct ranked {
    uint64_t ns, count;
    uint32_t trace, class;
};

static int by_time(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1)
                          : (x->trace > y->trace) - (x->trace < y->trace);
}

/* Takes the counts of a site and returns its trace; the site's counters restart at zero. */
static struct ranked take_site(struct session *s, JNIEnv *jni, size_t i)
{
    pthread_mutex_lock(&lock);
    struct str key = strpool_get(&monitors.keys, i); /* its bytes do not move */
    pthread_mutex_unlock(&lock);
    struct key_head head;
    memcpy(&head, key.data, sizeof(head));
    struct ranked row = {.class = head.class};
    row.ns = atomic_exchange(&monitors.sites[i].ns, 0);
    row.count = atomic_exchange(&monitors.sites[i].count, 0);
    if (!row.count && !row.ns)
        return row;
    struct jfr_frame frames[MAX_DEPTH];
    uint32_t n = (uint32_t)((key.len - sizeof(head)) / sizeof(struct frame));
    for (uint32_t f = 0; f < n; f++) {
        struct frame at;
        memcpy(&at, key.data + sizeof(head) + f * sizeof(at), sizeof(at));
        frames[f] = (struct jfr_frame){.method = at.method, .bci = (int32_t)at.bci};
    }
    row.trace = dictionary_trace(s->out.dictionary, jni, frames, n, head.thread);
    return row;
}

void monitors_source_name(const char *descriptor, char *to, size_t size)
{
    size_t dims = strspn(descriptor, "["), len;
    static const char *const primitives[] = {"Zboolean", "Cchar",  "Ffloat", "Ddouble",
                                             "Bbyte",    "Sshort", "Iint",   "Jlong"};
    const char *element = descriptor + dims;
    if (*element == 'L') {
        names_dotted(element + 1, to, size);
        len = strlen(to);
        len -= len && to[len - 1] == ';';
    } else {
        len = 0;
        for (size_t i = 0; i < ARRAY_SIZE(primitives); i++)
            if (primitives[i][0] == *element)
                len = (size_t)snprintf(to, size, "%s", primitives[i] + 1);
    }
    for (; dims && len + 3 <= size; dims--, len += 2)
        memcpy(to + len, "[]", 2);
    to[len] = '\0';
}

static void write_times(struct session *s, struct ranked *rows, size_t n)
{
    enum { NAME = 1024 };

    uint64_t total = 0, sum = 0;
    char name[NAME];
    for (size_t i = 0; i < n; i++)
        total += rows[i].ns;
    pthread_mutex_lock(&s->out.lock);
    hprof_text_ranked_begin(&s->out.text, HPROF_RANKED_MONITORS,
                            (total + NS_PER_MS / 2) / NS_PER_MS, time(NULL));
    for (size_t i = 0; i < n && total; i++) {
        double self = (double)rows[i].ns / (double)total;
        if (self < s->options.v[OPT_CUTOFF].fraction)
            break;
        sum += rows[i].ns;
        monitors_source_name(strpool_get(&monitors.classes, rows[i].class).data, name,
                             sizeof(name));
        hprof_text_ranked(&s->out.text, HPROF_RANKED_MONITORS, (uint32_t)i + 1, 100 * self,
                          100 * (double)sum / (double)total, rows[i].count, rows[i].trace, name);
    }
    hprof_text_ranked_end(&s->out.text, HPROF_RANKED_MONITORS);
    pthread_mutex_unlock(&s->out.lock);
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    count_all_so_far(s, jni);
    pthread_mutex_lock(&lock);
    size_t n = monitors.keys.strings.len, kept = 0;
    pthread_mutex_unlock(&lock);
    struct ranked *rows = calloc(n + 1, sizeof(*rows));
    if (!rows) {
        session_message(s, "monitor=y: no memory for a dump");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        rows[kept] = take_site(s, jni, i);
        /* a wait that an earlier dump has counted has time alone */
        kept += rows[kept].count || rows[kept].ns;
    }
    qsort(rows, kept, sizeof(*rows), by_time);
    write_times(s, rows, kept);
    free(rows);
    monitors_dump(s, jni);
}

static void status(struct session *s, struct buf *out)
{
    buf_printf(out, "monitor.entered %llu\nmonitor.waited %llu\nmonitor.lost %llu\n",
               (unsigned long long)atomic_load(&monitors.entered),
               (unsigned long long)atomic_load(&monitors.waited),
               (unsigned long long)atomic_load(&monitors.lost));
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
