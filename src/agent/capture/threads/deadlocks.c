/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock=y: forty times per second, or twice in a recording that is always on, a thread of the
 * agent examines the waits that have lasted for 20 ms or more, for monitors and for synchronizers
 * with an owner, and follows the chain of owners (TPTP thread profiling, TRCThreadDeadLockEvent).
 *
 * A deadlock forms when its last wait begins. Owners are therefore read only when there is a new
 * wait, and otherwise, as a precaution, at growing intervals, because reading the owner of some
 * monitors stops the VM.
 *
 * There are no false alarms, because a waiting thread cannot release what it owns. If each thread
 * of a cycle was in the same wait before and after the owners were read, all of them waited during
 * the whole time, so every owner that was read is still the owner. Waits with a timeout end by
 * themselves and are ignored.
 */

#include "agent/capture/threads/deadlocks.h"

#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/owner.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/common/fault.h"
#include "agent/stacks/names.h"
#include "agent/vm/shown_thread.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/timed_wait.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SEARCH_MS = 25, SEARCH_ALWAYS_MS = 500, FRAMES_SHOWN = 64, REPORTED = 256 };

/*
 * The owners of unchanged waits are read again after this many searches; the number doubles each
 * time.
 */
enum { AGAIN_FIRST = 2, AGAIN_MOST = 256 };

#define OLD_ENOUGH (20 * NS_PER_MS)

/* A thread that waits for something that another thread may own. */
struct stuck {
    uint64_t id, start, trace, class, monitor;
    uint64_t owner; /* when the wait began, replaced by the present owner */
    uint32_t object;
    uint32_t next;    /* index of the owner in the list, or NOBODY */
    uint32_t seen_by; /* number of the traversal that reached this thread, from 1 on */
    bool parked;
    jthread thread; /* a local reference, or NULL */
};

#define NOBODY UINT32_MAX

struct search {
    JNIEnv *jni;
    uint64_t before;
    VEC(struct stuck) list;
};

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t due;
    bool running, stop;
    jclass synchronizer;
    jfieldID owner;
    _Atomic uint64_t found;

    struct {
        uint64_t id, start;
    } reported[REPORTED]; /* waits that belong to deadlocks that have been reported */

    uint32_t n_reported;
    long search_ms;
    /*
     * The waits whose owners were read the last time, and the searches until they are read again.
     */
    VEC(struct known_wait {
        uint64_t id;
        uint64_t start;
    })
    known;
    uint32_t again, again_after;
    /* searches in all, those that found a new wait, and those that read the owners */
    _Atomic uint64_t searches, with_new, examined;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool deadlock_watch_owned(JNIEnv *jni, jobject blocker)
{
    return watch.synchronizer && (*jni)->IsInstanceOf(jni, blocker, watch.synchronizer);
}

void deadlock_watch_status(struct buf *out)
{
    if (watch.running)
        buf_printf(out, "deadlocks.searches %llu\ndeadlocks.new %llu\ndeadlocks.examined %llu\n",
                   (unsigned long long)atomic_load(&watch.searches),
                   (unsigned long long)atomic_load(&watch.with_new),
                   (unsigned long long)atomic_load(&watch.examined));
}

uint64_t deadlock_watch_found(void)
{
    return atomic_load(&watch.found);
}

static const struct wait *stuck_wait(const struct waiter *w, uint64_t before)
{
    static const enum wait_kind kinds[] = {WAIT_ENTER, WAIT_PARK, WAIT_UNMOUNTED};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct wait *at = &w->waits[kinds[i]];
        uint64_t start = seqlock_stamp(&at->start);
        if (start && start <= before && (kinds[i] == WAIT_ENTER || (at->owned && !at->timeout)))
            return at;
    }
    return NULL;
}

static void add_waiter(struct waiter *w, jthread thread, void *arg)
{
    struct search *l = arg;
    const struct wait *at = stuck_wait(w, l->before);
    uint64_t start = at ? seqlock_stamp(&at->start) : 0;
    if (!start)
        return;
    struct stuck s = {.id = w->id,
                      .start = start,
                      .trace = at->trace,
                      .class = at->class,
                      .monitor = at->monitor,
                      .owner = at->owner,
                      .object = at->object,
                      .next = NOBODY,
                      .parked = at != &w->waits[WAIT_ENTER]};
    if (!seqlock_stamp_holds(&at->start, start))
        return; /* it waits for something else by now, so this is not a deadlock */
    s.thread = thread ? (*l->jni)->NewLocalRef(l->jni, thread) : NULL;
    (void)!vec_push(&l->list, s);
}

