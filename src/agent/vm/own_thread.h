/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the agent. The VM does not count them among the program's (java.threads.live). */
#pragma once

#include "agent/vm/vm.h"
#include "base/macro.h"

/*
 * Starts a daemon thread of the agent, attached to the VM, which calls run(ti, jni, context).
 * Unless ret is NULL, *ret is a global reference to the thread, or NULL after an error. Returns 0,
 * or -ENOMEM.
 */
int own_thread_start(JNIEnv *jni, const char *name, jvmtiStartFunction run, void *context,
                     jobject *ret) must_check;
