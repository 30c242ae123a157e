/* SPDX-License-Identifier: Apache-2.0 */
/* What the system knows about the VM's process. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

/* Returns when the process started, in milliseconds since 1970; 0: unknown. */
uint64_t process_start_ms(void);
/*
 * Appends the VM's options from the `java` command line and the environment (JAVA_TOOL_OPTIONS,
 * _JAVA_OPTIONS), separated by blanks and without the class path, in the form in which the VM
 * itself reports them. If another program created the VM, appends those from the environment only.
 */
void process_vm_arguments(struct buf *to);
