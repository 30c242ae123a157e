/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The large arrays of a heap analysis: zeroed, taking memory only where they are touched. Anonymous memory as long as the
 * limit allows, beyond it mappings of an unlinked file, which the kernel writes out and drops when memory gets short.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* limit: bytes of anonymous memory that all arrays together may reserve, 0 for no limit; folder: where spilled arrays lie. */
void heap_memory_limit(uint64_t limit, const char *folder);
/* NULL when there is no memory (or no disk). Freed by heap_memory_free, which accepts NULL. Safe for threads. */
void *heap_memory(uint64_t bytes);
void heap_memory_free(void *memory);
/* Bytes that arrays freed so far took of the disk, if they lay in files. */
uint64_t heap_memory_spilled(void);
