/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracing of native methods: the probes are called through JNI, before and after the native
 * function.
 */
#pragma once

#include "agent/instrument/native_calls.h"

/*
 * Finds the probe class's methods. Returns 0, or -EPROTO. Must precede trace_native_enter and
 * trace_native_exit, which are callbacks of a native_client.
 */
int trace_natives_open(JNIEnv *jni, jclass probe) must_check;
void trace_native_enter(struct native_call *c);
void trace_native_exit(struct native_call *c);
