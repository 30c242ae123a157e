/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * A boolean flag of the VM ("UseZGC"), read in its own memory. False also when there is no such
 * flag or the VM is none whose layout is known. Looks the flag up each time.
 */
bool vm_flag(const char *name);

/*
 * Returns the flag by which the VM makes an archive of its classes for later starts
 * ("AOTCacheOutput"), or NULL. A class that was changed is left out of the archive. Where it is one
 * that every archive needs, such as java.lang.Thread, the VM writes none, and JDK 25 and later exit
 * with 1. Recording the profile of a cache (-XX:AOTMode=record) is such a run as well.
 */
const char *vm_archive_flag(void);