/* Stores references to the platform threads of the list. */
static void find_threads(struct search *l)
{
    jthread *all = NULL;
    jint n = 0;
    if (vm_all_threads(&n, &all) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        uint64_t id = thread_record(l->jni, all[i]);
        struct stuck *of = NULL;
        for (size_t k = 0; k < l->list.len && !of; k++)
            of = l->list.data[k].id == id && !l->list.data[k].thread ? &l->list.data[k] : NULL;
        if (of)
            of->thread = all[i];
        else
            (*l->jni)->DeleteLocalRef(l->jni, all[i]);
    }
    vm_free(all);
}

/* Returns the current owner of the synchronizer that is a thread's parkBlocker, or 0. */
static uint64_t owner_of_blocker(JNIEnv *jni, jthread thread)
{
    jobject blocker =
        thread ? (*jni)->GetObjectField(jni, thread, thread_capture.park_blocker) : NULL;
    jthread owner = blocker && deadlock_watch_owned(jni, blocker)
                        ? (*jni)->GetObjectField(jni, blocker, watch.owner)
                        : NULL;
    uint64_t id = owner ? thread_record(jni, owner) : 0;
    if (owner)
        (*jni)->DeleteLocalRef(jni, owner);
    if (blocker)
        (*jni)->DeleteLocalRef(jni, blocker);
    return id;
}

static bool holds(JNIEnv *jni, jthread thread, const struct stuck *s)
{
    jobject *owned = NULL;
    jint n = 0;
    bool found = false;
    if (!thread || !vm.have.can_get_owned_monitor_info ||
        (*vm.ti)->GetOwnedMonitorInfo(vm.ti, thread, &n, &owned) != JVMTI_ERROR_NONE)
        return false;
    for (jint i = 0; i < n; i++) {
        found |= object_identity(owned[i]) == s->object && object_class(jni, owned[i]) == s->class;
        (*jni)->DeleteLocalRef(jni, owned[i]);
    }
    vm_free(owned);
    return found;
}

/*
 * Returns the id of the listed thread that holds the monitor for which s waits, or 0. The VM does
 * not know the owner of a monitor that a virtual thread acquired without contention and kept while
 * unmounted.
 */
static uint64_t holder(const struct search *l, const struct stuck *s)
{
    for (size_t k = 0; k < l->list.len; k++)
        if (&l->list.data[k] != s && holds(l->jni, l->list.data[k].thread, s))
            return l->list.data[k].id;
    return 0;
}

static void find_owners(struct search *l)
{
    for (size_t i = 0; i < l->list.len; i++) {
        struct stuck *s = &l->list.data[i];
        uint64_t now = 0;
        if (s->parked)
            s->owner = owner_of_blocker(l->jni, s->thread);
        else if (owner_of_monitor(s->monitor, &now))
            s->owner = now;
        else if (!s->owner)
            s->owner = holder(l, s);
        for (size_t k = 0; s->owner && k < l->list.len; k++)
            if (k != i && l->list.data[k].id == s->owner)
                s->next = (uint32_t)k;
    }
}

static const struct stuck *same_wait(const struct search *l, const struct stuck *s)
{
    for (size_t i = 0; i < l->list.len; i++)
        if (l->list.data[i].id == s->id && l->list.data[i].start == s->start)
            return &l->list.data[i];
    return NULL;
}

/*
 * Returns true once for each deadlock: if every thread of the cycle is still waiting and the cycle
 * has not been reported.
 */
static bool cycle_is_new(const struct search *l, uint32_t first, const struct search *again)
{
    bool new = false;
    uint32_t at = first;
    do {
        const struct stuck *s = &l->list.data[at];
        bool known = false;
        if (!same_wait(again, s))
            return false;
        for (uint32_t i = 0; i < MIN(watch.n_reported, (uint32_t)REPORTED) && !known; i++)
            known = watch.reported[i].id == s->id && watch.reported[i].start == s->start;
        new |= !known;
    } while ((at = l->list.data[at].next) != first);
    do {
        const struct stuck *s = &l->list.data[at];
        uint32_t place = watch.n_reported++ % REPORTED;
        watch.reported[place].id = s->id;
        watch.reported[place].start = s->start;
    } while (new && (at = l->list.data[at].next) != first);
    return new;
}

static void print_name(struct buf *out, JNIEnv *jni, jthread thread)
{
    _cleanup_free_ char *name = thread ? shown_thread_name(jni, thread) : NULL;
    buf_printf(out, name ? "\"%s\"" : "a thread", name);
}

