/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collections that the agent requests. None is requested once the VM is ending (session/ending.h).
 */
#pragma once

#include <jni.h>
#include <stdbool.h>

/*
 * Makes the functions below request no more collections. With `wait`, also waits for the collection
 * in progress.
 */
void collect_stop(bool wait);
/*
 * Collects the whole heap. Returns false when garbage may remain, because the VM is ending or its
 * collector does not collect on request (Epsilon; Shenandoah with -XX:+DisableExplicitGC). Any
 * attached thread in the live phase.
 */
bool collect_garbage(JNIEnv *jni);
/* Collects like collect_garbage, without an object to find out whether that happened. */
void collect_if_possible(JNIEnv *jni);
/*
 * Returns a weak reference to an object that is otherwise unreachable, or NULL when out of memory.
 * A collection clears the reference; the caller deletes it.
 */
jweak collect_make_garbage(JNIEnv *jni);
/*
 * Calls f, which makes the VM collect in another way than collect_garbage if its argument `collect`
 * is true. No other collection of ours begins meanwhile. Returns the result of f. *ret_collected is
 * as the result of collect_garbage; ret_collected may be NULL.
 */
int collect_by(JNIEnv *jni, int (*f)(JNIEnv *jni, bool collect, void *context), void *context,
               bool *ret_collected);
