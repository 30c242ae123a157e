/* SPDX-License-Identifier: Apache-2.0 */
/* Raw monitors, and the events of monitors. */
#pragma once

#include "base/buf.h"
#include "jvmpi/layer.h"

struct map;

JVMPI_RawMonitor raw_monitor_create(char *name);
void layer_raw_monitor_enter(JVMPI_RawMonitor m);
void layer_raw_monitor_exit(JVMPI_RawMonitor m);
void layer_raw_monitor_wait(JVMPI_RawMonitor m, jlong ms);
void layer_raw_monitor_notify_all(JVMPI_RawMonitor m);
void layer_raw_monitor_destroy(JVMPI_RawMonitor m);
/*
 * Returns true when the thread waits to enter a raw monitor that a thread owns. *ret_owner: its
 * environment, or NULL when it has none; *ret_mine: it is the calling thread.
 */
bool layer_raw_monitor_wanted(const JNIEnv *env, JNIEnv **ret_owner, bool *ret_mine);
/*
 * Appends their records to the monitor dump. Of the threads it names those alone whose environments
 * are keys of `threads`.
 */
void layer_raw_monitors_put(struct buf *out, const struct map *threads);
/*
 * Called at load. Since JDK 23 JVM TI does not say on which object a thread waits, so the layer
 * remembers it.
 */
int layer_waits_watch(void) must_check;
extern const struct vm_callbacks contention_events, wait_events, waited_events;
