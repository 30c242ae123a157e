/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool in which each distinct string is stored once and named by a small number, 0, 1, 2 ... in order of arrival. Strings
 * may hold any bytes. Zeroed is empty and valid. A string's address stays until release.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"

#include <stdint.h>

struct str {
    const char *data; /* NUL-terminated; NULs inside are possible */
    size_t len;
};

struct strpool {
    struct arena arena;
    VEC(struct str) strings;
    uint32_t *index; /* open addressing, number + 1; 0 is free */
    size_t cap;
};

/* The number of the string, or -ENOMEM. */
int64_t strpool_add(struct strpool *p, const char *data, size_t len) must_check;
/* The number of a string that is there, or -ENOENT. */
int64_t strpool_find(const struct strpool *p, const char *data, size_t len);
/* The string of a number; the empty string for a number that is out of range. */
struct str strpool_get(const struct strpool *p, uint64_t number);
void strpool_release(struct strpool *p);
