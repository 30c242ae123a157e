/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records mounts and unmounts of virtual threads, which HotSpot's extension events report.
 */

#include "agent/capture/threads/mounts.h"

#include "agent/capture/threads/carriers.h"
#include "agent/capture/threads/deadlocks.h"
#include "agent/capture/threads/delays.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/stack.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/session/budget.h"
#include "agent/vm/virtual_threads.h"
#include "base/clock.h"

#include <string.h>

static jint mount_event, unmount_event; /* 0: unknown */

void threads_put_unmounted(uint64_t thread, const struct wait *was, uint64_t ns)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_UNMOUNTED], 0, &e))
        return;
    jfr_put_time(&e, was->start);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)was->trace);
    jfr_put_long(&e, (int64_t)was->class);
    jfr_put_long(&e, was->object);
    jfr_commit(&e);
}

static void put_ready(uint64_t thread, uint64_t trace, uint64_t since, const struct lateness *late)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_READY], 0, &e))
        return;
    jfr_put_time(&e, since + 1); /* after the end of the wait */
    jfr_put_long(&e, (int64_t)(late->mounted - since - 1));
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, (int64_t)late->occupant);
    jfr_commit(&e);
}

void mounts_late(struct waiter *w, const struct wait *was, bool timed_out, uint64_t *ns)
{
    struct lateness late = w->late;
    uint64_t since = late.ready;
    w->late = (struct lateness){0};
    if (timed_out && late.deadline && (since > late.deadline || !since))
        since = late.deadline;
    if (!since || since <= was->start || since + MOUNT_LATE > late.mounted)
        return;
    late.occupant = thread_carried_since(since);
    *ns = since - was->start;
    put_ready(w->id, was->trace, since, &late);
}

uint64_t mounts_ready_since(const struct waiter *w)
{
    uint64_t since = atomic_load(&w->ready), deadline = atomic_load(&w->deadline), now = now_ns();
    if (!since && deadline && deadline < now)
        since = deadline;
    return since && since + MOUNT_LATE < now ? since : 0;
}

/*
 * Fields of VirtualThread: its state and, since JDK 24, the time for which a thread is about to
 * park.
 */
static struct {
    _Atomic(jfieldID) state;                /* published last */
    jfieldID timeout;                       /* NULL: unknown */
    jint running, timed, parking, yielding; /* timed and the last two: JDK 24 and later */
    atomic_bool sought;
} fields;

/*
 * Finds the fields of a virtual thread's class. This is done once there is such a thread rather
 * than when the recording begins, because it initializes the class, which takes the VM long.
 */
static void find_fields(JNIEnv *jni, jthread thread)
{
    if (atomic_exchange(&fields.sought, true))
        return;
    jclass c = (*jni)->GetObjectClass(jni, thread);
    jfieldID running = (*jni)->GetStaticFieldID(jni, c, "RUNNING", "I");
    jfieldID state = running ? (*jni)->GetFieldID(jni, c, "state", "I") : NULL;
    jfieldID timed =
        state && vm.version >= 24 ? (*jni)->GetStaticFieldID(jni, c, "TIMED_PARKING", "I") : NULL;
    fields.timeout = timed ? (*jni)->GetFieldID(jni, c, "timeout", "J") : NULL;
    if (fields.timeout)
        fields.timed = (*jni)->GetStaticIntField(jni, c, timed);
    jfieldID parking = fields.timeout ? (*jni)->GetStaticFieldID(jni, c, "PARKING", "I") : NULL;
    jfieldID yielding = parking ? (*jni)->GetStaticFieldID(jni, c, "YIELDING", "I") : NULL;
    fields.parking = parking ? (*jni)->GetStaticIntField(jni, c, parking) : fields.timed;
    fields.yielding = yielding ? (*jni)->GetStaticIntField(jni, c, yielding) : fields.timed;
    if (state)
        fields.running = (*jni)->GetStaticIntField(jni, c, running);
    vm_clear_exception(jni);
    (*jni)->DeleteLocalRef(jni, c);
    atomic_store(&fields.state, state);
}

/* Returns a virtual thread's state, or `otherwise` while the field is unknown. */
static jint state_of(JNIEnv *jni, jthread thread, jint otherwise)
{
    if (!atomic_load_explicit(&fields.sought, memory_order_relaxed))
        find_fields(jni, thread);
    jfieldID state = atomic_load(&fields.state);
    return state ? (*jni)->GetIntField(jni, thread, state) : otherwise;
}

/*
 * Returns when the wait that has begun times out, or 0. The times count from the recorded start of
 * the wait, so that a wait that times out is as long as its timeout even if the system let the
 * thread's carrier pause in between. The thread's own timer starts later.
 */
static uint64_t deadline_of(JNIEnv *jni, const struct waiter *w, jthread thread)
{
    const struct wait *at = &w->waits[WAIT_OBJECT];
    uint64_t start = atomic_load(&at->start);
    if (start)
        return at->timeout > 0 ? start + (uint64_t)at->timeout * NS_PER_MS : 0;
    start = atomic_load(&w->waits[WAIT_UNMOUNTED].start);
    if (!start || vm.version < 24 || state_of(jni, thread, fields.timed - 1) != fields.timed ||
        !fields.timeout)
        return 0;
    jlong timeout = (*jni)->GetLongField(jni, thread, fields.timeout);
    return timeout > 0 ? start + (uint64_t)timeout : 0;
}

