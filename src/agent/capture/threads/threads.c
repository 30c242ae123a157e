/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/threads/threads.h"
#include "agent/capture/budget/budget.h"
#include "agent/capture/vm/vm.h"

#include "agent/vm/virtual_list.h"
#include "base/clock.h"
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define VIRTUAL_BIT    (UINT64_C(1) << 40)
#define WAITING_REPORT (NS_PER_SECOND / 2)

enum { SHARDS = 64 };

struct thread_capture thread_capture;

static struct waiter *platform; /* by thread_index; pages are committed on first use */

/* By thread_index, the virtual thread that is mounted on a carrier; 0: none, or unknown. */
static _Atomic uint64_t carries[THREADS_MAX];

/* Waits of virtual threads that have waited, by Java id. */
static struct shard {
    pthread_mutex_t lock;
    struct map waiters; /* to struct waiter * */
} shards[SHARDS];

/* ---- threads and their waits ---- */

static __thread struct {
    JNIEnv *jni;
    struct thread *thread;
    uint32_t serial;
    /*
     * ThreadEnd has been posted: what the VM does on the thread afterwards is not the thread's work
     */
    bool ended;
} self;

/* The current platform thread; NULL for the agent's own threads. */
static struct thread *platform_self(JNIEnv *jni)
{
    if (self.ended)
        return NULL;
    if (self.jni != jni || !self.thread || self.thread->serial != self.serial) {
        self.jni = jni;
        self.thread = threads_self(jni);
        self.serial = self.thread ? self.thread->serial : 0;
    }
    return self.thread && !self.thread->own ? self.thread : NULL;
}

static uint64_t java_id(JNIEnv *jni, jthread thread)
{
    return (uint64_t)(*jni)->GetLongField(jni, thread, thread_capture.tid);
}

static int define_virtual(JNIEnv *jni, jthread thread, uint64_t id)
{
    jvmtiThreadInfo info = {0};
    if ((*vm.ti)->GetThreadInfo(vm.ti, thread, &info) != JVMTI_ERROR_NONE)
        return -EINVAL;
    struct jfr_thread t = {
        .java_name = info.name ? info.name : "", .java_id = id, .is_virtual = true};
    int r = jfr_define_thread(thread_capture.jfr, VIRTUAL_BIT | id, &t);
    vm_free(info.name);
    if (info.thread_group)
        (*jni)->DeleteLocalRef(jni, info.thread_group);
    if (info.context_class_loader)
        (*jni)->DeleteLocalRef(jni, info.context_class_loader);
    return r;
}

/* The same for a virtual thread. */
static void waiter_free(struct waiter *w)
{
    if (w) {
        free(w->locks);
        free(w->last);
    }
    free(w);
}

static struct waiter *virtual_waiter(JNIEnv *jni, jthread thread)
{
    uint64_t id = java_id(jni, thread);
    struct shard *s = &shards[id % SHARDS];
    struct waiter *w = NULL;
    pthread_mutex_lock(&s->lock);
    bool added = false;
    uint64_t *slot = map_at(&s->waiters, id, 0, &added);
    if (slot && added) {
        w = calloc(1, sizeof(*w));
        if (w) {
            w->id = VIRTUAL_BIT | id;
            w->is_virtual = true;
            w->thread = thread_capture.watch ? (*jni)->NewWeakGlobalRef(jni, thread) : NULL;
        }
        *slot = (uint64_t)(uintptr_t)w;
    } else if (slot) {
        w = (struct waiter *)(uintptr_t)*slot;
    }
    pthread_mutex_unlock(&s->lock);
    if (w && added && define_virtual(jni, thread, id) < 0)
        atomic_fetch_add(&thread_capture.lost, 1);
    return w;
}

uint64_t waiter_stack(const struct thread *t)
{
    const struct waiter *w = &platform[thread_index(t)];
    return w->id == t->serial ? w->stack : 0;
}

bool waiter_stack_has(const struct thread *t, uint64_t address)
{
    const struct waiter *w = &platform[thread_index(t)];
    return w->id == t->serial && address >= w->low && address < w->high;
}

static void find_stack(struct waiter *w)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        w->low = (uint64_t)(uintptr_t)low;
        w->high = w->low + size;
    }
    pthread_attr_destroy(&attributes);
}

