/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread, from a JVM TI callback or a native method. The result is that of
 * GetStackTrace(NULL, 0, max), but the stack is walked using the VM's own structures
 * (unwind/walk.h), which takes a tenth of the time. A frame's jmethodID is the one that
 * GetStackTrace returned when the method was first seen; the names are read at the same time, while
 * the class cannot be unloaded. Where a complete walk is not possible GetStackTrace is called,
 * which is counted.
 */
#pragma once

#include "agent/vm/vm.h"
#include "base/buf.h"
#include "options/options.h"
#include "unwind/known.h"

/*
 * Must be called by a capture's start, on a platform thread. Stacks are not walked before that,
 * with walker=jvmti, or in an unknown VM.
 */
void own_stack_start(JNIEnv *jni, const struct options *o);
/*
 * Forgets all methods because their names are about to be released (names_release). No stack is
 * being read.
 */
void own_stack_release(void);
/* Reads at most max frames of the calling thread, innermost first; returns their number. */
jint own_stack(JNIEnv *jni, jvmtiFrameInfo *frames, jint max);
/*
 * Reads frames like own_stack, and the words that determine them; there are no words if the stack
 * was not walked.
 */
jint own_stack_words(JNIEnv *jni, jvmtiFrameInfo *frames, jint max, struct walk_words *ret_words);
/*
 * For callers that recognize stacks which they have seen before (unwind/known.h). own_stack_place
 * stores where the calling thread left Java, or returns false if stacks are not walked;
 * own_stack_is returns whether its stack is still the one that own_stack_words walked.
 */
bool own_stack_place(JNIEnv *jni, struct walk_start *ret);
bool own_stack_is(const struct known_stack *k, const struct walk_start *start);
/*
 * With stacks=check, stacks that are recognized must be walked all the same, and the caller says
 * whether the result is the one that was kept.
 */
bool own_stack_checks(void);
void own_stack_checked(bool same);
/* Appends lines of the status. */
void own_stack_status(struct buf *out);
