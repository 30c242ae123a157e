/* SPDX-License-Identifier: Apache-2.0 */
/* Finds objects by their ids. */
#pragma once

#include "jvmpi/layer.h"

/* Returns a local reference to the object, or NULL when it is dead or unknown. */
jobject layer_object_of(JNIEnv *env, jobjectID id);
/*
 * Makes layer_object_of fast for the object with this id until layer_id_drop. The reference remains
 * the caller's.
 */
void layer_id_keep(jobjectID id, jweak ref);
void layer_id_drop(jobjectID id);
/* Records that the object has this id as its tag now. */
void lookup_add(jlong id, jobject object);
/* Forgets an object that is dead. */
void lookup_forget(JNIEnv *env, jlong id);
