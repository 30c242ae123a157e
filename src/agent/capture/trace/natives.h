/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native methods among the traced ones: the probes are called by JNI, before and behind the native
 * function.
 */
#pragma once

#include "agent/instrument/native_calls.h"

/*
 * The probe class's methods; 0 or -EPROTO. Before trace_native_enter and trace_native_exit, which
 * are of a native_client.
 */
int trace_natives_open(JNIEnv *jni, jclass probe) must_check;
void trace_native_enter(struct native_call *c);
void trace_native_exit(struct native_call *c);
