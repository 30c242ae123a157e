/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the VM, and the collections that the agent requests before it. HotSpot stops the
 * threads of concurrent collectors before it posts VMDeath; a collection that is requested there
 * never returns (ZGC and Shenandoah up to JDK 21, ZGC of 25) or does nothing (Shenandoah of 25).
 * Therefore whatever needs a collection is done in a shutdown hook of java.lang.Shutdown, which
 * runs after the hooks of the program. Runtime.halt runs no hooks, so there is no last collection
 * then.
 */
#pragma once

#include "base/macro.h"

#include <jni.h>
#include <stdbool.h>

/*
 * Adds the shutdown hook, which calls session_vm_ending, once per VM. In the live phase. Negative
 * errno when this VM does not accept it.
 */
int ending_watch(JNIEnv *jni) must_check;
/* From now on no collection is requested. With `wait`, collections in progress are waited for. */
void ending_stop_collections(bool wait);

/*
 * Collects the whole heap. False when garbage may remain, because the VM is ending or its collector
 * does not collect on request (Epsilon; Shenandoah with -XX:+DisableExplicitGC). Any attached
 * thread in the live phase.
 */
bool collect_garbage(JNIEnv *jni);
void collect_if_possible(JNIEnv *jni); /* the same, without an object to find out whether it ran */
/*
 * A weak reference to an object that is otherwise unreachable, which a collection clears; NULL: out
 * of memory.
 */
jweak collect_make_garbage(JNIEnv *jni);
/*
 * Calls f, which makes the VM collect in another way than collect_garbage if its argument `collect`
 * is true. No other collection of ours begins meanwhile. Returns the result of f. *ret_collected is
 * as the result of collect_garbage; ret_collected may be NULL.
 */
int collect_and(JNIEnv *jni, int (*f)(JNIEnv *jni, bool collect, void *context), void *context,
                bool *ret_collected);
