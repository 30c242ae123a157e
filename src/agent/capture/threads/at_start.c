/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the waits of threads that are already waiting when the capture begins. Their states, what
 * they wait for, its owner, and their stacks are read once, as is the list of virtual threads. Such
 * a wait ends with the thread's first event, which calls at_start_contact. Parks, sleeps and reads
 * return to the natives that were bound before and post no event, so the agent's thread checks a
 * few of these waits ten times per second.
 */

#include "agent/capture/threads/at_start.h"

#include "agent/capture/threads/carriers.h"
#include "agent/capture/threads/io.h"
#include "agent/capture/threads/lifetimes.h"
#include "agent/capture/threads/monitors.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/owner.h"
#include "agent/capture/threads/stack.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/capture/threads/waiting.h"
#include "agent/stacks/names.h"
#include "agent/vm/class_object.h"
#include "agent/vm/virtual_list.h"
#include "base/clock.h"
#include "base/dotted.h"
#include "base/map.h"
#include "base/vec.h"
#include "jfr/losses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKED_AT = 64,      /* number of waits that are checked each time */
    VIRTUAL_BATCH = 256, /* number of virtual threads whose stacks are requested at once */
};

#define READ_NS NS_PER_SECOND /* time for reading virtual threads */

enum progress { WAITS, OVER };

struct early_wait {
    uint64_t id; /* the thread's id in the recording */
    enum wait_kind kind;
    struct wait how;
    uint64_t java_id;
    jweak thread;
    /* of WAIT_ENTER: the thread itself, or the carrier of a virtual one; NULL: none */
    const struct thread *on;
    jmethodID native; /* of WAIT_IO: the method that waits */
    bool watched;     /* no event shows the end of the wait */
    bool asked;       /* the monitor still has to be determined */
    atomic_int progress;
};

/* The list is filled before it is published, and freed when no capture is on. */
static struct {
    _Atomic(struct early_wait *) list;
    _Atomic uint32_t n;
    struct map by_id; /* to indices of the list */
    atomic_uint open;
    uint32_t next; /* index of the wait that is checked next */
} early;

static __thread bool timed_out_here;

void at_start_timed_out(bool timed_out)
{
    timed_out_here = timed_out;
}

/* Ends a wait, and reports it. Of several callers only the first one reports it. */
static void ended(struct early_wait *e, uint64_t now, bool timed_out)
{
    int expected = WAITS;
    if (!atomic_compare_exchange_strong(&e->progress, &expected, OVER))
        return;
    atomic_fetch_sub(&early.open, 1);
    now = MAX(now, atomic_load(&e->how.start));
    threads_put_wait(e->id, e->kind, &e->how, now - atomic_load(&e->how.start), timed_out);
}

void at_start_contact(uint64_t id, uint64_t ready)
{
    const uint64_t *place =
        atomic_load(&early.n) && atomic_load(&early.open) ? map_get(&early.by_id, id) : NULL;
    if (place)
        ended(&atomic_load(&early.list)[*place], ready ? ready : now_ns(), timed_out_here);
}

/* ---- what the threads wait for ---- */

struct existing {
    JNIEnv *jni;
    VEC(struct early_wait) list;
    uint64_t since, late; /* late: number of virtual threads for which there was no time */
    struct existing_virtual batch[VIRTUAL_BATCH];
    jint n_batch;
    jmethodID id, lock, owner, class_name, hash; /* methods of ThreadInfo and LockInfo */
    VEC(uint64_t) carriers;                      /* ids of the threads that run virtual ones */
    struct class_finder finder;
};

/*
 * Returns whether a thread waits inside the VM: it runs no Java code, or the VM created it for its
 * own work.
 */
static bool waits_in_vm(const struct thread *t, const struct method *top)
{
    bool handler = top && strcmp(top->class_name, "java/lang/ref/Reference") == 0 &&
                   strcmp(top->name, "waitForReferencePendingList") == 0;
    return handler || (!top && t->group && strcmp(t->group, "system") == 0);
}

