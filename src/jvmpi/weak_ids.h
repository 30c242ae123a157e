/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of recently allocated objects that have no tag yet. */
#pragma once

#include "jvmpi/layer.h"

/*
 * Gives an id to an object that SampledObjectAlloc has just reported to the calling thread. No code
 * has a reference to it yet, so only a sweep can have given it an id. Returns NULL if there was a
 * sweep since the thread's last allocation, or if there is no room; ids.c then gives the id.  own:
 * the calling thread's.
 */
jobjectID weak_ids_add(const struct my *own, JNIEnv *env, jobject object);
/*
 * Handles dead objects with ids up to up_to after a collection. With may_tag the live ones get tags
 * if they have survived some collections or are many. Repeatedly takes the lock of ids.c.
 */
void weak_ids_settle(JNIEnv *env, jlong up_to, bool may_tag);

/* The following functions require the lock of ids.c. */

/* Returns the id of an object without a tag and tags it, or 0 when it has no id. */
jlong weak_ids_find(jobject object);
/* Returns a local reference to the object with this id, or NULL when it is not here. */
jobject weak_ids_object(JNIEnv *env, jlong id);
/* Tags the object with this id now, if it is here. */
void weak_ids_tag(JNIEnv *env, jlong id);
/*
 * Between these calls weak_ids_add returns NULL and all ids are tags, so that a walk of the heap
 * sees the id of each object.
 */
void weak_ids_sweep_begin(void);
void weak_ids_sweep_end(void);
