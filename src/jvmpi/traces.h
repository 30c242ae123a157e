/* SPDX-License-Identifier: Apache-2.0 */
/* Call traces: of one thread, and of all at one moment, as dumps carry them. */
#pragma once

#include "jvmpi/layer.h"

struct traces {
    jint n;
    JVMPI_CallTrace *all;
    JVMPI_CallFrame *frames; /* of all of them */
    jlong *threads;          /* ids of the threads' objects, by trace */
};

/* Threads without a JNIEnv that we know are left out. False when the VM or memory fails. */
bool traces_take(JNIEnv *env, struct traces *t) must_check;
void traces_release(struct traces *t);
/* The environment of a thread by its object's id; NULL: not among them. */
JNIEnv *traces_env(const struct traces *t, jlong thread);
/* A frame's number in the thread's trace; -1 when another method runs there by now. */
jint traces_frame(const struct traces *t, jlong thread, jint depth, jmethodID method);
