/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which virtual thread a carrier runs, for whoever samples (JDK 21 and later): HotSpot's mount and
 * unmount events, 218 to 350 ns for the two (JDK 25). The names of the last few thousand threads
 * are kept; there may be millions.
 */
#pragma once

#include "agent/thread_table.h"

/* In a recording: the id of a virtual thread whose Thread.threadId() is known. */
#define THREAD_VIRTUAL (UINT64_C(1) << 40)

/*
 * Begins to follow. False: this VM has no virtual threads, or not these events. Under the session's
 * lock.
 */
bool virtual_threads_on(JNIEnv *jni);
/* As often as `on` answered true. */
void virtual_threads_off(void);
/*
 * Async-signal-safe: the id that a sample of t belongs to, THREAD_VIRTUAL | threadId(), or t's own
 * serial.
 */
uint64_t virtual_thread_id(const struct thread *t);
/* The name of such an id, cut to 31 characters; false when it is not known (any more). */
bool virtual_thread_name(uint64_t id, char *ret, size_t size);
