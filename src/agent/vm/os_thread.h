/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "agent/vm/vm.h"

#include <sys/types.h>

/*
 * Returns the kernel's id of a live platform thread, as HotSpot has it; 0 when the VM does not
 * reveal it. Unlike the id in the thread table, this one is also known of threads that have not run
 * since the agent attached.
 */
pid_t os_thread_id(JNIEnv *jni, jthread thread);
