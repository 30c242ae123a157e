/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from 64-bit keys to 64-bit values (open addressing, linear probing). A zeroed map is
 * empty and valid, and every key is allowed. Not for use in signal handlers.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct map_slot {
    uint64_t key, value;
};

struct map {
    struct map_slot *slots; /* cap elements; `used` says which hold a key */
    uint8_t *used;
    size_t len, cap; /* cap is 0 or a power of two; at least a quarter of the slots is free */
};

/* Sets key to value. Returns 0, or -ENOMEM and leaves the map unchanged. */
int map_put(struct map *m, uint64_t key, uint64_t value) must_check;
/*
 * Returns the address of the key's value, which is valid until the next put, or NULL when the key
 * is absent.
 */
uint64_t *map_get(const struct map *m, uint64_t key);
/*
 * Returns the address of the key's value after adding the key with `initial` if it was absent.
 * *ret_added (ret_added may be NULL) says whether it was added. Returns NULL when out of memory.
 */
uint64_t *map_at(struct map *m, uint64_t key, uint64_t initial, bool *ret_added) must_check;
/* Brings the place of a key into the cache, so that many look-ups do not wait for one another. */
void map_soon(const struct map *m, uint64_t key);
/* Removes a key. Returns whether the key was present. */
bool map_remove(struct map *m, uint64_t key);
void map_clear(struct map *m);
void map_release(struct map *m);

/*
 * Visits each entry once, in no particular order: `for (size_t i = 0; map_next(m, &i, &key,
 * &value);)`.
 */
bool map_next(const struct map *m, size_t *i, uint64_t *ret_key, uint64_t *ret_value);