static bool classify(JNIEnv *jni, const struct thread *t, const jvmtiStackInfo *s,
                     struct early_wait *ret)
{
    const struct method *top = s->frame_count ? names_method(jni, s->frame_buffer[0].method) : NULL;
    jint state = s->state;
    if (state & JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER)
        ret->kind = WAIT_ENTER;
    else if (state & JVMTI_THREAD_STATE_SLEEPING)
        ret->kind = WAIT_SLEEP;
    else if (state & JVMTI_THREAD_STATE_PARKED)
        ret->kind = WAIT_PARK;
    else if (state & JVMTI_THREAD_STATE_IN_OBJECT_WAIT ||
             (state & JVMTI_THREAD_STATE_RUNNABLE && waits_in_vm(t, top)))
        ret->kind = WAIT_OBJECT;
    else if (state & JVMTI_THREAD_STATE_RUNNABLE && top && top->native &&
             io_waits_in(top->class_name, top->name))
        ret->kind = WAIT_IO;
    else
        return false;
    ret->native = s->frame_count ? s->frame_buffer[0].method : NULL;
    /*
     * The VM's own threads wait for each other. They are skipped, because asking about them would
     * load the classes of java.management into every program.
     */
    bool of_vm = !t->group || strcmp(t->group, "system") == 0 ||
                 strcmp(t->group, "InnocuousThreadGroup") == 0;
    ret->asked = !of_vm && (ret->kind == WAIT_ENTER || ret->kind == WAIT_OBJECT);
    ret->watched = ret->kind == WAIT_SLEEP || ret->kind == WAIT_PARK || ret->kind == WAIT_IO;
    return true;
}

/* Finds the object on which a thread is parked, and its owner. */
static void find_blocker(JNIEnv *jni, jthread thread, struct wait *how)
{
    jobject blocker = (*jni)->GetObjectField(jni, thread, thread_capture.park_blocker);
    if (!blocker)
        return;
    how->object = object_identity(blocker);
    how->class = object_class(jni, blocker);
    how->owner = owner_of_synchronizer(jni, blocker, &how->owned);
    (*jni)->DeleteLocalRef(jni, blocker);
}

/*
 * Returns the constant of a lock's class, from its name with dots and the identity hash of the
 * lock.
 */
static uint64_t class_of_lock(struct existing *l, jstring name, jint hash)
{
    JNIEnv *jni = l->jni;
    char text[512];
    jsize len = name ? (*jni)->GetStringLength(jni, name) : 0;
    jsize utf = name ? (*jni)->GetStringUTFLength(jni, name) : 0;
    if (!name || utf >= (jsize)sizeof(text))
        return 0;
    (*jni)->GetStringUTFRegion(jni, name, 0, len, text);
    text[utf] = 0;
    jclass of = strcmp(text, CLASS_OF_CLASSES) == 0 ? class_find_by_hash(&l->finder, hash) : NULL;
    if (of)
        return object_record_class_object(jni, of);
    dotted_undo(text);
    return jfr_define_class(thread_capture.jfr, &(struct jfr_class){.name = text});
}

static void take_info(struct existing *l, jobject info)
{
    JNIEnv *jni = l->jni;
    uint64_t id = (uint64_t)vm_call_long(jni, info, l->id);
    jobject lock = vm_call_object(jni, info, l->lock);
    jlong owner = vm_call_long(jni, info, l->owner);
    struct early_wait *of = NULL;
    for (size_t i = 0; i < l->list.len && lock; i++)
        if (l->list.data[i].java_id == id && l->list.data[i].asked)
            of = &l->list.data[i];
    if (of) {
        jstring name = vm_call_object(jni, lock, l->class_name);
        jint hash = vm_call_int(jni, lock, l->hash);
        of->how.class = class_of_lock(l, name, hash);
        of->how.object = (uint32_t)hash;
        of->how.owner = owner > 0 && of->kind == WAIT_ENTER ? thread_record_id((uint64_t)owner) : 0;
        if (name)
            (*jni)->DeleteLocalRef(jni, name);
    }
    vm_clear_exception(jni);
    if (lock)
        (*jni)->DeleteLocalRef(jni, lock);
}

/*
 * Reads the monitors from ThreadMXBean: JVM TI's own function needs a capability that no VM grants
 * to an agent that attaches. This is not called at start-up, when only the VM's own threads can
 * wait.
 */
