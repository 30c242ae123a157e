/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intercepts calls of native methods. Each method is bound to a thunk that calls the client, the
 * method's own code, and the client again, and that preserves arguments, result and a pending
 * exception. No class is changed, Java sees no additional frame, and methods bound earlier are
 * included. Some methods are never bound: those that the JIT replaces (intrinsics), those of
 * classes that are never instrumented (except Thread), those of MethodHandle and VarHandle, which
 * the VM links itself, and those that load libraries, within which JNI's FindClass asks another
 * class loader.
 *
 * Available on the processors of agent/instrument/native_thunks.h, for 4,096 methods.
 */
#pragma once

#include "base/macro.h"
#include "base/strpool.h"

#include <jni.h>

/*
 * `enter` returns a value from 0 to 255, which is passed to `exit`. Both are called in native
 * state, on any thread.
 */
struct natives_client {
    /* A method of this class was bound; its first call comes later. */
    void (*bound)(JNIEnv *jni, jclass class);
    /* The receiver is NULL for static methods. No exception is pending. */
    int (*enter)(JNIEnv *jni, jmethodID method, jobject receiver);
    /* An exception may be pending. Not called when the native code never returns. */
    void (*exit)(JNIEnv *jni, jmethodID method, int entered);
};

/*
 * Begins to note what the VM binds. Must be called in Agent_OnLoad, because earlier bindings are
 * not reported. Returns 0 or -ENOTSUP.
 */
int natives_watch(void) must_check;
/* Records that the JIT may replace this native method. */
void natives_intrinsic(struct str class_name, struct str method);
/*
 * Permanently binds all methods, including later ones. Called once in the live phase by a native
 * method of a class of the boot loader, because the VM warns about other callers. Returns 0, or
 * -ENOTSUP on other processors.
 */
int natives_on(const struct natives_client *client, JNIEnv *jni) must_check;
