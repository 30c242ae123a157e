/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Natives of the JDK's own management library, which the agent calls as that library's Java code
 * does.
 */
#pragma once

#include "agent/vm/vm.h"

/*
 * Returns the address of a native method by its symbol: `now` in the library of JDK 9 and later, or
 * `jdk8` (may be NULL) in that of JDK 8. Loads the library. Returns NULL when no library has the
 * symbol.
 */
void *management_native(const char *now, const char *jdk8);

/*
 * Executes a diagnostic command, as jcmd does: "VM.log list". Appends the command's output to *out
 * (may be NULL). Returns 0, -ENOTSUP when the VM has no such commands, -EINVAL when the command
 * fails, with the reason in *out, or -ENOMEM. Any attached thread.
 */
int management_diagnostic_command(JNIEnv *jni, const char *command, struct buf *out) must_check;
