/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that were allocated of late: they have an id, and no tag yet. */
#pragma once

#include "jvmpi/layer.h"

/*
 * An id for an object that the calling thread has just been told of by SampledObjectAlloc. No code has a reference to it yet,
 * so that only a sweep can have named it: NULL when there was one since the thread's last allocation, or when there is no
 * room; ids.c then names it.
 */
jobjectID newborn_id(JNIEnv *env, jobject object);
/*
 * Behind a collection: ends those that are gone, of ids up to one; with may_tag those that live get their tags when they have
 * seen some collections or are many. Takes the lock of ids.c again and again.
 */
void newborns_settle(JNIEnv *env, jlong up_to, bool may_tag);

/* With the lock of ids.c: */

/* The id of an object without a tag, which gets it; 0: it has none. */
jlong newborn_find(jobject object);
/* A local reference to a newborn of this id; NULL: there is none. */
jobject newborn_object(JNIEnv *env, jlong id);
/* Between them newborn_id answers NULL, and there are no newborns: who walks through the heap sees each object's id. */
void newborns_sweep_begin(void);
void newborns_sweep_end(void);
