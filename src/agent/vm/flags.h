/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * Returns the value of a boolean flag of the VM ("UseZGC"), read from the VM's memory, and false
 * also when there is no such flag or the layout of this VM is unknown. Looks the flag up each
 * time.
 */
bool vm_flag(const char *name);

/*
 * Returns the name of the flag by which the VM makes an archive of its classes, or NULL
 * (hotspot_archive_flag).
 */
const char *vm_archive_flag(void);
