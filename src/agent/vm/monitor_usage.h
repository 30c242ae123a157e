/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns a monitor and who waits for it, as JVM TI specifies it. HotSpot's GetObjectMonitorUsage
 * differs up to JDK 22 (JDK-8324677). It counts threads that wait for a notification among those
 * that wait to enter. In place of each thread that was notified and waits to enter again, it names
 * a thread that still waits for a notification.
 */
#pragma once

#include "agent/vm/vm.h"
#include "base/vec.h"

/* A thread that waits to enter a monitor; both are local references. */
struct monitor_entrant {
    jthread thread;
    jobject monitor;
};

typedef VEC(struct monitor_entrant) monitor_entrant_vec;

/*
 * Adds the thread to *entrants if the thread waits to enter a monitor for which
 * GetObjectMonitorUsage might not name it. Adds nothing without can_get_current_contended_monitor.
 * Returns 0, or -ENOMEM when memory runs out.
 */
int monitor_entrants_add(jvmtiEnv *ti, JNIEnv *jni, monitor_entrant_vec *entrants,
                         jthread thread) must_check;
/*
 * Adds all platform threads that monitor_entrants_add would add. Returns 0, -ENOMEM, or -ENOTSUP
 * when the VM does not list its threads. The caller releases *entrants in any case.
 */
int monitor_entrants_find(jvmtiEnv *ti, JNIEnv *jni, monitor_entrant_vec *entrants) must_check;
void monitor_entrants_release(JNIEnv *jni, monitor_entrant_vec *entrants);

/*
 * Stores the owner of a monitor, the threads that wait to enter it and those that wait for a
 * notification. entrants: what monitor_entrants_add or _find has collected. On success *ret must be
 * released with monitor_usage_release; on an error it is unchanged.
 */
jvmtiError monitor_usage(jvmtiEnv *ti, JNIEnv *jni, const monitor_entrant_vec *entrants,
                         jobject monitor, jvmtiMonitorUsage *ret) must_check;
void monitor_usage_release(jvmtiEnv *ti, JNIEnv *jni, jvmtiMonitorUsage *usage);
