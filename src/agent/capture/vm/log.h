/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VM's unified log, written by the VM into a file in memory that only the agent reads. The
 * agent requests it in the same way as `jcmd PID VM.log`, which also lists it; other outputs of the
 * log are not touched.
 */
#pragma once

#include "hotspot/unified_log.h"

#include "agent/vm/vm.h"

/*
 * Makes the VM log. 0; -ENOTSUP: there is no such log (JDK 8, no management library, no memory
 * file, a limit on the size of files).
 */
int vm_log_open(JNIEnv *jni) must_check;
bool vm_log_is_open(void);
/* Calls see() for each line since the last call. Returns how many lines had to be skipped. */
uint64_t vm_log_read(void (*see)(const struct log_line *line));
/* Ends the log. jni is NULL when the VM is about to end and need not be asked any more. */
void vm_log_close(JNIEnv *jni);
