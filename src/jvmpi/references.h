/* SPDX-License-Identifier: Apache-2.0 */
/* Global references, those of the program and those of the layer. */
#pragma once

#include "jvmpi/layer.h"

struct reference {
    jobject ref;
    jlong id;
    bool taken; /* used by callers that list them */
};

jint references_on(JNIEnv *env);
/*
 * Returns in *ret, which the caller frees, the global references made since GLOBALREF events were
 * enabled, by id, and their number.
 */
size_t references_list(struct reference **ret);
/* Create and delete references of the layer itself, which no event reports. */
jweak layer_weak(JNIEnv *env, jobject object);
void layer_delete_weak(JNIEnv *env, jweak ref);
jobject layer_global(JNIEnv *env, jobject object);
void layer_delete_global(JNIEnv *env, jobject ref);
