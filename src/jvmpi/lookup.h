/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of ids. */
#pragma once

#include "jvmpi/layer.h"

/* Returns a local reference to the object, or NULL when it is dead or unknown. */
jobject object_of(JNIEnv *env, jobjectID id);
/* Makes object_of fast for this object until id_drop. The reference remains the caller's. */
void id_keep(jobjectID id, jweak ref);
void id_drop(jobjectID id);
/* The object now has this id as its tag. */
void lookup_add(jlong id, jobject object);
/* The object is dead. */
void lookup_forget(JNIEnv *env, jlong id);
