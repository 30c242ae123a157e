/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which virtual thread is mounted on a carrier, for samplers (JDK 21 and later), from HotSpot's
 * mount and unmount events. Only the names of the last few thousand threads are kept, because there
 * may be millions.
 */
#pragma once

#include "agent/vm/thread_table.h"

/* The id that a recording uses for a virtual thread with a known Thread.threadId(). */
#define THREAD_VIRTUAL (UINT64_C(1) << 40)

/*
 * Begins tracking. Returns false when this VM has no virtual threads, or not these events. Requires
 * the session's lock.
 */
bool virtual_threads_on(JNIEnv *jni);
/*
 * Returns the time in ns since tracking began for which virtual threads have been mounted, summed
 * over them.
 */
uint64_t virtual_threads_mounted_ns(void);
/*
 * Ends tracking when called as often as virtual_threads_on returned true. Requires the session's
 * lock.
 */
void virtual_threads_off(void);
/*
 * Returns the id to which a sample of t is attributed, THREAD_VIRTUAL | threadId() or t's own
 * serial. Async-signal-safe.
 */
uint64_t virtual_thread_id(const struct thread *t);
/*
 * Stores the name of a virtual thread, truncated to 31 characters, in ret[size]. id: as from
 * virtual_thread_id. Returns false when the name is not known or no longer known.
 */
bool virtual_thread_name(uint64_t id, char *ret, size_t size);
/*
 * Finds the numbers of the extension events that report mounting and unmounting. Leaves *mount or
 * *unmount unchanged when the environment does not have the event.
 */
void virtual_threads_find_events(jvmtiEnv *env, jint *mount, jint *unmount);
