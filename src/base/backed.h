/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is mapped from files. Another process may cut such a file short at any time; touching
 * memory beyond its new end raises SIGBUS, which would end the process. For memory that is noted
 * here, the handler of that signal (hotspot/memory.h) puts empty memory in the place of what was
 * lost.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Notes mapped memory that begins at a page. *lost, which must live as long, becomes true when a
 * part of it was replaced. Returns 0 or a negative errno.
 */
int backed_add(void *from, size_t bytes, atomic_bool *lost) must_check;
/* Forgets noted memory. Call it before unmapping; memory that was never noted is ignored. */
void backed_remove(const void *from);
/*
 * Replaces the rest of the noted memory from the page of this address on. Returns false when the
 * address is not in noted memory, or there is no memory. Async-signal-safe.
 */
bool backed_replace(const void *address);
