/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* Prints the deadlocks of platform threads in a running VM. Returns the exit status. */
int deadlocks_of_vm(const char *pid, bool as_json);
