/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread, from a callback of JVM TI or a native method: what
 * GetStackTrace(NULL, 0, max) answers, but walked by the VM's own structures (unwind/walk.h), which
 * costs a tenth. A frame's jmethodID is the one that GetStackTrace gave when the method was met
 * first; its names are learnt then too, while its class cannot go. Where a walk cannot be had, or
 * not whole, GetStackTrace is asked, and counted.
 */
#pragma once

#include "agent/options.h"
#include "agent/vm.h"
#include "base/buf.h"
#include "unwind/walk.h"

/*
 * Begins: for a capture's start, on a platform thread. Walks are not had before, with walker=jvmti,
 * and in a VM unknown to us.
 */
void own_stack_start(JNIEnv *jni, const struct options *o);
/* Forgets what was learnt: the names are going (names_release). No stack is being taken. */
void own_stack_release(void);
/* At most max frames, the innermost first; returns how many. */
jint own_stack(JNIEnv *jni, jvmtiFrameInfo *frames, jint max);
/* The same with the words that they follow from; none when they were not walked. */
jint own_stack_words(JNIEnv *jni, jvmtiFrameInfo *frames, jint max, struct walk_words *ret_words);
/* Lines of the status. */
void own_stack_status(struct buf *out);
