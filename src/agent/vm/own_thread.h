/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the agent. The VM does not count them among the program's (java.threads.live). */
#pragma once

#include "agent/vm/vm.h"
#include "base/macro.h"

/*
 * Starts a daemon thread of the agent, attached to the VM, which calls run. *ret is set to a global
 * reference to it, unless ret is NULL. Returns 0, or -ENOMEM.
 */
int own_thread_start(JNIEnv *jni, const char *name, jvmtiStartFunction run, void *context,
                     jobject *ret) must_check;