static void find_monitors(struct existing *l)
{
    static const char bean_class[] = "java/lang/management/ThreadMXBean",
                      info[] = "java/lang/management/ThreadInfo";
    static const char lock[] = "java/lang/management/LockInfo",
                      factory[] = "java/lang/management/ManagementFactory";
    JNIEnv *jni = l->jni;
    size_t n = 0;
    jlong *ids = malloc((l->list.len + 1) * sizeof(*ids));
    for (size_t i = 0; ids && i < l->list.len; i++)
        if (l->list.data[i].asked)
            ids[n++] = (jlong)l->list.data[i].java_id;
    jclass c = n && vm.late ? (*jni)->FindClass(jni, factory) : NULL;
    jmethodID bean_of = c ? (*jni)->GetStaticMethodID(jni, c, "getThreadMXBean",
                                                      "()Ljava/lang/management/ThreadMXBean;")
                          : NULL;
    jobject bean = bean_of ? (*jni)->CallStaticObjectMethod(jni, c, bean_of) : NULL;
    vm_clear_exception(jni);
    jmethodID infos_of =
        bean ? vm_method(jni, bean_class, "getThreadInfo", "([J)[Ljava/lang/management/ThreadInfo;")
             : NULL;
    jlongArray array = infos_of ? (*jni)->NewLongArray(jni, (jsize)n) : NULL;
    jobjectArray infos = NULL;
    if (array) {
        (*jni)->SetLongArrayRegion(jni, array, 0, (jsize)n, ids);
        infos = (*jni)->CallObjectMethod(jni, bean, infos_of, array);
        if (vm_clear_exception(jni))
            infos = NULL;
        l->id = vm_method(jni, info, "getThreadId", "()J");
        l->lock = vm_method(jni, info, "getLockInfo", "()Ljava/lang/management/LockInfo;");
        l->owner = vm_method(jni, info, "getLockOwnerId", "()J");
        l->class_name = vm_method(jni, lock, "getClassName", "()Ljava/lang/String;");
        l->hash = vm_method(jni, lock, "getIdentityHashCode", "()I");
    }
    for (jsize i = 0;
         infos && l->id && l->lock && l->owner && l->class_name && l->hash && i < (jsize)n; i++) {
        jobject one = (*jni)->GetObjectArrayElement(jni, infos, i);
        if (one)
            take_info(l, one);
        if (one)
            (*jni)->DeleteLocalRef(jni, one);
    }
    free(ids);
}

static void record_wait(struct existing *l, const jvmtiStackInfo *s, uint64_t since)
{
    uint64_t id = (uint64_t)(*l->jni)->GetLongField(l->jni, s->thread, thread_capture.tid);
    uint64_t record = thread_record_id(id);
    struct thread *t = record && record <= UINT32_MAX ? threads_by_serial((uint32_t)record) : NULL;
    struct early_wait e = {.java_id = id, .on = t};
    if (!t || t->own || !classify(l->jni, t, s, &e))
        return;
    e.id = record;
    atomic_store(&e.how.start, since);
    e.how.trace = stack_of_frames(s->frame_buffer, MIN(s->frame_count, thread_capture.depth));
    if (e.kind == WAIT_PARK)
        find_blocker(l->jni, s->thread, &e.how);
    e.thread = e.watched ? (*l->jni)->NewWeakGlobalRef(l->jni, s->thread) : NULL;
    (void)!vec_push(&l->list, e);
}

/* ---- existing virtual threads ---- */

/*
 * Notes a mounted virtual thread: its carrier runs it until the capture's events, which are already
 * enabled, report otherwise. The thread's first event reports it as started.
 */
static void carried(JNIEnv *jni, const struct existing_virtual *v, uint64_t id)
{
    thread_carried(v->carrier, 0, id);
    if (waiter_has_posted(id) || virtual_thread_carrier(jni, v->thread) != v->carrier)
        thread_carried(v->carrier, id, 0);
}

/*
 * Returns whether a thread was unmounted by one of its own methods, such as yield. Otherwise it was
 * unmounted because it needed a monitor or a class. If it has no carrier and does not wait, it has
 * since obtained the monitor or class and is ready, although its stack does not show this.
 */
