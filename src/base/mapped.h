/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anonymous memory for the agent's tables: zeroed, with pages that are allocated as they are used.
 * It is noted, so that the agent can tell how much of it is in memory.
 */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

/* Returns memory that mapped_free takes back, or NULL. */
void *mapped_new(size_t bytes) must_check;
/* The same, aligned to its size, which is a power of two, and in huge pages if it can be. */
void *mapped_new_huge(size_t bytes) must_check;
/* The size must be the one that the memory was made with. NULL is ignored. */
void mapped_free(void *memory, size_t bytes);
/* How many bytes of all that was mapped and not freed are in memory, as the kernel says. */
uint64_t mapped_resident(void);
