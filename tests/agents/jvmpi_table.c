/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi_table.h"

size_t table_hash(const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h ^ h >> 32);
}

/* Returns the index of a key, or of the empty slot for it. */
static size_t place(const struct table *t, const void *key)
{
    size_t i = table_hash(key) & (t->room - 1);
    while (t->keys[i] && t->keys[i] != key)
        i = (i + 1) & (t->room - 1);
    return i;
}

void *table_get(const struct table *t, const void *key)
{
    return t->room && key ? t->values[place(t, key)] : NULL;
}

void table_put(struct table *t, void *key, void *value)
{
    if (t->used * 2 >= t->room) {
        struct table grown = {.room = t->room ? t->room * 2 : 1024, .used = t->used};
        grown.keys = calloc(grown.room, sizeof(void *));
        grown.values = calloc(grown.room, sizeof(void *));
        for (size_t i = 0; i < t->room; i++) {
            if (!t->keys[i])
                continue;
            size_t to = place(&grown, t->keys[i]);
            grown.keys[to] = t->keys[i];
            grown.values[to] = t->values[i];
        }
        free(t->keys);
        free(t->values);
        *t = grown;
    }
    size_t i = place(t, key);
    t->used += !t->keys[i];
    t->keys[i] = key;
    t->values[i] = value;
}

void *table_remove(struct table *t, const void *key)
{
    if (!t->room || !key)
        return NULL;
    size_t i = place(t, key), mask = t->room - 1;
    void *value = t->values[i];
    if (!t->keys[i])
        return NULL;
    t->used--;
    for (size_t k = (i + 1) & mask; t->keys[k]; k = (k + 1) & mask) {
        size_t wanted = table_hash(t->keys[k]) & mask;
        if (((k - wanted) & mask) < ((k - i) & mask))
            continue;
        t->keys[i] = t->keys[k];
        t->values[i] = t->values[k];
        i = k;
    }
    t->keys[i] = t->values[i] = NULL;
    return value;
}

void *table_next(const struct table *t, size_t *at)
{
    for (; *at < t->room; (*at)++)
        if (t->keys[*at])
            return t->values[(*at)++];
    return NULL;
}
