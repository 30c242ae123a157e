/* SPDX-License-Identifier: Apache-2.0 */
/* The native methods in which threads sleep, park, start and wake others, bound to ours. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* Write the events of a sleep and of a park that have ended. */
void threads_put_sleep(uint64_t thread, const struct wait *was, uint64_t ns);
void threads_put_park(uint64_t thread, const struct wait *was, uint64_t ns, bool absolute,
                      jlong time);
/* Does what waiter_self does, for use in a native method, which a virtual thread may call. */
struct waiter *native_self(JNIEnv *jni);

/*
 * natives_bind binds them and returns their number, or a negative errno with a sentence in `why`;
 * natives_unbind restores them. instrument: notify, start and interrupt are recorded too.
 */
int natives_bind(JNIEnv *jni, bool instrument, struct buf *why) must_check;
void natives_unbind(JNIEnv *jni);
/*
 * Stores which thread called start() for the thread with this Java id, and from which stack.
 * Returns false when that is not known. Answers only once for each thread.
 */
bool natives_started_by(uint64_t started, uint64_t *ret_by, uint64_t *ret_trace);