/*
 * Returns whether a method of VirtualThread unmounts a thread, in which it still is when it has
 * been mounted again. Since JDK 24 the VM also unmounts threads that wait for monitors, and since
 * JDK 26 those that wait for classes.
 */
static bool unmounts_itself(JNIEnv *jni, jthread thread)
{
    if (vm.version < 24)
        return true;
    jint state = state_of(jni, thread, fields.running);
    return fields.timeout &&
           (state == fields.parking || state == fields.timed || state == fields.yielding);
}

/* Reads where and for what a thread waits, while it is in its method that unmounts it. */
static void describe(JNIEnv *jni, jthread thread, struct wait *ret, bool with_stack)
{
    jobject blocker = (*jni)->GetObjectField(jni, thread, thread_capture.park_blocker);
    ret->class = object_class(jni, blocker);
    ret->object = object_identity(blocker);
    if (with_stack)
        ret->trace = stack_of_unmounting_thread();
    ret->owned = blocker && thread_capture.watch && deadlock_watch_owned(jni, blocker);
    if (blocker)
        (*jni)->DeleteLocalRef(jni, blocker);
}

static void JNICALL on_unmount(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    uint64_t cost = budget_begin();
    /* Before JDK 24 the timer of a timed wait runs already, while the wait is described too. */
    uint64_t since = vm.version < 24 ? now_ns() : 0;
    if (!threads_natives_enter())
        return;
    struct waiter *w = waiter_self(jni, thread);
    if (w) {
        atomic_store(&w->ready, 0);
        atomic_store(&w->deadline, 0);
        w->late = (struct lateness){0};
    }
    /* When a wait for a monitor unmounts the thread, only the wait is recorded. */
    if (w && !atomic_load(&w->waits[WAIT_ENTER].start) &&
        !atomic_load(&w->waits[WAIT_OBJECT].start)) {
        bool later = unmounts_itself(jni, thread);
        struct wait how = {.start = since, .plain = later && wait_is_plain(w)};
        if (!how.plain)
            describe(jni, thread, &how, !later || !w->was_short || budget_keeps(&budget_stacks_of));
        wait_begin(w, WAIT_UNMOUNTED, &how);
    }
    if (w)
        atomic_store(&w->deadline, deadline_of(jni, w, thread));
    struct waiter *carrier = w ? waiter_self(jni, NULL) : NULL;
    if (carrier) {
        thread_carries(jni, 0);
        delays_mount(carrier, w->id, now_ns());
    }
    threads_natives_leave();
    budget_end(COST_WAITS, cost);
}

/*
 * Returns whether a thread could not leave its carrier because a monitor or a native method pins
 * it: the VM reports the thread as unmounted before it tries. The state of such a thread is still
 * that of a thread that is about to park or to yield, although it is reported as mounted again. The
 * wait that follows is recorded as a wait of its carrier.
 */
static bool is_pinned(JNIEnv *jni, jthread thread)
{
    return state_of(jni, thread, fields.running) != fields.running;
}

/* Handles a thread that has a carrier again, which ends its wait unless it waits for a monitor. */
static void mounted(JNIEnv *jni, struct waiter *w, jthread thread)
{
    struct wait was = {0};
    uint64_t ns;
    if (is_pinned(jni, thread)) {
        atomic_store(&w->ready, 0);
        atomic_store(&w->deadline, 0);
        (void)!wait_end(w, WAIT_UNMOUNTED, &was, &ns);
        return;
    }
    w->late = (struct lateness){.ready = atomic_exchange(&w->ready, 0),
                                .deadline = atomic_exchange(&w->deadline, 0),
                                .mounted = now_ns()};
    if (atomic_load(&w->waits[WAIT_ENTER].start) || atomic_load(&w->waits[WAIT_OBJECT].start))
        return;
    bool waited = wait_end(w, WAIT_UNMOUNTED, &was, &ns);
    if (waited && wait_lacks(&was, ns))
        describe(jni, thread, &was, true);
    mounts_late(w, &was, true, &ns);
    if (waited && !wait_left_out(&was, ns))
        threads_put_unmounted(w->id, &was, ns);
}

static void JNICALL on_mount(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    uint64_t cost = budget_begin();
    if (!threads_natives_enter())
        return;
    struct waiter *w = waiter_self(jni, thread);
    struct waiter *carrier = w ? waiter_self(jni, NULL) : NULL;
    if (carrier) {
        thread_carries(jni, w->id);
        delays_mount(carrier, carrier->id, now_ns());
    }
    if (w)
        mounted(jni, w, thread);
    threads_natives_leave();
    budget_end(COST_WAITS, cost);
}

static bool listen(jint event, jvmtiExtensionEvent callback)
{
    /* The VM requires both the callback and the event to be enabled by its number. */
    return event &&
           (*vm.ti)->SetExtensionEventCallback(vm.ti, event, callback) == JVMTI_ERROR_NONE &&
           (*vm.ti)->SetEventNotificationMode(vm.ti, callback ? JVMTI_ENABLE : JVMTI_DISABLE,
                                              (jvmtiEvent)event, NULL) == JVMTI_ERROR_NONE;
}

bool mounts_on(void)
{
    virtual_threads_find_events(vm.ti, &mount_event, &unmount_event);
    return listen(unmount_event, (jvmtiExtensionEvent)(void *)on_unmount) &&
           listen(mount_event, (jvmtiExtensionEvent)(void *)on_mount);
}

void mounts_off(void)
{
    (void)listen(unmount_event, NULL);
    (void)listen(mount_event, NULL);
}
