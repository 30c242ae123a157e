/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: allocations that live and die together. Zeroed is empty and valid. Not for signal handlers, not for two threads.
 */
#pragma once

#include "base/macro.h"

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *last;
    char *at, *end;
    size_t bytes; /* asked of malloc so far */
};

/* Returns size bytes, aligned for any type and not cleared, or NULL when memory is out. */
void *arena_alloc(struct arena *a, size_t size) must_check;
/* The same, zeroed. */
void *arena_zalloc(struct arena *a, size_t size) must_check;
/* A copy of len bytes with a NUL behind them, or NULL. */
char *arena_copy(struct arena *a, const void *bytes, size_t len) must_check;
void arena_release(struct arena *a);
