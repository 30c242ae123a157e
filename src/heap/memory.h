/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The large arrays of a heap analysis. They are zeroed and take memory only where they are touched.
 * Up to a limit they are anonymous memory; beyond it they are mappings of an unlinked file, which
 * the kernel can write out when memory gets short.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Sets the limit. limit: the number of bytes of anonymous memory for all arrays together, 0 for no
 * limit. folder: where files for further arrays are created; NULL for /var/tmp. The text must
 * remain valid.
 */
void heap_memory_limit(uint64_t limit, const char *folder);
/*
 * Returns an array of this number of bytes, or NULL when out of memory or disk space, or when too
 * many arrays exist. The caller frees it with heap_memory_free, which accepts NULL. Any thread.
 */
void *heap_memory(uint64_t bytes);
/*
 * Returns an array of `bytes` bytes in place of `old`, which may be NULL and is freed in any case.
 * The contents are undefined. The kernel need not clear pages that were in use, which would take
 * longer than most uses of them. Returns NULL when out of memory.
 */
void *heap_memory_again(void *old, uint64_t bytes);
void heap_memory_free(void *memory);
/* Returns the number of bytes on disk taken by the arrays freed so far. */
uint64_t heap_memory_spilled(void);