void waiters_visit(JNIEnv *jni, void (*f)(struct waiter *w, jthread thread, void *arg), void *arg)
{
    /* none when the start was refused */
    for (struct thread *t = NULL; platform && (t = threads_next(t));) {
        struct waiter *w = &platform[thread_index(t)];
        if (w->id == t->serial)
            f(w, NULL, arg);
    }
    for (int i = 0; i < SHARDS; i++) {
        uint64_t key, value;
        pthread_mutex_lock(&shards[i].lock);
        for (size_t k = 0; map_next(&shards[i].waiters, &k, &key, &value);) {
            struct waiter *w = (struct waiter *)(uintptr_t)value;
            jthread thread = w && w->thread && jni ? (*jni)->NewLocalRef(jni, w->thread) : NULL;
            if (w)
                f(w, thread, arg);
            if (thread)
                (*jni)->DeleteLocalRef(jni, thread);
        }
        pthread_mutex_unlock(&shards[i].lock);
    }
}

/*
 * ---- calls of our natives in progress, by thread: a shared counter would move between processors'
 * caches ----
 */

enum { INSIDE = 64, INSIDE_MAX_MS = 5000 };

static struct {
    atomic_int n;
} __attribute__((aligned(64))) inside[INSIDE];

static atomic_bool natives_on;

