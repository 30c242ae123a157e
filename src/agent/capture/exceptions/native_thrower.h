/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a compiled native method throws is reported by the VM at the call in its Java caller. The
 * native method is then the first frame of the exception's stack trace, as the VM keeps it.
 */
#pragma once

#include <jni.h>
#include <jvmti.h>
#include <stdbool.h>

void native_thrower_start(JNIEnv *jni);
void native_thrower_release(JNIEnv *jni);
/*
 * Returns the native method that threw the exception, which the VM reported at location `at` of
 * `method`; NULL if it was thrown there, or if the exception was created elsewhere. Calls
 * Throwable.getStackTrace once for each native method, and a few times if one call does not decide
 * it.
 */
jmethodID native_thrower(JNIEnv *jni, jobject exception, jmethodID method, jlocation at);
/* Returns whether the calling thread is inside native_thrower. */
bool native_thrower_runs(void);