static bool unmounted_itself(struct existing *l, jmethodID top)
{
    jclass class = NULL;
    char *signature = NULL;
    bool own = (*vm.ti)->GetMethodDeclaringClass(vm.ti, top, &class) == JVMTI_ERROR_NONE &&
               (*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) == JVMTI_ERROR_NONE &&
               (strcmp(signature, "Ljava/lang/VirtualThread;") == 0 ||
                strncmp(signature, "Ljdk/internal/vm/", 17) == 0);
    vm_free(signature);
    if (class)
        (*l->jni)->DeleteLocalRef(l->jni, class);
    return own;
}

/*
 * Reads the wait of a virtual thread from its state and stack. Returns false when it does not wait.
 */
static bool virtual_wait(struct existing *l, const struct existing_virtual *v,
                         const jvmtiStackInfo *s, struct early_wait *ret)
{
    if (s->state & JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER)
        ret->kind = WAIT_ENTER;
    else if (s->state & JVMTI_THREAD_STATE_IN_OBJECT_WAIT)
        ret->kind = WAIT_OBJECT;
    else if (!v->carrier && s->state & JVMTI_THREAD_STATE_RUNNABLE &&
             !unmounted_itself(l, s->frame_buffer[0].method))
        return false;
    else if (!v->carrier)
        ret->kind = WAIT_UNMOUNTED;
    else if (s->state & JVMTI_THREAD_STATE_SLEEPING)
        ret->kind = WAIT_SLEEP;
    else if (s->state & JVMTI_THREAD_STATE_PARKED)
        ret->kind = WAIT_PARK;
    else
        return false;
    ret->watched = ret->kind == WAIT_SLEEP || ret->kind == WAIT_PARK;
    ret->how.trace = stack_of_frames(s->frame_buffer, MIN(s->frame_count, thread_capture.depth));
    if (ret->kind == WAIT_UNMOUNTED || ret->kind == WAIT_PARK)
        find_blocker(l->jni, v->thread, &ret->how);
    return true;
}

static void record_virtual(struct existing *l, const struct existing_virtual *v,
                           const jvmtiStackInfo *s)
{
    JNIEnv *jni = l->jni;
    uint64_t id = thread_record(jni, v->thread);
    /* A thread that starts later, or has started since, posts its own events. */
    if (!id || waiter_has_posted(id) || !(s->state & JVMTI_THREAD_STATE_ALIVE) || !s->frame_count)
        return;
    struct early_wait e = {.id = id, .java_id = v->id, .on = v->carrier};
    bool waits = virtual_wait(l, v, s, &e);
    threads_put_existing_thread(jni, id, v->thread, l->since);
    if (v->carrier)
        carried(jni, v, id);
    if (!waits)
        return;
    /*
     * Each wait gets a different start time, by which the reader recognizes a wait that was
     * reported twice.
     */
    atomic_store(&e.how.start, l->since + l->list.len);
    e.thread = e.watched ? (*jni)->NewWeakGlobalRef(jni, v->thread) : NULL;
    (void)!vec_push(&l->list, e);
}

/*
 * Records the waits of a batch of virtual threads. The VM takes up to milliseconds for each of them
 * (JDK 21), even when many are requested together.
 */
static void record_batch(struct existing *l)
{
    jthread threads[VIRTUAL_BATCH];
    jvmtiStackInfo *infos = NULL;
    for (jint i = 0; i < l->n_batch; i++)
        threads[i] = l->batch[i].thread;
    vm_expect_references(l->jni);
    bool reported = l->n_batch && (*vm.ti)->GetThreadListStackTraces(vm.ti, l->n_batch, threads,
                                                                     MAX(thread_capture.depth, 1),
                                                                     &infos) == JVMTI_ERROR_NONE;
    for (jint i = 0; i < l->n_batch; i++) {
        if (reported)
            record_virtual(l, &l->batch[i], &infos[i]);
        (*l->jni)->DeleteGlobalRef(l->jni, threads[i]);
    }
    l->late += reported ? 0 : (uint64_t)l->n_batch;
    l->n_batch = 0;
    vm_free(infos);
}

