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
 * Makes the VM log. Returns 0, or -ENOTSUP: there is no such log (JDK 8, no management library, no
 * memory file, a limit on the size of files).
 */
int vm_log_open(JNIEnv *jni) must_check;
bool vm_log_is_open(void);

/* What a call of vm_log_read could not hand over. */
struct vm_log_lost {
    uint64_t skipped; /* lines that arrived faster than they were read */
    uint64_t unknown; /* lines of another form than the one that the agent requested */
    uint64_t cuts;    /* 1: the file was cut off; what it held since the last call is gone */
};

/*
 * Calls see() for each line since the last call. Returns 0, or a negative errno; -ESTALE: the
 * agent's descriptor no longer belongs to the log, which is closed then.
 */
int vm_log_read(JNIEnv *jni, void (*see)(const struct log_line *line), struct vm_log_lost *ret);
/* Ends the log. jni NULL: the VM is about to end, so it is not asked to close it. */
void vm_log_close(JNIEnv *jni);
