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
 * Begins to walk stacks, except with walker=jvmti or in an unknown VM. A capture's start must call
 * it, on a platform thread; GetStackTrace is used until then.
 */
void own_stack_start(JNIEnv *jni, const struct options *o);
/*
 * Forgets all methods because their names are about to be released (names_release). No stack is
 * being read.
 */
void own_stack_release(void);
/* Reads at most max frames of the calling thread, innermost first. Returns their number. */
jint own_stack(JNIEnv *jni, jvmtiFrameInfo *frames, jint max);
/*
 * Like own_stack. Also stores the words that determine the frames, unless ret_words is NULL; none
 * if the stack was not walked.
 */
jint own_stack_words(JNIEnv *jni, jvmtiFrameInfo *frames, jint max, struct walk_words *ret_words);
/*
 * For callers that recognize stacks which they have seen before (unwind/known.h). own_stack_place
 * stores where the calling thread left Java, and returns false if stacks are not walked;
 * own_stack_is returns whether its stack is still the one that own_stack_words walked.
 */
bool own_stack_place(JNIEnv *jni, struct walk_start *ret);
bool own_stack_is(const struct known_stack *k, const struct walk_start *start);
/* Returns whether stacks that are recognized must be walked all the same (stacks=check). */
bool own_stack_checks(void);
/*
 * Counts a comparison of a recognized stack with a walk; same: the walk found the stack that was
 * kept.
 */
void own_stack_checked(bool same);
/* Appends lines "stacks.NAME N" for the status. */
void own_stack_status(struct buf *out);
