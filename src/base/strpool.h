/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that stores each distinct string once and gives it a small number: 0, 1, 2 ... in the
 * order in which strings are added. Strings may hold any bytes. A zeroed pool is empty and valid.
 * The address of a string is valid until the pool is released.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *data; /* NUL-terminated; may contain NULs as well */
    size_t len;
};

static inline bool str_is(struct str s, const char *z)
{
    size_t n = strlen(z);
    return s.len == n && memcmp(s.data, z, n) == 0;
}

static inline bool str_ends_in(struct str s, const char *end)
{
    size_t n = strlen(end);
    return s.len >= n && memcmp(s.data + s.len - n, end, n) == 0;
}

struct strpool {
    struct arena arena;
    VEC(struct str) strings;
    uint32_t *index; /* open addressing; number + 1, or 0 if the slot is free */
    size_t cap;
};

/* Returns the number of the string, added if it is new, or -ENOMEM. */
int64_t strpool_add(struct strpool *p, const char *data, size_t len) must_check;
/* Returns the number of a string that is in the pool, or -ENOENT. */
int64_t strpool_find(const struct strpool *p, const char *data, size_t len);
/* Returns the string with this number, or the empty string when the number is out of range. */
struct str strpool_get(const struct strpool *p, uint64_t number);
void strpool_release(struct strpool *p);
