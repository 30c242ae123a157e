/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena serves allocations that are all freed together. A zeroed arena is empty and valid. It
 * must not be used in a signal handler or by two threads at once.
 */
#pragma once

#include "base/macro.h"

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *last;
    char *at, *end;
    size_t bytes; /* total requested from malloc so far */
};

/* Returns size bytes, aligned for any type and not cleared, or NULL when out of memory. */
void *arena_alloc(struct arena *a, size_t size) must_check;
/* Like arena_alloc, but the bytes are zeroed. */
void *arena_zalloc(struct arena *a, size_t size) must_check;
/* Returns a copy of len bytes, followed by a NUL, or NULL when out of memory. */
char *arena_copy(struct arena *a, const void *bytes, size_t len) must_check;
void arena_release(struct arena *a);
