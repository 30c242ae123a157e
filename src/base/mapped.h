/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anonymous memory for the agent's tables: zeroed, with pages that are allocated as they are used.
 * All of it is listed, so that the agent can report how much of it is resident.
 */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

/* Returns memory to be freed with mapped_free, or NULL when there is none. */
void *mapped_new(size_t bytes) must_check;
/*
 * Returns memory like mapped_new, aligned to its size, which is a power of two, and in huge pages
 * if possible.
 */
void *mapped_new_huge(size_t bytes) must_check;
/* `bytes` must be the size with which the memory was requested. NULL is ignored. */
void mapped_free(void *memory, size_t bytes);
/*
 * Unmaps the end of memory that was requested with `bytes`, so that the first `left` bytes remain:
 * a multiple of the page size, more than 0. They are later freed with mapped_free(memory, left).
 */
void mapped_shrink(void *memory, size_t bytes, size_t left);
/*
 * Returns how many bytes of all memory that was mapped and not freed are resident, according to the
 * kernel.
 */
uint64_t mapped_resident(void);