static atomic_int *inside_here(void)
{
    return &inside[((uint64_t)pthread_self() >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 58].n;
}

bool threads_natives_enter(void)
{
    atomic_fetch_add(inside_here(), 1);
    if (likely(atomic_load(&natives_on)))
        return true;
    threads_natives_leave();
    return false;
}

void threads_natives_leave(void)
{
    atomic_fetch_sub(inside_here(), 1);
}

/* Prevents new calls and waits until those in progress have finished with the writer. */
static void natives_drain(void)
{
    atomic_store(&natives_on, false);
    for (int i = 0, ms = 0; i < INSIDE; i++)
        for (; atomic_load(&inside[i].n) > 0 && ms < INSIDE_MAX_MS; ms++)
            nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
}

struct waiter *waiter_self(JNIEnv *jni, jthread thread)
{
    if (!thread_capture.jfr)
        return NULL;
    struct thread *t = platform_self(jni);
    if (!t)
        return NULL;
    if (thread_capture.virtual_too && thread && thread_is_virtual(jni, thread)) {
        struct waiter *v = virtual_waiter(jni, thread);
        if (v && unlikely(!atomic_load(&v->come))) {
            atomic_store(&v->come, true);
            at_start_contact(v->id, atomic_load(&v->ready));
        }
        return v;
    }
    struct waiter *w = &platform[thread_index(t)];
    if (w->id != t->serial) {
        free(w->locks);
        free(w->last);
        memset(w, 0, sizeof(*w)); /* another thread used this entry before */
        w->id = t->serial;
        delays_new_thread(w);
        at_start_contact(t->serial, 0);
    }
    w->stack = MAX(w->stack, (uint64_t)(uintptr_t)__builtin_frame_address(0));
    if (unlikely(thread_capture.watch && !w->high))
        find_stack(w);
    return w;
}

bool waiter_has_come(uint64_t id)
{
    if (id < VIRTUAL_BIT) {
        const struct thread *t = threads_by_serial((uint32_t)id);
        return t && platform[thread_index(t)].id == id;
    }
    struct shard *s = &shards[(id & ~VIRTUAL_BIT) % SHARDS];
    pthread_mutex_lock(&s->lock);
    const uint64_t *slot = map_get(&s->waiters, id & ~VIRTUAL_BIT);
    /* a thread that has ended is no longer listed */
    bool come = !slot || !*slot || atomic_load(&((struct waiter *)(uintptr_t)*slot)->come);
    pthread_mutex_unlock(&s->lock);
    return come;
}

uint64_t thread_record_id(uint64_t id)
{
    for (struct thread *t = NULL; (t = threads_next(t));)
        if (t->java_id == id)
            return t->serial;
    struct shard *s = &shards[id % SHARDS];
    pthread_mutex_lock(&s->lock);
    bool known = map_get(&s->waiters, id) != NULL;
    pthread_mutex_unlock(&s->lock);
    return known ? VIRTUAL_BIT | id : 0;
}

uint64_t thread_running_on(const struct thread *t)
{
    uint64_t mounted = atomic_load(&carries[thread_index(t)]);
    return mounted ? mounted : t->serial;
}

/*
 * The virtual threads that the calling carrier has run, of which those that were short or long ago
 * are overwritten first.
 */
enum { CARRIED = 8 };

#define CARRIED_KEPT (10 * NS_PER_SECOND)

static __thread struct {
    uint64_t since; /* the one that it runs now */

    struct {
        uint64_t id, from, until;
    } ran[CARRIED];
} carried_here;

static void note_carried(uint64_t id, uint64_t now)
{
    uint64_t least = UINT64_MAX;
    int at = 0;
    for (int i = 0; i < CARRIED; i++) {
        uint64_t until = carried_here.ran[i].until,
                 ns = until + CARRIED_KEPT < now ? 0 : until - carried_here.ran[i].from;
        if (ns < least) {
            least = ns;
            at = i;
        }
    }
    carried_here.ran[at].id = id;
    carried_here.ran[at].from = carried_here.since;
    carried_here.ran[at].until = now;
}

void thread_carries(JNIEnv *jni, uint64_t id)
{
    struct thread *t = platform_self(jni);
    if (!t)
        return;
    uint64_t was = atomic_exchange(&carries[thread_index(t)], id);
    if (was == id)
        return;
    uint64_t now = now_ns();
    if (was)
        note_carried(was, now);
    carried_here.since = now;
}

uint64_t thread_carried_since(uint64_t time)
{
    uint64_t most = 0, id = 0;
    for (int i = 0; i < CARRIED; i++) {
        uint64_t from = MAX(carried_here.ran[i].from, time), until = carried_here.ran[i].until;
        if (until > from && until - from > most) {
            most = until - from;
            id = carried_here.ran[i].id;
        }
    }
    return id;
}

void waiter_ready(JNIEnv *jni, jthread thread)
{
    if (!thread_capture.jfr)
        return;
    uint64_t id = java_id(jni, thread), none = 0, now = now_ns();
    struct shard *s = &shards[id % SHARDS];
    pthread_mutex_lock(&s->lock);
    const uint64_t *slot = map_get(&s->waiters, id);
    struct waiter *w = slot ? (struct waiter *)(uintptr_t)*slot : NULL;
    if (w)
        atomic_compare_exchange_strong(&w->ready, &none, now);
    pthread_mutex_unlock(&s->lock);
}

void thread_carried(const struct thread *carrier, uint64_t was, uint64_t now)
{
    atomic_compare_exchange_strong(&carries[thread_index(carrier)], &was, now);
}

uint64_t thread_record(JNIEnv *jni, jthread thread)
{
    if (thread_capture.virtual_too && thread_is_virtual(jni, thread)) {
        struct waiter *w = virtual_waiter(jni, thread);
        return w ? w->id : 0;
    }
    return thread_record_id(java_id(jni, thread));
}

void wait_begin(struct waiter *w, enum wait_kind kind, const struct wait *how)
{
    struct wait *at = &w->waits[kind];
    uint64_t now = how->start ? how->start : now_ns();
    delays_wait_begins(w, now);
    seqlock_stamp_clear(&at->start);
    at->trace = how->trace;
    at->class = how->class;
    at->owner = how->owner;
    at->timeout = how->timeout;
    at->object = how->object;
    at->monitor = how->monitor;
    at->owned = how->owned;
    at->reported = false;
    at->plain = how->plain;
    seqlock_stamp_set(&at->start, now);
}

bool wait_end(struct waiter *w, enum wait_kind kind, struct wait *ret, uint64_t *ret_ns)
{
    struct wait *at = &w->waits[kind];
    uint64_t start = atomic_load_explicit(&at->start, memory_order_relaxed);
    if (!start)
        return false;
    *ret_ns = now_ns() - start;
    ret->start = start;
    ret->trace = at->trace;
    ret->class = at->class;
    ret->owner = at->owner;
    ret->timeout = at->timeout;
    ret->object = at->object;
    ret->plain = at->plain;
    w->was_short = *ret_ns < BUDGET_SHORT_NS;
    seqlock_stamp_set(&at->start, 0);
    delays_wait_ends(w, start + *ret_ns, *ret_ns);
    return true;
}

bool wait_is_plain(const struct waiter *w)
{
    return w->was_short && !thread_capture.watch && !budget_keeps(&budget_waits_of);
}

bool wait_left_out(const struct wait *was, uint64_t ns)
{
    if (!was->plain || ns >= BUDGET_SHORT_NS)
        return false;
    jfr_lose(thread_capture.jfr, LOSS_BUDGET_WAITS, 1);
    return true;
}

struct waiter *waiter_untimed(JNIEnv *jni)
{
    if (likely(budget_keeps(&budget_times_of)) || thread_capture.watch || self.ended ||
        self.jni != jni || !self.thread || self.thread->serial != self.serial || self.thread->own)
        return NULL;
    uint32_t i = thread_index(self.thread);
    struct waiter *w = &platform[i];
    return w->id == self.serial && w->was_short && !atomic_load(&carries[i]) ? w : NULL;
}

void waiter_leaves_out(uint32_t *count, enum jfr_loss loss)
{
    enum { PORTION = 64 };

    if (++*count % PORTION != 0 || !threads_natives_enter())
        return;
    jfr_lose(thread_capture.jfr, loss, PORTION);
    threads_natives_leave();
}

/* ---- events ---- */

void threads_put_interaction(enum threads_type type, struct waiter *w, uint64_t trace,
                             uint64_t class, uint32_t object, uint64_t target, bool all)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[type], 0, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)trace);
    if (type == TYPE_NOTIFY) {
        jfr_put_long(&e, (int64_t) class);
        jfr_put_long(&e, object);
        jfr_put_byte(&e, all);
    } else {
        jfr_put_long(&e, (int64_t)target);
        if (type != TYPE_UNPARK)
            jfr_put_long(&e, object);
    }
    jfr_commit(&e);
}

