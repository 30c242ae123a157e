/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observes calls of native methods without changing classes: a thunk (native_thunks.h) is bound in
 * front of the native function. Methods that are bound later are reported by JVM TI's
 * NativeMethodBind. Methods that are already bound are found in the way the VM finds them: by
 * symbol in the loaded libraries, or by making the class register its natives again
 * (registerNatives of the JDK).
 *
 * Left alone are: classes that are never instrumented (choice_is_excluded); classes of the platform
 * loader that are already bound (rebinding them would print warnings on standard output); natives
 * that the program registered by hand before the agent was loaded. Code that the JIT substitutes
 * for a native method (an intrinsic) does not call it and is not observed.
 */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

struct native_method {
    struct str class_name; /* java/lang/String */
    struct str name, descriptor;
    bool is_static;
};

struct native_call {
    JNIEnv *jni;
    int number;            /* as returned by `wants` */
    struct str descriptor; /* "(IJ)V" */
    bool is_static;
    jobject self;       /* the class, when static */
    const jvalue *args; /* in the descriptor's order; NULL at exit */
    uint64_t token;     /* enter may set it for exit */
    jvalue result;      /* at exit; undefined when an exception was thrown */
    /*
     * at exit: the exception that the method leaves pending; it is cleared during the call and
     * restored afterwards
     */
    jthrowable thrown;
};

struct native_client {
    const char *name;
    bool (*wants_class)(struct str class_name);
    /*
     * Returns a number for the method, or a negative value to leave it alone. Called for methods
     * whose code is known, and for the others when they are linked. Any thread; no JNI.
     */
    int (*wants)(const struct native_method *m);
    /*
     * Called on the calling thread, in native code. JNI is allowed, and native calls that it makes
     * are not reported. Local references are freed afterwards.
     */
    void (*enter)(struct native_call *c);
    void (*exit)(struct native_call *c);
};

/*
 * Adds a client; to be called in the live phase. Returns 0, or a negative errno with a sentence in
 * `why`: -ENOTSUP when calls of native methods cannot be observed on this processor or VM, -ENOSPC
 * when there are too many clients, or the error of probe_define or vm_events_on.
 */
int native_calls_on(const struct native_client *c, JNIEnv *jni, struct buf *why) must_check;
/* Asks the clients again which methods they want; calls are still reported meanwhile. */
void native_calls_change(JNIEnv *jni);
/*
 * Removes a client. After the call, no function of the client is running, and methods that no other
 * client wants have their original binding.
 */
void native_calls_off(const struct native_client *c, JNIEnv *jni);
/* Appends status lines "native.methods N" ... */
void native_calls_status(struct buf *out);
