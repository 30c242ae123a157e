/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends of threads, and the pauses in which none of them runs. */
#pragma once

#include "agent/session/session.h"

/*
 * Enable the events of platform threads and pauses, and those of virtual threads. Return 0, or a
 * negative errno.
 */
int lifetimes_on(void) must_check;
int lifetimes_virtual_on(void) must_check;
void lifetimes_off(void);
/*
 * Writes the platform threads that exist, as existing from the time at which the listing ends, so
 * that the listing does not appear as a period without a state. Returns that time. If there are
 * more than `most`, the rest is counted as lost, and the next call begins with it.
 */
uint64_t lifetimes_put_existing(JNIEnv *jni, uint32_t most);
/* Writes jvmscope.ThreadObject for a virtual thread that existed before the capture. */
void threads_put_existing_thread(JNIEnv *jni, uint64_t id, jthread thread, uint64_t since);
