/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks in the events of threads. */
#pragma once

#include "agent/capture/threads/waiters.h"

/*
 * stack_here returns the calling thread's stack as a constant. stack_init must be called before the
 * first one.
 */
void stack_init(JNIEnv *jni);
uint64_t stack_here(JNIEnv *jni, struct waiter *w);
/*
 * Returns the stack of a wait that begins as a constant; 0 if it was left out to stay within the
 * budget.
 */
uint64_t stack_of_wait(JNIEnv *jni, struct waiter *w);
/* Returns the constant of a stack of another thread, whose n frames JVM TI has read. */
uint64_t stack_of_frames(const jvmtiFrameInfo *frames, jint n);
/*
 * Returns the stack of a virtual thread that is being unmounted as a constant: GetStackTrace knows
 * which of its frames are hidden.
 */
uint64_t stack_of_unmounting_thread(void);
/* Frees what stack_here keeps in a waiter; NULL is ignored. */
void stack_forget_last(struct last_stacks *all);