/*
 * Describes a thread to the recording while that is possible: it may have ended when the recording
 * needs its description.
 */
static void define_platform(const struct thread *t)
{
    struct jfr_thread who = {.os_name = t->name,
                             .os_id = (uint64_t)t->tid,
                             .java_name = t->name,
                             .java_id = t->java_id,
                             .group = t->group};
    if (jfr_define_thread(thread_capture.jfr, t->serial, &who) < 0)
        atomic_fetch_add(&thread_capture.lost, 1);
}

static void put_thread_object(JNIEnv *jni, uint64_t id, jthread thread, uint64_t since,
                              const char *parent_group, uint64_t carrier)
{
    jvmtiThreadInfo info = {0};
    struct jfr_event e;
    uint64_t class = object_class(jni, thread);
    uint32_t object = object_identity(thread);
    if ((*vm.ti)->GetThreadInfo(vm.ti, thread, &info) != JVMTI_ERROR_NONE)
        return;
    if (jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_THREAD], 512, &e)) {
        jfr_put_time(&e, since);
        jfr_put_long(&e, (int64_t)id);
        jfr_put_long(&e, object);
        jfr_put_long(&e, (int64_t) class);
        jfr_put_byte(&e, info.is_daemon);
        jfr_put_int(&e, info.priority);
        jfr_put_string_n(&e, parent_group, parent_group ? MIN(strlen(parent_group), 200) : 0);
        jfr_put_long(&e, (int64_t)carrier);
        jfr_commit(&e);
    }
    vm_free(info.name);
    if (info.thread_group)
        (*jni)->DeleteLocalRef(jni, info.thread_group);
    if (info.context_class_loader)
        (*jni)->DeleteLocalRef(jni, info.context_class_loader);
}

void threads_put_thread_there(JNIEnv *jni, uint64_t id, jthread thread, uint64_t since)
{
    put_thread_object(jni, id, thread, since, NULL, 0);
}

/* java_id: of a platform thread, by which its starter is known; else 0. */
static void put_thread_start(uint64_t id, uint64_t java_id, uint64_t now)
{
    struct jfr_event e;
    uint64_t by = 0, trace = 0;
    (void)natives_started_by(java_id, &by, &trace);
    if (!jfr_begin(thread_capture.jfr, JFR_THREAD_START, 0, &e))
        return;
    jfr_put_time(&e, now);
    jfr_put_long(&e, (int64_t)id);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, (int64_t)id);
    jfr_put_long(&e, (int64_t)by);
    jfr_commit(&e);
}

/* on: the thread itself, or its carrier. */
static void put_thread_end(uint64_t id, uint64_t on)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, JFR_THREAD_END, 0, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, (int64_t)on);
    jfr_put_long(&e, (int64_t)id);
    jfr_commit(&e);
}

