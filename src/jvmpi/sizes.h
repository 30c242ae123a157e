/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of objects. */
#pragma once

#include "jvmpi/layer.h"

/* Returns the size of an object, in bytes. class_id: its class's id, or NULL for an array. */
jlong layer_object_size(JNIEnv *env, jobject object, jobjectID class_id, jobjectID id);
/* Forgets an object that is dead. */
void layer_object_size_forget(jlong id);
