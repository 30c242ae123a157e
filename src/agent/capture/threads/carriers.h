/* SPDX-License-Identifier: Apache-2.0 */
/* Which virtual thread each carrier runs. */
#pragma once

#include "agent/vm/thread_table.h"

/* Returns the id of a platform thread, or of the virtual thread that is mounted on it now. */
uint64_t thread_running_on(const struct thread *t);
/*
 * Records that the calling thread, a carrier, runs the virtual thread with this id from now on; 0:
 * none.
 */
void thread_carries(JNIEnv *jni, uint64_t id);
/*
 * Returns the virtual thread that the calling carrier ran for most of the time since `time`; 0:
 * unknown.
 */
uint64_t thread_carried_since(uint64_t time);
/* Records that a carrier, if it was known to run `was`, runs `now` from now on; 0: none. */
void thread_carried(const struct thread *carrier, uint64_t was, uint64_t now);
/*
 * carriers_thread_ends is called when a platform thread ends, carriers_release when the recording
 * has ended.
 */
void carriers_thread_ends(const struct thread *t);
void carriers_release(void);
