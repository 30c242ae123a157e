/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is mapped from files. Another process may cut such a file short at any time; touching
 * memory beyond its new end raises SIGBUS, which would end the process. For memory that is
 * registered here, the handler of that signal (hotspot/memory.h) replaces the lost part by zeroed
 * memory.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Registers mapped memory that begins at a page. *lost, which must live as long as the
 * registration, becomes true when a part of the memory was replaced. Returns 0, or -ENOSPC when too
 * many areas are registered.
 */
int backed_add(void *from, size_t bytes, atomic_bool *lost) must_check;
/* Unregisters memory. Call it before unmapping; memory that was never registered is ignored. */
void backed_remove(const void *from);
/*
 * Replaces the registered memory from the page of this address on by zeroed memory. Returns false
 * when the address is not in registered memory, or the system has no memory. Async-signal-safe.
 */
bool backed_replace(const void *address);