static void print_stack(struct buf *out, JNIEnv *jni, jthread thread)
{
    jvmtiFrameInfo frames[FRAMES_SHOWN];
    jint n = 0;
    if (!thread ||
        (*vm.ti)->GetStackTrace(vm.ti, thread, 0, FRAMES_SHOWN, frames, &n) != JVMTI_ERROR_NONE)
        return;
    unsigned hold = names_hold();
    for (jint i = 0; i < n; i++) {
        const struct method *m = names_method(jni, frames[i].method);
        char class_name[512];
        if (!m)
            continue;
        names_dotted(m->class_name, class_name, sizeof(class_name));
        buf_printf(out, "      at %s.%s", class_name, m->name);
        if (m->source && frames[i].location >= 0)
            buf_printf(out, "(%s:%u)", m->source,
                       names_method_line(m, (int32_t)frames[i].location));
        buf_u8(out, '\n');
    }
    names_unhold(hold);
}

static void put_deadlock(const struct stuck *s, uint64_t number, uint32_t size, uint64_t formed)
{
    struct jfr_event e;
    if (!thread_capture.jfr ||
        !jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_DEADLOCK], 0, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, (int64_t)s->id);
    jfr_put_long(&e, (int64_t)s->trace);
    jfr_put_int(&e, (int32_t)number);
    jfr_put_int(&e, (int32_t)size);
    jfr_put_time(&e, formed);
    jfr_put_long(&e, (int64_t)s->class);
    jfr_put_long(&e, s->object);
    jfr_put_long(&e, (int64_t)s->owner);
    jfr_commit(&e);
}

static void report(struct search *l, uint32_t first)
{
    uint32_t size = 0, at = first;
    uint64_t formed = 0, number = atomic_fetch_add(&watch.found, 1) + 1;
    do {
        formed = MAX(formed, l->list.data[at].start);
        size++;
    } while ((at = l->list.data[at].next) != first);
    do
        put_deadlock(&l->list.data[at], number, size, formed);
    while ((at = l->list.data[at].next) != first);
    struct buf text = BUF(1 << 20);
    find_threads(l);
    buf_printf(&text, "jvmscope: deadlock of %u threads, formed %llu ms ago\n", size,
               (unsigned long long)((now_ns() - formed) / NS_PER_MS));
    do {
        const struct stuck *s = &l->list.data[at];
        char class_name[512];
        buf_string(&text, "  ");
        print_name(&text, l->jni, s->thread);
        object_class_name(s->class, class_name, sizeof(class_name));
        buf_printf(&text, " waits for %s@%x, owned by ", class_name, s->object);
        print_name(&text, l->jni, l->list.data[s->next].thread);
        buf_u8(&text, '\n');
        print_stack(&text, l->jni, s->thread);
    } while ((at = l->list.data[at].next) != first);
    fwrite(text.data, 1, text.len, stderr);
    buf_release(&text);
}

static bool is_known(const struct stuck *s)
{
    for (size_t i = 0; i < watch.known.len; i++)
        if (watch.known.data[i].id == s->id && watch.known.data[i].start == s->start)
            return true;
    return false;
}

/* Returns whether a deadlock may have formed since the owners were last read. */
static bool is_worth_it(const struct search *l)
{
    bool new = false;
    for (size_t i = 0; i < l->list.len && !new; i++)
        new = !is_known(&l->list.data[i]);
    if (l->list.len < 2)
        return false;
    atomic_fetch_add(&watch.with_new, new);
    if (new)
        watch.again_after = AGAIN_FIRST;
    else if (--watch.again)
        return false;
    else
        watch.again_after = MIN(2 * watch.again_after, (uint32_t)AGAIN_MOST);
    watch.again = watch.again_after;
    vec_clear(&watch.known);
    for (size_t i = 0; i < l->list.len; i++)
        (void)!vec_push(&watch.known,
                        ((struct known_wait){l->list.data[i].id, l->list.data[i].start}));
    return true;
}

static void search_release(struct search *l)
{
    for (size_t i = 0; i < l->list.len; i++)
        if (l->list.data[i].thread)
            (*l->jni)->DeleteLocalRef(l->jni, l->list.data[i].thread);
    vec_release(&l->list);
}

