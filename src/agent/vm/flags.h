/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * A boolean flag of the VM ("UseZGC"), read in its own memory. False also when there is no such
 * flag or the VM is none whose layout is known. Looks the flag up each time.
 */
bool vm_flag(const char *name);

/* The flag by which the VM makes an archive of its classes, or NULL (hotspot_archive_flag). */
const char *vm_archive_flag(void);
