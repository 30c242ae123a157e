/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of events that are switched on with the first event that needs them. */
#pragma once

#include "jvmpi/layer.h"

/* methods.c */
jint methods_enable(JNIEnv *env);
jint layer_compiled_enable(JNIEnv *env);
/* Forgets a method whose class was unloaded: the end of its code is not reported. */
void layer_compiled_forget(jmethodID method);
jint layer_instructions_enable(JNIEnv *env);
extern const struct vm_callbacks compiled_load_events, compiled_unload_events;

/* contended_exit.c, sleep.c, allocations.c */
jint contended_exit_enable(JNIEnv *env);
/*
 * Called when the calling thread begins to wait for the object's monitor, and when it has entered
 * it.
 */
void layer_contention_began(jobject object);
void layer_contention_ended(void);
jint sleep_enable(JNIEnv *env);
jint allocations_enable(JNIEnv *env);
