/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What JVM TI says about the calling thread. Its functions must not be given NULL for this thread:
 * from JDK 21 on they would wait until no thread is being mounted or unmounted, and for ever if
 * such a thread waits for a lock of this one.
 */
#pragma once

#include "agent/vm/vm.h"

/* Stores up to `max` frames, from the frame `from` on, 0 being the innermost. */
jvmtiError self_frames(jint from, jint max, jvmtiFrameInfo *frames, jint *ret_n) must_check;
/* Stores a description of the thread, to be released with vm_free_thread_info. */
jvmtiError self_info(jvmtiThreadInfo *ret) must_check;
