/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from 64-bit keys to 64-bit values (open addressing, linear probing). Zeroed is empty and valid; every key is
 * allowed. Not for signal handlers.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct map_slot {
    uint64_t key, value;
};

struct map {
    struct map_slot *slots; /* cap of them; `used` says which hold a key */
    uint8_t *used;
    size_t len, cap; /* cap is 0 or a power of two, at least a quarter free */
};

/* Sets key to value; 0 or -ENOMEM, which leaves the map as it was. */
int map_put(struct map *m, uint64_t key, uint64_t value) must_check;
/* Address of the value of key, NULL when absent. Dies at the next put. */
uint64_t *map_get(const struct map *m, uint64_t key);
/* Address of the value of key, added with `initial` when absent; *ret_added (may be NULL) tells. NULL when memory is out. */
uint64_t *map_at(struct map *m, uint64_t key, uint64_t initial, bool *ret_added) must_check;
/* True when the key was there. */
bool map_remove(struct map *m, uint64_t key);
void map_clear(struct map *m);
void map_release(struct map *m);

/* Visits each entry once: `for (size_t i = 0; map_next(m, &i, &key, &value);)`. The order says nothing. */
bool map_next(const struct map *m, size_t *i, uint64_t *ret_key, uint64_t *ret_value);
