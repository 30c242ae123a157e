/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of ids. */
#pragma once

#include "jvmpi/layer.h"

/* Returns a local reference to the object, or NULL when it is dead or unknown. */
jobject layer_object_of(JNIEnv *env, jobjectID id);
/* Makes layer_object_of fast for this object until layer_id_drop. The reference remains the
 * caller's. */
void layer_id_keep(jobjectID id, jweak ref);
void layer_id_drop(jobjectID id);
/* The object now has this id as its tag. */
void lookup_add(jlong id, jobject object);
/* The object is dead. */
void lookup_forget(JNIEnv *env, jlong id);