static void search_once(JNIEnv *jni)
{
    struct search l = {.jni = jni, .before = now_ns() - OLD_ENOUGH}, again = l;
    bool parked = false, cycle = false;
    waiters_visit(jni, add_waiter, &l);
    atomic_fetch_add(&watch.searches, 1);
    if (!is_worth_it(&l)) {
        search_release(&l);
        return;
    }
    atomic_fetch_add(&watch.examined, 1);
    for (size_t i = 0; i < l.list.len; i++)
        parked |= l.list.data[i].parked && !l.list.data[i].thread;
    if (parked)
        find_threads(&l);
    find_owners(&l);
    for (size_t i = 0; i < l.list.len; i++) {
        uint32_t at = (uint32_t)i, walk = at + 1;
        while (at != NOBODY && !l.list.data[at].seen_by) {
            l.list.data[at].seen_by = walk;
            at = l.list.data[at].next;
        }
        if (at == NOBODY || l.list.data[at].seen_by != walk)
            continue;
        if (!cycle)
            waiters_visit(jni, add_waiter, &again);
        cycle = true;
        if (cycle_is_new(&l, at, &again))
            report(&l, at);
    }
    search_release(&again);
    search_release(&l);
}

static void *run(void *unused)
{
    JNIEnv *jni = NULL;
    JavaVMAttachArgs args = {JNI_VERSION_1_6, (char *)"jvmscope deadlocks", NULL};
    threads_own_here();
    pthread_mutex_lock(&watch.lock);
    /* The VM accepts no threads before VMInit has returned. */
    while (!watch.stop &&
           (*vm.java)->AttachCurrentThreadAsDaemon(vm.java, (void **)&jni, &args) != JNI_OK) {
        pthread_mutex_unlock(&watch.lock);
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
        pthread_mutex_lock(&watch.lock);
    }
    while (!watch.stop) {
        timed_wait(&watch.due, &watch.lock, watch.search_ms * NS_PER_MS);
        pthread_mutex_unlock(&watch.lock);
        if (!watch.stop && thread_capture.jfr)
            search_once(jni);
        pthread_mutex_lock(&watch.lock);
    }
    pthread_mutex_unlock(&watch.lock);
    if (jni)
        (*vm.java)->DetachCurrentThread(vm.java);
    return NULL;
}

int deadlock_watch_load(struct session *s, struct buf *why)
{
    static const jvmtiCapabilities owned = {.can_get_owned_monitor_info = 1};
    return option_on(&s->options, OPT_DEADLOCK) ? vm_need(&owned, NULL) : 0;
}

int deadlock_watch_start(JNIEnv *jni, bool always, struct buf *why)
{
    jclass c = (*jni)->FindClass(jni, "java/util/concurrent/locks/AbstractOwnableSynchronizer");
    watch.synchronizer = c ? (*jni)->NewGlobalRef(jni, c) : NULL;
    watch.owner =
        c ? (*jni)->GetFieldID(jni, c, "exclusiveOwnerThread", "Ljava/lang/Thread;") : NULL;
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    if (!watch.owner || !watch.synchronizer) {
        buf_printf(
            why, "deadlock=y: AbstractOwnableSynchronizer has no exclusiveOwnerThread in this VM");
        return -ENOTSUP;
    }
    watch.stop = false;
    atomic_store(&watch.found, 0);
    watch.n_reported = 0;
    watch.search_ms = always ? SEARCH_ALWAYS_MS : SEARCH_MS;
    watch.again = watch.again_after = AGAIN_FIRST;
    watch.searches = watch.with_new = watch.examined = 0;
    thread_capture.watch = true;
    timed_wait_init(&watch.due);
    watch.running = !fault_here() && pthread_create(&watch.thread, NULL, run, NULL) == 0;
    if (!watch.running)
        buf_printf(why, "deadlock=y: the system cannot start a thread");
    return watch.running ? 0 : -EAGAIN;
}

int deadlock_watch_begin(JNIEnv *jni, struct buf *why)
{
    static const jvmtiCapabilities owned = {.can_get_owned_monitor_info = 1};
    jvmtiCapabilities missing;
    if (watch.running)
        return 0;
    int r = vm_need(&owned, &missing);
    return r < 0 ? r : deadlock_watch_start(jni, true, why);
}

void deadlock_watch_stop(JNIEnv *jni)
{
    if (watch.running) {
        pthread_mutex_lock(&watch.lock);
        watch.stop = true;
        pthread_cond_signal(&watch.due);
        pthread_mutex_unlock(&watch.lock);
        pthread_join(watch.thread, NULL);
    }
    watch.running = false;
    vec_release(&watch.known);
    thread_capture.watch = false;
    if (watch.synchronizer)
        (*jni)->DeleteGlobalRef(jni, watch.synchronizer);
    watch.synchronizer = NULL;
}
