/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the VM, and the collections that the agent asks for until then. HotSpot stops the
 * threads of concurrent collectors before it posts VMDeath: a collection that is asked for there
 * never returns (ZGC and Shenandoah up to JDK 21, ZGC of 25) or does nothing (Shenandoah of 25). So
 * what needs a collection is done by a shutdown hook of java.lang.Shutdown, which runs after the
 * hooks of the program. Runtime.halt runs no hooks; then there is no last collection.
 */
#pragma once

#include "base/macro.h"

#include <jni.h>
#include <stdbool.h>

/*
 * Adds the shutdown hook, once per VM; it calls session_vm_ending. Negative errno when this VM
 * takes none. The live phase.
 */
int ending_watch(JNIEnv *jni) must_check;
/* From here on no collection is asked for; `wait`: and none is under way. */
void ending_stop_collections(bool wait);

/*
 * Collects the whole heap. False when garbage may be left: the VM is ending, or its collector does
 * not collect on request (Epsilon; Shenandoah with -XX:+DisableExplicitGC). Any attached thread in
 * the live phase.
 */
bool collect_garbage(JNIEnv *jni);
void collect_if_possible(JNIEnv *jni); /* and makes no object to find that out */
/*
 * A weak reference to an object that nothing else reaches, cleared by a collection; NULL: no
 * memory.
 */
jweak make_garbage(JNIEnv *jni);
/*
 * The same as collect_garbage by a function that has the VM collect when `collect` says that it
 * may; no collection of ours begins beside it. Answers what f answers. ret_collected may be NULL.
 */
int collect_and(JNIEnv *jni, int (*f)(JNIEnv *jni, bool collect, void *context), void *context,
                bool *ret_collected);