static void on_existing_virtual(const struct existing_virtual *v, void *arg)
{
    struct existing *l = arg;
    if (now_ns() - l->since > READ_NS) {
        l->late++;
        return;
    }
    l->batch[l->n_batch] = *v;
    l->batch[l->n_batch].thread = (*l->jni)->NewGlobalRef(l->jni, v->thread);
    if (++l->n_batch == VIRTUAL_BATCH)
        record_batch(l);
}

static void record_virtual_threads(struct existing *l)
{
    uint64_t left = 0;
    if (!thread_capture.virtual_too || !vm.late)
        return;
    int r = virtual_threads_visit(l->jni, on_existing_virtual, l, &left);
    record_batch(l);
    jfr_lose(thread_capture.jfr, LOSS_VIRTUAL_EXISTING, left + l->late);
    jfr_lose(thread_capture.jfr, LOSS_VIRTUAL_LIST, r < 0);
}

/* ---- owners of monitors ---- */

/* Finds the threads that run virtual ones, if some thread waits for a monitor. */
static void find_carriers(struct existing *l, const jvmtiStackInfo *infos, jint n)
{
    JNIEnv *jni = l->jni;
    bool wanted = false;
    for (size_t i = 0; i < l->list.len; i++)
        wanted |= l->list.data[i].kind == WAIT_ENTER;
    jclass c = wanted && vm.version >= 21 && vm.late
                   ? vm_find_class(jni, "jdk/internal/misc/CarrierThread")
                   : NULL;
    for (jint i = 0; c && i < n; i++) {
        jthread thread = infos[i].thread;
        if ((*jni)->IsInstanceOf(jni, thread, c))
            (void)!vec_push(&l->carriers, thread_record_id((uint64_t)(*jni)->GetLongField(
                                              jni, thread, thread_capture.tid)));
    }
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
}

/*
 * Returns who owns a monitor if ThreadInfo, which has no virtual threads, says that a platform
 * thread does: the virtual thread that this one carries. 0: unknown.
 */
static uint64_t owner_behind(const struct existing *l, uint64_t id)
{
    const struct thread *t = id && id <= UINT32_MAX ? threads_by_serial((uint32_t)id) : NULL;
    uint64_t running = t ? thread_running_on(t) : id;
    for (size_t i = 0; i < l->carriers.len; i++)
        if (l->carriers.data[i] == running)
            return 0;
    return running;
}

/*
 * The same as owner_of_monitor, for many threads that wait for one monitor: before JDK 24 an owner
 * may have to be searched for among all threads. owners: the threads that were found, by monitor.
 */
static bool owner_once(struct map *owners, uint64_t monitor, uint64_t *ret_owner)
{
    const uint64_t *found = map_get(owners, monitor);
    if (found)
        *ret_owner = *found;
    else if (owner_of_monitor(monitor, ret_owner))
        (void)!map_put(owners, monitor, *ret_owner);
    else
        return false;
    return true;
}

/*
 * Finds the owners of the monitors for which threads wait, once it is known which carriers run
 * which virtual threads. ThreadInfo says nothing about what a virtual thread waits for: if that has
 * kept its carrier, the VM's monitor shows the owner, and another thread that waits for this
 * monitor its class.
 */
static void find_owners(struct existing *l)
{
    struct map owners = {0};
    for (size_t i = 0; i < l->list.len; i++) {
        struct early_wait *e = &l->list.data[i];
        uint64_t owner = 0;
        if (e->kind != WAIT_ENTER)
            continue;
        e->how.monitor = e->on ? owner_awaited_monitor(e->on) : 0;
        bool known = e->how.monitor && owner_once(&owners, e->how.monitor, &owner);
        e->how.owner = owner_behind(l, known && owner && owner != e->id ? owner : e->how.owner);
    }
    map_release(&owners);
    for (size_t i = 0; i < l->list.len; i++) {
        struct early_wait *e = &l->list.data[i];
        for (size_t k = 0; k < l->list.len && e->how.monitor && !e->how.class; k++) {
            const struct wait *other = &l->list.data[k].how;
            if (other->monitor != e->how.monitor || !other->class)
                continue;
            e->how.class = other->class;
            e->how.object = other->object;
            e->how.owner = e->how.owner ? e->how.owner : other->owner;
        }
    }
}

