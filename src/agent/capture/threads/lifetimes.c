/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/capture/threads/lifetimes.h"

#include "agent/capture/threads/carriers.h"
#include "agent/capture/threads/delays.h"
#include "agent/capture/threads/natives.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/capture/vm/vm.h"
#include "agent/output/recording.h"
#include "agent/vm/virtual_list.h"
#include "agent/vm/vm.h"
#include "base/clock.h"

#include <string.h>

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
    vm_free_thread_info(jni, &info);
}

void threads_put_existing_thread(JNIEnv *jni, uint64_t id, jthread thread, uint64_t since)
{
    put_thread_object(jni, id, thread, since, NULL, 0);
}

/* java_id: the Java id of a platform thread, by which its starter is found; otherwise 0. */
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

/* on: the thread on which the event occurs, which is the thread itself or its carrier. */
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

/*
 * Returns whether a thread that starts is one of the VM's, which runs no code until the
 * VM has something for it to do. JVM TI reports it as runnable all the while and posts no event.
 */
static bool is_of_vm(const struct thread *t)
{
    static const char *const names[] = {"Signal Dispatcher", "Notification Thread",
                                        "Service Thread", "Monitor Deflation Thread",
                                        "Attach Listener"};
    const char *group = t->group ? t->group : t->parent_group;
    bool named = false;
    for (size_t i = 0; i < ARRAY_SIZE(names) && t->name; i++)
        named |= strcmp(t->name, names[i]) == 0;
    return named && group && strcmp(group, "system") == 0;
}

static void JNICALL on_thread_start(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    waiters_thread_starts();
    struct thread *t = thread_capture.jfr ? waiters_platform_self(jni) : NULL;
    struct waiter *w = t ? waiter_self(jni, NULL) : NULL;
    if (!w)
        return;
    uint64_t now = now_ns();
    if (!w->run.since) /* the VM reports the main thread's start only after VMInit */
        delays_run_begins(w, now, 0);
    recording_keep_thread(thread_capture.jfr, t);
    put_thread_start(t->serial, t->java_id, now);
    put_thread_object(jni, t->serial, thread, now_ns(), t->parent_group, 0);
    if (is_of_vm(t)) {
        wait_begin(w, WAIT_OBJECT, &(struct wait){0});
        w->in_vm = true;
    }
}

static void JNICALL on_thread_end(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    struct thread *t = thread_capture.jfr ? waiters_platform_self(jni) : NULL;
    struct waiter *w = t ? waiter_self(jni, NULL) : NULL;
    if (w)
        delays_run_ends(w, w->id, now_ns());
    if (t) {
        carriers_thread_ends(t);
        put_thread_end(t->serial, t->serial);
        jfr_forget_thread(thread_capture.jfr, t->serial);
    }
    waiters_thread_ends();
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
    put_thread_object(jni, w->id, thread, now_ns(), NULL, waiters_platform_self(jni)->serial);
}

static void JNICALL on_virtual_end(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    struct thread *on = thread_capture.jfr ? waiters_platform_self(jni) : NULL;
    if (!on || !thread_is_virtual(jni, thread))
        return;
    uint64_t java_id = waiters_java_id(jni, thread), id = VIRTUAL_THREAD | java_id;
    struct waiter *carrier = waiter_self(jni, NULL);
    thread_carries(jni, 0);
    if (carrier)
        delays_mount(carrier, id, now_ns());
    put_thread_end(id, on->serial);
    waiters_remove_virtual(jni, java_id);
    jfr_forget_thread(thread_capture.jfr, id);
}

/*
 * The pause in progress. No Java thread runs between the two events below, which may use neither
 * JNI nor JVM TI.
 */
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

static const struct vm_callbacks thread_events = {.ti = {.ThreadStart = on_thread_start,
                                                         .ThreadEnd = on_thread_end,
                                                         .GarbageCollectionStart = on_gc_start,
                                                         .GarbageCollectionFinish = on_gc_finish}};
static const struct vm_callbacks virtual_events = {.VM_VIRTUAL_THREAD_START = on_virtual_start,
                                                   .VM_VIRTUAL_THREAD_END = on_virtual_end};

int lifetimes_on(void)
{
    return vm_events_on(&thread_events);
}

int lifetimes_virtual_on(void)
{
    return vm_events_on(&virtual_events);
}

void lifetimes_off(void)
{
    vm_events_off(&thread_events);
    if (thread_capture.virtual_too)
        vm_events_off(&virtual_events);
}

uint64_t lifetimes_put_existing(JNIEnv *jni, uint32_t most)
{
    static uint32_t next; /* each chunk continues where the previous one ended */
    uint64_t now = now_ns();
    jthread *list = NULL;
    jint n = 0;
    if (vm_all_threads(&n, &list) != JVMTI_ERROR_NONE)
        return now;
    uint32_t first = (uint32_t)n > most ? next++ * most % (uint32_t)n : 0;
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        jthread thread = list[(first + i) % (uint32_t)n];
        struct thread *t = i < most ? threads_find(jni, thread) : NULL;
        if (t && !t->own) {
            recording_keep_thread(thread_capture.jfr, t);
            put_thread_object(jni, t->serial, thread, now, t->parent_group, 0);
        }
        (*jni)->DeleteLocalRef(jni, thread);
    }
    vm_free(list);
    if ((uint32_t)n > most)
        jfr_lose(thread_capture.jfr, LOSS_THREADS_AGAIN, (uint32_t)n - most);
    return now;
}