static void JNICALL on_thread_start(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    self.ended = false; /* a native thread may attach again */
    struct thread *t = thread_capture.jfr ? platform_self(jni) : NULL;
    struct waiter *w = t ? waiter_self(jni, NULL) : NULL;
    if (!w)
        return;
    uint64_t now = now_ns();
    if (!w->run.since) /* the VM reports the main thread's start only after VMInit */
        delays_run_begins(w, now, 0);
    define_platform(t);
    put_thread_start(t->serial, t->java_id, now);
    put_thread_object(jni, t->serial, thread, now_ns(), t->parent_group, 0);
}

static void JNICALL on_thread_end(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    struct thread *t = thread_capture.jfr ? platform_self(jni) : NULL;
    struct waiter *w = t ? waiter_self(jni, NULL) : NULL;
    if (w)
        delays_run_ends(w, w->id, now_ns());
    if (t) {
        if (atomic_load(&carries[thread_index(t)]))
            atomic_store(&carries[thread_index(t)], 0);
        put_thread_end(t->serial, t->serial);
        jfr_forget_thread(thread_capture.jfr, t->serial);
    }
    self.jni = NULL;
    self.ended = true;
}

static void JNICALL on_virtual_start(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    struct waiter *carrier = waiter_self(jni, NULL);
    struct waiter *w = carrier ? waiter_self(jni, thread) : NULL;
    if (!w)
        return;
    uint64_t now = now_ns();
    thread_carries(jni, w->id);
    delays_mount(carrier, carrier->id, now);
    put_thread_start(w->id, 0, now);
    put_thread_object(jni, w->id, thread, now_ns(), NULL, platform_self(jni)->serial);
}

static void JNICALL on_virtual_end(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    if (!thread_capture.jfr || !platform_self(jni) || !thread_is_virtual(jni, thread))
        return;
    uint64_t id = java_id(jni, thread), waiter = 0;
    struct shard *s = &shards[id % SHARDS];
    struct waiter *carrier = waiter_self(jni, NULL);
    thread_carries(jni, 0);
    if (carrier)
        delays_mount(carrier, VIRTUAL_BIT | id, now_ns());
    put_thread_end(VIRTUAL_BIT | id, platform_self(jni)->serial);
    pthread_mutex_lock(&s->lock);
    const uint64_t *slot = map_get(&s->waiters, id);
    if (slot)
        waiter = *slot;
    map_remove(&s->waiters, id);
    pthread_mutex_unlock(&s->lock);
    if (waiter && ((struct waiter *)(uintptr_t)waiter)->thread)
        (*jni)->DeleteWeakGlobalRef(jni, ((struct waiter *)(uintptr_t)waiter)->thread);
    waiter_free((struct waiter *)(uintptr_t)waiter);
    jfr_forget_thread(thread_capture.jfr, VIRTUAL_BIT | id);
}

/* Pauses: no Java thread runs between these two events. JNI and JVM TI must not be used here. */
static _Atomic uint64_t gc_start;
static atomic_uint gc_number;

static void JNICALL on_gc_start(jvmtiEnv *ti)
{
    atomic_store(&gc_start, now_ns());
}

static void JNICALL on_gc_finish(jvmtiEnv *ti)
{
    uint64_t start = atomic_exchange(&gc_start, 0);
    struct jfr_event e;
    if (!start || !thread_capture.jfr || vm_records_pauses() ||
        !jfr_begin(thread_capture.jfr, JFR_GC_PHASE_PAUSE, 0, &e))
        return;
    jfr_put_time(&e, start);
    jfr_put_long(&e, (int64_t)(now_ns() - start));
    jfr_put_long(&e, 0);
    jfr_put_int(&e, (int32_t)atomic_fetch_add(&gc_number, 1));
    jfr_put_string(&e, "GC Pause");
    jfr_commit(&e);
}

static const struct vm_callbacks own_events = {.ti = {.ThreadStart = on_thread_start,
                                                      .ThreadEnd = on_thread_end,
                                                      .GarbageCollectionStart = on_gc_start,
                                                      .GarbageCollectionFinish = on_gc_finish}};
static const struct vm_callbacks virtual_events = {.VM_VIRTUAL_THREAD_START = on_virtual_start,
                                                   .VM_VIRTUAL_THREAD_END = on_virtual_end};

/* ---- the capture ---- */

static bool wanted(const struct options *o)
{
    return option_on(o, OPT_THREADS) || option_on(o, OPT_DEADLOCK) || o->v[OPT_LOCKS].text ||
           (option_on(o, OPT_MONITOR) && option_is(o, OPT_FORMAT, "r"));
}

