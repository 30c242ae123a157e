/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the ends of objects and collections. HotSpot reports freed tags during or after a
 * collection, on its own threads, whose callbacks must not call the VM. They are queued, and one
 * thread of the layer sends GC_START, OBJECT_FREE and CLASS_UNLOAD, and GC_FINISH, so that an agent
 * can hold a lock in between.
 */
#include "jvmpi/memory.h"
#include "base/clock.h"
#include "base/timed_wait.h"
#include "base/vec.h"
#include "jvmpi/brackets.h"
#include "jvmpi/classes.h"
#include "jvmpi/heap_counts.h"
#include "jvmpi/heap_walks.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/kernel_thread.h"
#include "jvmpi/layer.h"
#include "jvmpi/lookup.h"
#include "jvmpi/references.h"
#include "jvmpi/sizes.h"
#include "jvmpi/thread_table.h"
#include "jvmpi/threads.h"
#include "jvmpi/weak_ids.h"

#include <stdlib.h>
#include <string.h>

/*
 * Not held during calls of the VM, so a suspended thread, which stops in such a call, never holds
 * it.
 */
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
TIMED_WAIT_STATIC(queue_changed)

enum { MARK = -1, MARK_LOST = -2 };

static id_vec freed;              /* ids, or the marks described at `marks` */
static uint64_t queued, reported; /* numbers of entries */
static uint64_t collections, collections_settled, collections_sent;
static jlong last_before; /* the last id given before the last collection */
static int gc_disabled, walks;
static jlong sentinel; /* layer_run_gc waits for its end */
static bool sentinel_sent, stopping, running, delivering;
/*
 * Brackets that were sent before the collections for which they count, because ends were reported
 * after the bracket of their collection.
 */
static uint64_t early_sent;
static int waiting;       /* threads for which brackets must not be held back */
static JNIEnv *deliverer; /* the delivering thread's; NULL until it has begun */
static bool idle; /* everything that was queued when the delivering thread last looked is sent */
static atomic_int forced; /* unfinished collections started by layer_run_gc */

/*
 * The end of a class must be reported after the ends of everything that belonged to it, but HotSpot
 * reports ends in any order. Before JDK 16 it reports all of them within one pause. Since then its
 * service thread does so, one environment after the other, and may be interrupted between any two.
 * Therefore each class has a tag in a second, younger environment too. When anything is reported
 * there, the service thread has finished with the first environment. Reports of the second
 * environment are marks in the queue, and a class's end is certain once a mark has followed it.
 * Nearly always that is its own mark, immediately. A collection between the two environments can
 * bring the mark too early; then an object that nobody holds supplies another mark.
 *
 * SetEventNotificationMode would make HotSpot report at once what has ended, but since JDK 16 the
 * VM can hang in it: the caller reports and stops for a collection, while the service thread waits
 * for it and cannot stop.
 *
 * A walk of the heap reports what it finds dead on the walking thread (memory_walk_begin), and does
 * so for all environments to the one that walks. A mark that is reported in that way says nothing
 * about the service thread, so another one is requested.
 */
static jvmtiEnv *marks;

/*
 * How far the delivering thread was when another thread began to wait for it. Before the wait all
 * members are zero.
 */
struct progress {
    uint64_t n_sent;
    struct timespec until;
};

/*
 * Waits for a change of the queue. Returns false if the delivering thread is suspended, or has sent
 * nothing for this many seconds. Requires the mutex.
 */
static bool progresses(struct progress *p, time_t seconds)
{
    if (thread_is_suspended(deliverer))
        return false;
    uint64_t now = brackets_frees();
    if (!p->until.tv_sec || p->n_sent != now)
        *p = (struct progress){now, timed_wait_end(seconds * NS_PER_SECOND)};
    return !pthread_cond_timedwait(&queue_changed, &queue_mutex, &p->until) ||
           brackets_frees() != p->n_sent;
}

