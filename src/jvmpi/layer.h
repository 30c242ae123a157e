/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JVMPI on top of JVM TI: what all files of the layer share. Rules:
 *
 * - Object ids are small counters that are never reused. They are the tags of the layer's own JVM
 *   TI environment, except for the newest objects.
 * - When the defining events are enabled, an id is reported once, before any event names it
 *   (section 1.4). layer_report_object, layer_report_class and thread_begin provide ids for events;
 *   layer_id_of provides them for answers and sends nothing.
 * - An event is sent on the thread that caused it. FREE, CLASS_UNLOAD and GC events are sent by one
 *   thread of the layer (memory.c).
 * - The layer holds no lock of its own while the agent is inside NotifyEvent.
 */
#pragma once

#include "agent/vm/vm.h"
#include "base/vec.h"
#include "jvmpi.h"
#include "jvmpi/flights.h"
#include "jvmpi/my.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

extern JVMPI_Interface jvmpi_interface;

enum {
    STAGE_OPEN,
    /* JVM_SHUT_DOWN comes next; other threads finish what they report and begin nothing new. */
    STAGE_CLOSING,
    /* Events of other threads are left out, except those that the agent requests. */
    STAGE_CLOSED,
};

struct layer {
    _Atomic uint64_t enabled; /* one bit for each event */
    atomic_bool live;         /* VMInit's replay has begun */
    /* The replay is in progress; events of other threads are left out. */
    atomic_bool replaying;
    atomic_int stage; /* STAGE_OPEN ... */
    atomic_bool down; /* JVM_SHUT_DOWN was sent */
};

extern struct layer layer;

static inline bool layer_enabled(jint type)
{
    return atomic_load_explicit(&layer.enabled, memory_order_relaxed) >> type & 1;
}

/*
 * Sends an event after setting its env_id. Drops it when there is no agent, after the shutdown, or
 * when the agent does not know the thread.
 */
void layer_notify(JNIEnv *env, JVMPI_Event *event);
/* Sends an event like layer_notify. own: the calling thread's. */
void layer_notify_as(struct my *own, JNIEnv *env, JVMPI_Event *event);

/*
 * Sends an event that names an object by its id, like layer_notify. While the handler runs, the
 * thread finds the object by its id even where JVM TI's walks do not reach it: they leave out the
 * references that native code holds for a thread whose latest Java frame is not a native method,
 * and the arguments of native methods.
 */
void layer_notify_naming(JNIEnv *env, JVMPI_Event *event, jobjectID id, jobject object);
/* Sends an event like layer_notify_naming. own: the calling thread's. */
void layer_notify_naming_as(struct my *own, JNIEnv *env, JVMPI_Event *event, jobjectID id,
                            jobject object);
/* Returns the object with this id that an event in progress on this thread names, or NULL. */
jobject layer_named(jobjectID id);

/*
 * For locks that are held while the VM is called. A thread that the agent suspends may stop in such
 * a call. It is not left suspended while it holds such a lock, because other threads would then
 * wait for the lock forever.
 */
void layer_lock(pthread_mutex_t *mutex);
void layer_unlock(pthread_mutex_t *mutex);

/* entry.c */
jint layer_enable_event(jint type, void *arg);
jint layer_disable_event(jint type, void *arg);
jint layer_request_event(jint type, void *arg);
/*
 * Begins the end of the VM by the calling thread. From the return on, other threads report nothing
 * that the agent has not requested. layer_end does it too, if necessary.
 */
void layer_close(JNIEnv *env);
/* Sends JVM_SHUT_DOWN; no event follows it. */
void layer_end(JNIEnv *env);
/* Makes the VM exit with this status, as the handler of JVM_SHUT_DOWN requests. */
void layer_exit_with(jint code);
