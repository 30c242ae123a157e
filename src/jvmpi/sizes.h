/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of objects. */
#pragma once

#include "jvmpi/layer.h"

/* Returns the size of an object, in bytes, given its class and its id. */
jlong object_size(JNIEnv *env, jobject object, jclass class, jobjectID id);
/* The object is dead. */
void object_size_forget(jlong id);
