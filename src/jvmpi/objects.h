/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of objects. */
#pragma once

#include "jvmpi/ids.h"

enum { LAYER_ARENA = 1 };

/*
 * Returns the id of an object that an event is about to name. Sends OBJECT_ALLOC first if it is
 * enabled and has not reported the object.
 */
jobjectID layer_report_object(JNIEnv *env, jobject object);
/* Like layer_report_object, for an object that the calling thread has just created. */
jobjectID layer_report_new_object(JNIEnv *env, jobject object);
/* Determines what the instances of the class are, for layer_report_found. */
void layer_kind_learn(JNIEnv *env, jclass class);
/*
 * Sends OBJECT_ALLOC for what a walk has found, except for what other threads have reported
 * meanwhile.
 */
void layer_report_found(JNIEnv *env, const found_vec *found);
/* Sends OBJECT_ALLOC for everything that has an id and was not reported yet. */
void layer_report_unreported(JNIEnv *env);
/*
 * Visits all live objects, each once for every reference to it. Returns false when the VM or the
 * visitor fails. JVM TI's walk of the entire heap would also visit the fillers of gaps, whose tags
 * pass to the objects that are created there next.
 */
bool layer_living_walk(int (*visit)(jlong class_id, jlong size, jlong *id, void *data),
                       void *data) must_check;
void layer_memory_replay(JNIEnv *env);
/*
 * Sends OBJECT_ALLOC for an object, even if it has ended since the dump in progress on this thread
 * named it.
 */
jint layer_request_object_alloc(JNIEnv *env, jobjectID id);
/*
 * Sends a requested OBJECT_ALLOC, also while another thread is reporting the object, so that what
 * is requested about it does not come first.
 */
void layer_request_in_flight(JNIEnv *env, jobjectID id);
jint layer_enable_allocations(bool on);
/*
 * Retires the threads' allocation buffers by a collection. The VM handed them out without a point
 * at which it calls the layer, so what is allocated in them would not be reported. Call it in the
 * live phase, after layer_enable_allocations.
 */
void layer_allocations_see_all(void);