/* Reports the waits that have not ended: their threads have posted no event yet. */
static void publish(struct existing *l)
{
    struct early_wait *list = l->list.data;
    uint32_t n = (uint32_t)l->list.len;
    for (uint32_t i = 0; i < n; i++)
        if (map_put(&early.by_id, list[i].id, i) < 0)
            n = i;
    atomic_store(&early.open, n);
    atomic_store(&early.list, list);
    atomic_store(&early.n, n);
    for (uint32_t i = 0; i < n; i++) {
        int expected = WAITS;
        if (waiter_has_posted(list[i].id) &&
            atomic_compare_exchange_strong(&list[i].progress, &expected, OVER))
            atomic_fetch_sub(&early.open, 1);
        else if (atomic_load(&list[i].progress) == WAITS)
            threads_put_waiting(list[i].id, list[i].kind, &list[i].how);
    }
}

void at_start_record(JNIEnv *jni, uint64_t since)
{
    struct existing l = {.jni = jni, .since = since};
    l.finder = (struct class_finder){
        .ti = vm.ti, .jni = jni, .sees_monitors = vm.have.can_get_monitor_info};
    jvmtiStackInfo *infos = NULL;
    jint n = 0;
    if ((*jni)->PushLocalFrame(jni, 256) != 0) {
        vm_clear_exception(jni);
        return;
    }
    if (vm_all_stacks(MAX(thread_capture.depth, 1), &n, &infos) == JVMTI_ERROR_NONE) {
        for (jint i = 0; i < n; i++)
            record_wait(&l, &infos[i], since);
        find_carriers(&l, infos, n);
        vm_free(infos);
    }
    find_monitors(&l);
    class_finder_release(&l.finder);
    record_virtual_threads(&l);
    find_owners(&l);
    vec_release(&l.carriers);
    publish(&l);
    (*jni)->PopLocalFrame(jni, NULL);
}

/* ---- ends that no event shows ---- */

static bool still_waits(JNIEnv *jni, const struct early_wait *e, jthread thread)
{
    jvmtiFrameInfo top;
    jint state = 0, n = 0;
    if (e->kind == WAIT_IO)
        return (*vm.ti)->GetStackTrace(vm.ti, thread, 0, 1, &top, &n) == JVMTI_ERROR_NONE &&
               n == 1 && top.method == e->native;
    if ((*vm.ti)->GetThreadState(vm.ti, thread, &state) != JVMTI_ERROR_NONE)
        return false;
    return state & (e->kind == WAIT_PARK ? JVMTI_THREAD_STATE_PARKED : JVMTI_THREAD_STATE_SLEEPING);
}

void at_start_flush(JNIEnv *jni)
{
    uint32_t n = atomic_load(&early.n);
    struct early_wait *list = atomic_load(&early.list);
    for (uint32_t looked = 0, i = 0; atomic_load(&early.open) && i < n && looked < LOOKED_AT; i++) {
        struct early_wait *e = &list[early.next++ % n];
        if (!e->watched || atomic_load(&e->progress) != WAITS)
            continue;
        jthread thread = (*jni)->NewLocalRef(jni, e->thread);
        looked++;
        if (!thread || !still_waits(jni, e, thread))
            ended(e, now_ns(), e->kind == WAIT_SLEEP);
        if (thread)
            (*jni)->DeleteLocalRef(jni, thread);
    }
}

void at_start_restate(void)
{
    uint32_t n = atomic_load(&early.n);
    struct early_wait *list = atomic_load(&early.list);
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&list[i].progress) == WAITS)
            threads_put_waiting(list[i].id, list[i].kind, &list[i].how);
}

void at_start_keep_stacks(void)
{
    uint32_t n = atomic_load(&early.n);
    struct early_wait *list = atomic_load(&early.list);
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&list[i].progress) == WAITS)
            waiting_keep_stack(&list[i].how);
}

void at_start_release(void)
{
    JNIEnv *jni = vm_jni();
    struct early_wait *list = atomic_load(&early.list);
    uint32_t n = atomic_exchange(&early.n, 0);
    atomic_store(&early.open, 0);
    atomic_store(&early.list, NULL);
    for (uint32_t i = 0; i < n && jni; i++)
        if (list[i].thread)
            (*jni)->DeleteWeakGlobalRef(jni, list[i].thread);
    map_release(&early.by_id);
    free(list);
}
