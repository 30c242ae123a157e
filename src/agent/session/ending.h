/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the VM, before which the agent requests its last collection. HotSpot stops the
 * threads of concurrent collectors before it posts VMDeath; a collection that is requested there
 * never returns (ZGC and Shenandoah up to JDK 21, ZGC of 25) or does nothing (Shenandoah of 25).
 * Therefore whatever needs a collection is done in a shutdown hook of java.lang.Shutdown, which
 * runs after the hooks of the program. Runtime.halt runs no hooks, so there is no last collection
 * then.
 */
#pragma once

#include "base/macro.h"

#include <jni.h>

/*
 * Adds the shutdown hook, which calls session_vm_ending, once per VM. Call it in the live phase.
 * Returns 0, or a negative errno if this VM accepts no hook.
 */
int ending_watch(JNIEnv *jni) must_check;
