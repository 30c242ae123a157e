/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of native methods, seen without any change to classes: a thunk (native_thunks.h) is bound
 * in front of the native function. What is bound later comes by JVM TI's NativeMethodBind; what is
 * bound already is found as the VM finds it: by its symbol in the libraries that are loaded, or by
 * having the class register its natives once more (registerNatives of the JDK).
 *
 * Left alone: what instrumentation never touches (choice_never), classes of the platform loader
 * that are bound already (the VM would complain on standard output), natives that code of the
 * program registered by hand before we came. Code that the JIT puts in place of a native method (an
 * intrinsic) does not call it and is not seen.
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
    int number;            /* as `wants` gave it */
    struct str descriptor; /* "(IJ)V" */
    bool is_static;
    jobject self;       /* the class, when static */
    const jvalue *args; /* in the descriptor's order; NULL at exit */
    uint64_t token;     /* enter may set it for exit */
    jvalue result;      /* at exit; undefined when thrown */
    /* at exit: what the method leaves pending; it is not pending now and will be again */
    jthrowable thrown;
};

struct native_client {
    const char *name;
    bool (*wants_class)(struct str class_name);
    /* a number, or negative: leave it alone. Any thread; no JNI */
    int (*wants)(const struct native_method *m);
    /*
     * On the calling thread, in native code: JNI is allowed, and what it calls is not reported. No
     * local reference is left.
     */
    void (*enter)(struct native_call *c);
    void (*exit)(struct native_call *c);
};

/*
 * The live phase; once a client until it is off. -ENOTSUP with a sentence in why: not on this
 * processor or VM.
 */
int native_calls_on(const struct native_client *c, JNIEnv *jni, struct buf *why) must_check;
/*
 * When it returns, no call of the client's functions is under way and methods that no client wants
 * are bound as they were.
 */
void native_calls_off(const struct native_client *c, JNIEnv *jni);
/* Applies the clients' wishes once more: they have changed. */
void native_calls_again(JNIEnv *jni);
/* Appends status lines "native.methods N" ... */
void native_calls_status(struct buf *out);
