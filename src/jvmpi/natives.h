/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of native methods. Each method is bound to a thunk of ours, which calls the client, the method's own code, and the
 * client again; arguments, result and a pending exception pass as they are. No class is changed and no frame is seen by Java,
 * and methods that were bound before count as well. Never bound: methods that the JIT replaces (intrinsics), those of the
 * classes that are never instrumented (Thread aside), MethodHandle's and VarHandle's, which the VM links by itself, and those
 * that load libraries, within which JNI's FindClass asks another class loader.
 *
 * On the processors that agent/instrument/native_thunks.h knows; 4,096 methods.
 */
#pragma once

#include "base/macro.h"
#include "base/strpool.h"

#include <jni.h>

/* What `enter` answers and `exit` gets is the client's own, 0 to 255. Both are called in native state, on any thread. */
struct natives_client {
    /* The receiver is NULL for static methods. No exception is pending. */
    int (*enter)(JNIEnv *jni, jmethodID method, jobject receiver);
    /* An exception may be pending. Not called when the native code never comes back. */
    void (*exit)(JNIEnv *jni, jmethodID method, int entered);
};

/* Begins to note what the VM binds. In Agent_OnLoad, for what was bound earlier is not told; -ENOTSUP. */
int natives_watch(void) must_check;
/* The class file engine saw that the JIT may replace this native method. */
void natives_intrinsic(struct str class_name, struct str method);
/*
 * Binds all methods, and those to come, for ever. The live phase, once, called by a native method of a class of the boot
 * loader: for other callers the VM warns. -ENOTSUP: not on this processor.
 */
int natives_on(const struct natives_client *client, JNIEnv *jni) must_check;