static int find_fields(JNIEnv *jni)
{
    jclass c = (*jni)->FindClass(jni, "java/lang/Thread");
    if (c && !thread_capture.tid)
        thread_capture.tid = (*jni)->GetFieldID(jni, c, "tid", "J");
    vm_clear_exception(jni);
    if (c && !thread_capture.park_blocker)
        thread_capture.park_blocker =
            (*jni)->GetFieldID(jni, c, "parkBlocker", "Ljava/lang/Object;");
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return thread_capture.tid && thread_capture.park_blocker ? 0 : -ENOTSUP;
}

/*
 * All of them exist from now on, so the time that listing takes does not appear as a period without
 * a state. Returns that time.
 */
static uint64_t mark_existing(JNIEnv *jni)
{
    uint64_t now = now_ns();
    jthread *list = NULL;
    jint n = 0;
    if (vm_all_threads(&n, &list) != JVMTI_ERROR_NONE)
        return now;
    for (jint i = 0; i < n; i++) {
        uint64_t id = thread_record_id(java_id(jni, list[i]));
        struct thread *t = id && id < VIRTUAL_BIT ? threads_by_serial((uint32_t)id) : NULL;
        if (t && !t->own)
            define_platform(t);
        if (t && !t->own)
            put_thread_object(jni, id, list[i], now, t->parent_group, 0);
        (*jni)->DeleteLocalRef(jni, list[i]);
    }
    vm_free(list);
    return now;
}

static struct {
    int natives;
    uint64_t wake_up;
} analysis;

static void put_analysis(const char *locks)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_ANALYSIS], 1100, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_byte(&e, thread_capture.instrument);
    jfr_put_int(&e, analysis.natives);
    jfr_put_byte(&e, vm.hotspot);
    jfr_put_string_n(&e, locks, locks ? MIN(strlen(locks), 1000) : 0);
    jfr_put_long(&e, (int64_t)analysis.wake_up);
    jfr_commit(&e);
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = find_fields(jni);
    mounts_fields(jni);
    if (r < 0) {
        buf_printf(why, "threads=y: java.lang.Thread has no tid or parkBlocker in this VM");
        return r;
    }
    if (!platform) {
        void *memory = mmap(NULL, THREADS_MAX * sizeof(*platform), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return -ENOMEM;
        platform = memory;
        for (int i = 0; i < SHARDS; i++)
            pthread_mutex_init(&shards[i].lock, NULL);
    }
    r = jfr_declare(s->out.jfr, thread_types, TYPES, thread_capture.types);
    if (r < 0)
        return r;
    waiting_init(s->out.jfr);
    thread_capture.depth = (jint)MIN(s->options.v[OPT_DEPTH].number, 512);
    thread_capture.instrument =
        !s->options.v[OPT_CONTANALYSIS].text || option_on(&s->options, OPT_CONTANALYSIS);
    owner_init(jni);
    if (option_on(&s->options, OPT_DEADLOCK))
        r = deadlock_watch_start(jni, option_always(&s->options), why);
    if (r < 0)
        return r;
    uint64_t wake_up = wake_cost();
    thread_capture.jfr = s->out.jfr;
    atomic_store(&natives_on, true);
    stack_init(jni);
    struct waiter *self_waits = waiter_self(jni, NULL);
    if (self_waits)
        delays_run_begins(self_waits, now_ns(), 0);
    uint64_t since = mark_existing(jni);
    io_start(jni);
    int natives = natives_bind(jni, thread_capture.instrument, why);
    if (natives < 0)
        return natives;
    analysis.natives = natives;
    analysis.wake_up = wake_up;
    put_analysis(s->options.v[OPT_LOCKS].text);
    jvmtiCapabilities want = {0}, missing = {0};
    vm_capability_virtual_threads(&want);
    thread_capture.virtual_too =
        vm.version >= 21 && vm_need(&want, &missing) == 0 && vm_capabilities_empty(&missing);
    r = vm_events_on(&own_events);
    if (r == 0) {
        /* Threads that started since the first call have posted no event. */
        mark_existing(jni);
        r = vm_events_on(&thread_monitor_events);
    }
    if (r == 0 && thread_capture.virtual_too)
        r = vm_events_on(&virtual_events);
    if (r == 0 && thread_capture.virtual_too && thread_capture.instrument)
        r = unparks_on(jni, why);
    if (r == 0 && s->options.v[OPT_LOCKS].text)
        r = locks_on(s->options.v[OPT_LOCKS].text, jni, why);
    thread_capture.mounts = r == 0 && thread_capture.virtual_too && mounts_on();
    if (r == 0)
        at_start_record(jni, since + 1);
    return r;
}

