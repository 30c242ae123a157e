/* SPDX-License-Identifier: Apache-2.0 */
/* Call traces of one thread, and of all threads at one moment for dumps. */
#pragma once

#include "jvmpi/layer.h"
#include "jvmpi/threads.h"

struct layer_traces {
    jint n;
    jint n_listed; /* traces of threads that JVM TI lists; those of hidden threads follow */
    JVMPI_CallTrace *all;
    JVMPI_CallFrame *frames; /* the frames of all threads */
    /* The method of each frame in the version of the class that is running. */
    jmethodID *raw;
    jlong *threads; /* ids of the thread objects, by trace */
};

/*
 * Takes the traces of the threads that were reported, of which `threads` is a list. Returns false
 * when the VM fails or memory runs out.
 */
bool traces_take(JNIEnv *env, const reported_thread_vec *threads,
                 struct layer_traces *t) must_check;
void layer_traces_release(struct layer_traces *t);
/*
 * Returns the environment of a thread, given the id of its object, or NULL when it is not included.
 */
JNIEnv *traces_env(const struct layer_traces *t, jlong thread);
/*
 * Returns the environment of a hidden thread, given the id of its object, or NULL when it is not
 * included.
 */
JNIEnv *traces_hidden_env(const struct layer_traces *t, jlong thread);
/* Returns a frame's number in the thread's trace, or -1 when another method runs there by now. */
jint traces_frame(const struct layer_traces *t, jlong thread, jint depth, jmethodID method);

void layer_get_call_trace(JVMPI_CallTrace *trace, jint depth);
