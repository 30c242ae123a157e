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
#include "unwind/walk.h"

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
/* Reads at most max frames, innermost first; returns their number. */
jint own_stack(JNIEnv *jni, jvmtiFrameInfo *frames, jint max);
/* The same, together with the words that determine the frames; none if the stack was not walked. */
jint own_stack_words(JNIEnv *jni, jvmtiFrameInfo *frames, jint max, struct walk_words *ret_words);
/* Appends lines of the status. */
void own_stack_status(struct buf *out);