static void flush(struct session *s, JNIEnv *jni)
{
    stack_flush();
    at_start_flush(jni);
    jfr_lose_total(thread_capture.jfr, LOSS_THREAD_NAME, atomic_load(&thread_capture.lost));
    waiting_report_all(now_ns() - WAITING_REPORT);
}

/* Which threads there are, and what they wait for. */
static void restate(struct session *s, JNIEnv *jni)
{
    objects_forget();
    put_analysis(s->options.v[OPT_LOCKS].text);
    mark_existing(jni);
    at_start_restate();
    waiting_report_again();
}

/* Waits that go on have the ids of their stacks. */
static void keep_stacks(struct session *s, JNIEnv *jni)
{
    waiting_keep_stacks();
    at_start_keep_stacks();
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    waiting_report_all(UINT64_MAX);
}

static void stop(struct session *s, JNIEnv *jni)
{
    deadlock_watch_stop(jni);
    locks_off(jni);
    unparks_off(jni);
    io_stop();
    natives_unbind(jni);
    if (thread_capture.mounts)
        mounts_off();
    vm_events_off(&thread_monitor_events);
    vm_events_off(&own_events);
    if (thread_capture.virtual_too)
        vm_events_off(&virtual_events);
    natives_drain();
    if (thread_capture.jfr)
        waiting_report_all(UINT64_MAX);
    vm_wait_callbacks();
    thread_capture.jfr = NULL;
}

static void release(struct session *s)
{
    thread_capture.jfr = NULL;
    for (int i = 0; i < SHARDS; i++) {
        uint64_t key, value;
        for (size_t k = 0; map_next(&shards[i].waiters, &k, &key, &value);)
            waiter_free((struct waiter *)(uintptr_t)value);
        map_release(&shards[i].waiters);
    }
    objects_forget();
    at_start_release();
    for (int i = 0; platform && i < THREADS_MAX; i++) {
        free(platform[i].locks);
        free(platform[i].last);
    }
    for (int i = 0; i < THREADS_MAX; i++)
        if (atomic_load(&carries[i]))
            atomic_store(&carries[i], 0);
    if (platform)
        /* all are zero again */
        (void)madvise(platform, sizeof(*platform) * THREADS_MAX, MADV_DONTNEED);
}

static void status(struct session *s, struct buf *out)
{
    buf_printf(out, "threads.unpaired %llu\n",
               (unsigned long long)atomic_load(&thread_capture.lost));
    if (s->options.v[OPT_LOCKS].text)
        buf_printf(out, "threads.holds %llu\nthreads.holds_lost %llu\n",
                   (unsigned long long)locks_count(), (unsigned long long)locks_lost());
    if (option_on(&s->options, OPT_DEADLOCK))
        buf_printf(out, "threads.deadlocks %llu\n", (unsigned long long)deadlock_watch_found());
    deadlock_watch_status(out);
}

const struct capture capture_threads = {
    .name = "threads",
    .options = OPTION_BIT(OPT_THREADS) | OPTION_BIT(OPT_CONTANALYSIS) | OPTION_BIT(OPT_DEADLOCK) |
               OPTION_BIT(OPT_LOCKS),
    .jdk_events = "jdk.JavaMonitorEnter jdk.JavaMonitorWait jdk.ThreadPark jdk.ThreadSleep "
                  "jdk.ThreadStart jdk.ThreadEnd jdk.FileRead jdk.FileWrite jdk.SocketRead "
                  "jdk.SocketWrite jdk.GCPhasePause ",
    .needs = {.can_generate_monitor_events = 1},
    .own_stacks = true,
    .records_only = true,
    .likes = {.can_generate_garbage_collection_events = 1, .can_get_monitor_info = 1},
    .wanted = wanted,
    .load = deadlock_watch_load,
    .start = start,
    .stop = stop,
    .release = release,
    .flush = flush,
    .dump = dump,
    .restate = restate,
    .keep_stacks = keep_stacks,
    .status = status,
};
