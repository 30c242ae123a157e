/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with pointers as keys, for agents: open addressing, at most half full. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct table {
    void **keys, **values;
    size_t used, room;
};

size_t table_hash(const void *key);
void *table_get(const struct table *t, const void *key);
void table_put(struct table *t, void *key, void *value);
void *table_remove(struct table *t, const void *key);
/* Iterates over all values. *at starts with 0; returns NULL at the end. */
void *table_next(const struct table *t, size_t *at);
