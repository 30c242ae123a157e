/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of the process that the VM is. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

/* When the process started, in milliseconds since 1970; 0: not known. */
uint64_t process_start_ms(void);
/*
 * Appends the VM's options as the `java` command and the environment (JAVA_TOOL_OPTIONS,
 * _JAVA_OPTIONS) give them, separated by blanks and without the class path, as the VM itself tells
 * them. Nothing where another program has made the VM.
 */
void process_vm_arguments(struct buf *to);
