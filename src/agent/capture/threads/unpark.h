/* SPDX-License-Identifier: Apache-2.0 */
/* Unparks of virtual threads (JDK 21 and later), and jvmscope.Unpark. */
#pragma once

#include "agent/capture/threads/waiters.h"

/*
 * jvmscope.Unpark: the calling thread unparks another one, in a call that lasts from `since` to
 * `until`, in ns; since 0: in the next call. If it were written too early, it would be attributed
 * to a park that has not ended yet, and the next park would have no cause.
 */
void threads_put_unpark(JNIEnv *jni, struct waiter *w, jobject thread, uint64_t since,
                        uint64_t until);

int unparks_on(JNIEnv *jni, struct buf *why) must_check;
void unparks_off(JNIEnv *jni);
