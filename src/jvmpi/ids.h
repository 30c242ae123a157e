/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of objects. */
#pragma once

#include "base/vec.h"
#include "jvmpi/layer.h"

/* An object that a heap walk has seen or given an id. */
struct found {
    jlong id, class_id, size;
};

typedef VEC(struct found) found_vec;
int layer_found_compare(const void *left, const void *right); /* by id, for qsort and bsearch */

/* What a dump names, sorted by id. */
struct dumped {
    found_vec objects;
};

/*
 * Returns the id of an object, which gets one if it has none, or NULL for null. For any attached
 * thread. Sends nothing; for answers.
 */
jobjectID layer_id_of(jobject object);
/* Returns the tag of an object that has one, or NULL. For events that are no longer sent. */
jobjectID id_given(jobject object);
/* Sets the id as the tag of its object; the ids of the newest objects are not tags yet. */
void id_tag(jobjectID id);
/*
 * Returns the id of an object like layer_id_of, for events. *ret_unreported: OBJECT_ALLOC has not
 * reported the object, so the caller must do so and then end the flight. unshared: the caller has
 * just created the object and no other thread can name it; otherwise the function waits while
 * another thread reports it.
 */
jobjectID id_to_report(jobject object, bool unshared, struct flight *f, bool *ret_unreported);
/*
 * Like id_to_report, for an object that SampledObjectAlloc has just reported to the calling thread.
 * own: that thread's.
 */
jobjectID id_of_allocated(struct my *own, JNIEnv *env, jobject object, struct flight *f,
                          bool *ret_unreported);
/* Gives an id to an object that no other thread knows. Returns 0 when the VM refuses. */
jlong id_give(jobject object);
/*
 * Returns true when OBJECT_ALLOC is enabled and has not reported the id. The caller must then
 * report it, or treat it as never reported, and end the flight.
 */
bool id_claim(jlong id, struct flight *f);
/* Returns all ids still to be reported, in an array that the caller frees. */
size_t ids_unreported(jlong **ret);
/* Enclose operations that give ids to objects by walking the heap. */
void ids_sweep_begin(void);
void ids_sweep_end(void);
/*
 * Enclose the walk itself. Meanwhile no other thread gives ids to objects, and this thread must not
 * use the functions above. The objects that the walk has found must be reported afterwards.
 */
void ids_walk_begin(void);
/*
 * For the walk's callback, in which the lock is held. Returns whether the walk must report an
 * object although it has an id, because the id was returned to the agent but the object was not
 * reported yet. The object may end right after the walk.
 */
bool ids_walk_unreported(jlong id);
void ids_walk_end(const found_vec *found);
/*
 * Reserve an id for a heap callback, which must not lock, or n consecutive ids. Return the id, or
 * the lowest of them.
 */
jlong layer_next_id(void);
jlong layer_next_ids(jlong n);
jlong layer_last_id_given(void);
void ids_lock(void);
void ids_unlock(void);