/* Requires the mutex. */
static void queue(jlong id)
{
    queued++;
    if (vec_push(&freed, id)) {
        reported += freed.len + 1;
        vec_clear(&freed);
    }
}

static void queue_one(jlong id)
{
    pthread_mutex_lock(&queue_mutex);
    queue(id);
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

static void JNICALL on_free(jvmtiEnv *ti, jlong tag)
{
    queue_one(tag == MARK ? MARK_LOST : tag);
}

static void JNICALL on_mark(jvmtiEnv *ti, jlong tag)
{
    queue_one(MARK);
}

int memory_open(void)
{
    static const jvmtiCapabilities tags = {.can_tag_objects = 1,
                                           .can_generate_object_free_events = 1};
    static const jvmtiEventCallbacks callbacks = {.ObjectFree = on_mark};
    jvmtiEnv *ti = NULL;
    if ((*vm.java)->GetEnv(vm.java, (void **)&ti, JVMTI_VERSION_1_0) != JNI_OK)
        return -1;
    marks = ti; /* never freed */
    return (*ti)->AddCapabilities(ti, &tags) ||
                   (*ti)->SetEventCallbacks(ti, &callbacks, sizeof(callbacks)) ||
                   (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_OBJECT_FREE, NULL)
               ? -1
               : 0;
}

int memory_listen(jvmtiEnv *ti)
{
    static const jvmtiEventCallbacks callbacks = {.ObjectFree = on_free};
    return (*ti)->SetEventCallbacks(ti, &callbacks, sizeof(callbacks)) ? -1 : 0;
}

void memory_watch_class(JNIEnv *env, jclass class, jobjectID id)
{
    id_tag(id);
    (void)(*marks)->SetTag(marks, class, MARK);
}

void memory_ended(const jlong *ids, size_t n)
{
    if (!layer_enabled(JVMPI_EVENT_OBJECT_FREE))
        return;
    pthread_mutex_lock(&queue_mutex);
    for (size_t i = 0; i < n; i++)
        queue(ids[i]);
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

static void JNICALL on_gc_finish(jvmtiEnv *ti)
{
    pthread_mutex_lock(&queue_mutex);
    collections++;
    last_before = layer_last_id_given();
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

const struct vm_callbacks free_events = {.ti = {.ObjectFree = on_free}};
const struct vm_callbacks gc_events = {.ti = {.GarbageCollectionFinish = on_gc_finish}};

/*
 * Empties the queue. Requires the mutex, but releases it while it examines the ids. A collection
 * waits for the mutex in its pause, so no thread may hold it while it waits for a lock whose holder
 * the pause may have stopped.
 */
static void take_queued(struct taken *t)
{
    id_vec ids = freed;
    uint64_t passed = 0;
    if (!ids.len)
        return;
    freed = (id_vec){0};
    pthread_mutex_unlock(&queue_mutex);
    for (size_t i = 0; i < ids.len; i++) {
        jlong id = ids.data[i];
        if (id == MARK || id == MARK_LOST) {
            t->certain = id == MARK ? t->classes.len : t->certain;
            t->asked = false;
            passed++;
        } else if (layer_is_class(id) && !layer_mutation("class-before-objects")) {
            passed += vec_push(&t->classes, id) != 0;
        } else {
            passed += vec_push(&t->objects, id) != 0;
        }
    }
    vec_release(&ids);
    pthread_mutex_lock(&queue_mutex);
    reported += passed;
}

/* Requires the mutex. */
static void delivered(struct taken *t)
{
    reported += t->objects.len + t->settled;
    for (size_t i = 0; i < t->objects.len; i++)
        sentinel_sent |= t->objects.data[i] == sentinel;
    vec_clear(&t->objects);
    if (t->settled)
        memmove(t->classes.data, t->classes.data + t->settled,
                (t->classes.len - t->settled) * sizeof(*t->classes.data));
    t->classes.len -= t->settled;
    t->certain -= t->settled;
    t->settled = 0;
}

/*
 * Creates an object that nobody holds once the caller deletes the local reference. Returns NULL
 * when out of memory.
 */
static jobject new_unheld(JNIEnv *env)
{
    my.quiet++;
    jbyteArray object = (*env)->NewByteArray(env, 1);
    my.quiet--;
    return vm_clear_exception(env) ? NULL : object;
}

static void ask_for_mark(JNIEnv *env)
{
    jobject object = new_unheld(env);
    if (object)
        (void)(*marks)->SetTag(marks, object, MARK);
    (*env)->DeleteLocalRef(env, object);
}

/*
 * Takes the next step of preparing the bracket, and releases the mutex meanwhile. Returns false if
 * only delivering or waiting remains. Requires the mutex.
 */
static bool prepare(JNIEnv *env, struct taken *t)
{
    bool collected = collections != collections_settled, ended = t->settled < t->certain;
    bool ask = t->certain < t->classes.len && !t->asked;
    jlong up_to = last_before;
    if (!collected && !ended && !ask)
        return false;
    if (collected)
        collections_settled = collections;
    else if (ended)
        t->settled = t->certain;
    else
        t->asked = true;
    pthread_mutex_unlock(&queue_mutex);
    if (collected)
        weak_ids_settle(env, up_to, !atomic_load(&forced));
    else if (ended)
        weak_ids_settle(env, layer_last_id_given(), false);
    else
        ask_for_mark(env);
    pthread_mutex_lock(&queue_mutex);
    return true;
}

/* Requires the mutex. Returns true if something is queued within this many milliseconds. */
static bool queued_within(uint64_t before, unsigned ms)
{
    struct timespec until = timed_wait_end(ms * NS_PER_MS);
    while (!stopping && queued == before &&
           !pthread_cond_timedwait(&queue_changed, &queue_mutex, &until))
        ;
    return stopping || queued != before;
}

/*
 * Waits until something is queued. If a walk has received the mark, no other mark may come before
 * the next collection. None is needed once the service thread has finished its reports, which is so
 * when it sleeps throughout two checks. Each check follows a call of the VM that waits for the end
 * of a collection or walk, which would stop the service thread too.
 */
static void wait_for_mark(JNIEnv *env, struct taken *t)
{
    enum { POLL_MS = 20, LIMIT_MS = 2000 };

    uint64_t before = queued, last = 0;
    for (unsigned waited = 0; waited < LIMIT_MS; waited += POLL_MS) {
        if (queued_within(before, POLL_MS))
            return;
        pthread_mutex_unlock(&queue_mutex);
        (*env)->DeleteLocalRef(env, new_unheld(env));
        bool slept = layer_service_thread_slept(&last);
        pthread_mutex_lock(&queue_mutex);
        if (slept)
            break;
    }
    if (queued == before && !walks)
        t->certain = t->classes.len;
}

/*
 * Returns how many brackets to send now, so that there is one for each collection. Requires the
 * mutex.
 */
static uint64_t take_due(const struct taken *t)
{
    uint64_t fresh = collections - collections_sent, due = fresh - MIN(early_sent, fresh);
    if (!due && (t->objects.len || t->settled || waiting))
        due = 1;
    early_sent = early_sent + due - fresh;
    collections_sent = collections;
    return due;
}

/*
 * Waits for the next collection, whose bracket can contain ends that were reported too late for
 * that of theirs: another one for each report would be more brackets than collections. But ends are
 * not held back for long. Returns false when they are to be sent, and true after a wait, because
 * brackets may be forbidden since then. Requires the mutex.
 */
static bool hold_late(const struct taken *t, struct timespec *until)
{
    enum { HOLD_MS = 200, EXPIRED = -1 };

    bool late = collections == collections_sent && (t->objects.len || t->settled);
    if (!late || !early_sent || waiting || until->tv_sec == EXPIRED) {
        until->tv_sec = 0;
        return false;
    }
    if (!until->tv_sec)
        *until = timed_wait_end(HOLD_MS * NS_PER_MS);
    if (pthread_cond_timedwait(&queue_changed, &queue_mutex, until))
        until->tv_sec = EXPIRED;
    return true;
}

static void JNICALL deliver_all(jvmtiEnv *ti, JNIEnv *env, void *data)
{
    struct taken t = {0};
    struct timespec held_until = {0};
    pthread_mutex_lock(&queue_mutex);
    while (!stopping) {
        if (!gc_disabled && !walks)
            take_queued(&t);
        bool held = gc_disabled || walks; /* take_queued has released the mutex */
        if (prepare(env, &t))
            continue;
        if (held || (!t.objects.len && !t.settled && collections == collections_sent)) {
            idle = !held && t.certain == t.classes.len;
            pthread_cond_broadcast(&queue_changed); /* marks count as reported */
            if (!held && t.certain < t.classes.len) {
                wait_for_mark(env, &t);
            } else {
                pthread_cond_wait(&queue_changed, &queue_mutex);
            }
            idle = false;
            continue;
        }
        if (hold_late(&t, &held_until))
            continue;
        uint64_t due = take_due(&t);
        delivering = true;
        pthread_mutex_unlock(&queue_mutex);
        brackets_send(env, &t, due);
        pthread_mutex_lock(&queue_mutex);
        delivering = false;
        delivered(&t);
        pthread_cond_broadcast(&queue_changed);
    }
    running = false;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
    vec_release(&t.objects);
    vec_release(&t.classes);
}

static void run_delivery(void *unused)
{
    jthread self = NULL;
    JNIEnv *env = vm_jni();
    my.asked = 0; /* this is a thread of the layer, not of the agent */
    /*
     * The thread ends when the VM does, and then some VMs send no ThreadEnd. For the agent it
     * continues, so its object is never freed.
     */
    if (!(*vm.ti)->GetCurrentThread(vm.ti, &self))
        (void)layer_global(env, self);
    (*env)->DeleteLocalRef(env, self);
    pthread_mutex_lock(&queue_mutex);
    deliverer = env;
    pthread_mutex_unlock(&queue_mutex);
    deliver_all(vm.ti, env, NULL);
}

int memory_start(JNIEnv *env)
{
    char name[] = "JVMPI events";
    running = true;
    if (layer_create_system_thread(name, JVMPI_NORMAL_PRIORITY, run_delivery) == JNI_OK)
        return 0;
    running = false;
    return -1;
}

/*
 * Sends what is queued, for two seconds at most, because an agent expects to be notified of what
 * ended before the VM did. Then ends the delivering thread, waiting for the bracket in progress as
 * long as that sends events.
 */
void memory_stop(void)
{
    enum { LIMIT_S = 2 };

    struct timespec until = timed_wait_end(LIMIT_S * NS_PER_SECOND);
    struct progress p = {0};
    pthread_mutex_lock(&queue_mutex);
    waiting++;
    pthread_cond_broadcast(&queue_changed);
    while (!my.notifying && running && !(idle && !freed.len && collections == collections_sent) &&
           !pthread_cond_timedwait(&queue_changed, &queue_mutex, &until))
        ;
    stopping = true;
    pthread_cond_broadcast(&queue_changed);
    while (running && progresses(&p, LIMIT_S))
        ;
    pthread_mutex_unlock(&queue_mutex);
}

/* Requests of the calling thread that hold back brackets. */
static __thread int own_holds;
static int disabled_by_agent; /* protected by queue_mutex */

/*
 * Waits for the bracket in progress, as for a collection, unless a handler of the bracket may be
 * waiting for the caller. The limit is for agents in which a handler waits for something that the
 * caller holds without our knowledge; it is a time without any event, because a large bracket may
 * take longer.
 */
static void hold_brackets(int by_agent)
{
    enum { LIMIT_S = 10 };

    struct progress p = {0};
    pthread_mutex_lock(&queue_mutex);
    gc_disabled++;
    disabled_by_agent += by_agent;
    while (delivering && !my.notifying && !my.raw_held && progresses(&p, LIMIT_S))
        ;
    pthread_mutex_unlock(&queue_mutex);
}

static void release_brackets(int by_agent)
{
    pthread_mutex_lock(&queue_mutex);
    /*
     * If an agent calls EnableGC too often, that must not release what the layer itself holds back.
     */
    if (!by_agent || disabled_by_agent > 0) {
        gc_disabled--;
        disabled_by_agent -= by_agent;
    }
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

void layer_brackets_hold(void)
{
    own_holds++;
    hold_brackets(0);
}

void layer_brackets_release(void)
{
    release_brackets(0);
    own_holds--;
}

void layer_disable_gc(void)
{
    hold_brackets(1);
}

void layer_enable_gc(void)
{
    release_brackets(1);
}

/*
 * Drops a new object. Once its end has been reported, the ends of all objects before it have been
 * reported too.
 */
static void drop_sentinel(JNIEnv *env)
{
    jobject object = new_unheld(env); /* one object suffices */
    jlong id = object ? id_give(object) : 0;
    (*env)->DeleteLocalRef(env, object);
    pthread_mutex_lock(&queue_mutex);
    sentinel = id;
    sentinel_sent = !id;
    pthread_mutex_unlock(&queue_mutex);
}

void memory_walk_begin(void)
{
    pthread_mutex_lock(&queue_mutex);
    walks++;
    pthread_mutex_unlock(&queue_mutex);
    heap_walk_begin();
}

void memory_walk_end(void)
{
    heap_walk_end();
    pthread_mutex_lock(&queue_mutex);
    walks--;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

/*
 * Runs a collection. If a count keeps classes alive, the brackets are held back until the
 * collection has ended, so that no count is made in the middle of it, and its GC_FINISH has the
 * count at its end.
 */
static void collect(void)
{
    bool count = layer_enabled(JVMPI_EVENT_GC_FINISH) && heap_count_keeps_classes();
    if (count)
        hold_brackets(0);
    atomic_fetch_add(&forced, 1);
    heap_walk_begin();
    (void)(*vm.ti)->ForceGarbageCollection(vm.ti);
    heap_walk_end();
    atomic_fetch_sub(&forced, 1);
    if (count) {
        heap_count();
        release_brackets(0);
    }
}

void layer_run_gc(void)
{
    enum { LIMIT_S = 3 };

    JNIEnv *env = vm_jni();
    bool frees = layer_enabled(JVMPI_EVENT_OBJECT_FREE) || layer_enabled(JVMPI_EVENT_CLASS_UNLOAD);
    /* Requests of other threads meanwhile only delay the events of the collection. */
    if (!env || !atomic_load(&layer.live) || disabled_by_agent || own_holds || stopping)
        return;
    if (frees)
        drop_sentinel(env);
    pthread_mutex_lock(&queue_mutex);
    uint64_t before = collections_sent;
    waiting++;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
    jlong up_to = layer_last_id_given();
    collect();
    weak_ids_settle(env, up_to, false);
    bool brackets = layer_enabled(JVMPI_EVENT_GC_START) || layer_enabled(JVMPI_EVENT_GC_FINISH);
    struct progress p = {0};
    pthread_mutex_lock(&queue_mutex);
    uint64_t to_report = queued; /* includes dead objects of weak_ids.c */
    while (running &&
           ((frees && (!sentinel_sent || reported < to_report)) ||
            (brackets && collections_sent == before) || delivering) &&
           progresses(&p, LIMIT_S))
        ;
    waiting--;
    pthread_mutex_unlock(&queue_mutex);
}
