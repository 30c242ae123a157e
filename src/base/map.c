/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/hash.h"

#include <errno.h>

static size_t find(const struct map *m, uint64_t key)
{
    size_t i = hash_u64(key) & (m->cap - 1);
    while (m->used[i] && m->slots[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

static int grow(struct map *m)
{
    struct map bigger = {.cap = m->cap ? m->cap * 2 : 16, .len = m->len};
    bigger.slots = malloc(bigger.cap * sizeof(*bigger.slots));
    bigger.used = calloc(bigger.cap, 1);
    if (!bigger.slots || !bigger.used) {
        free(bigger.slots);
        free(bigger.used);
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->cap; i++) {
        if (!m->used[i])
            continue;
        size_t to = find(&bigger, m->slots[i].key);
        bigger.slots[to] = m->slots[i];
        bigger.used[to] = 1;
    }
    map_release(m);
    *m = bigger;
    return 0;
}

uint64_t *map_at(struct map *m, uint64_t key, uint64_t initial, bool *ret_added)
{
    size_t i = 0;
    bool have = m->cap && m->used[i = find(m, key)];
    if (!have) {
        if (m->len + 1 > m->cap / 4 * 3) {
            if (grow(m) < 0)
                return NULL;
            i = find(m, key);
        }
        m->slots[i] = (struct map_slot){key, initial};
        m->used[i] = 1;
        m->len++;
    }
    if (ret_added)
        *ret_added = !have;
    return &m->slots[i].value;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
    uint64_t *at = map_at(m, key, value, NULL);
    if (!at)
        return -ENOMEM;
    *at = value;
    return 0;
}

uint64_t *map_get(const struct map *m, uint64_t key)
{
    if (!m->cap)
        return NULL;
    size_t i = find(m, key);
    return m->used[i] ? &m->slots[i].value : NULL;
}

void map_soon(const struct map *m, uint64_t key)
{
    if (!m->cap)
        return;
    size_t i = hash_u64(key) & (m->cap - 1);
    __builtin_prefetch(&m->used[i]);
    __builtin_prefetch(&m->slots[i]);
}

bool map_remove(struct map *m, uint64_t key)
{
    if (!m->cap)
        return false;
    size_t mask = m->cap - 1, hole = find(m, key);
    if (!m->used[hole])
        return false;
    /*
     * Close the hole: move back every entry that its probe sequence would no longer reach (Knuth,
     * 6.4 R).
     */
    for (size_t i = (hole + 1) & mask; m->used[i]; i = (i + 1) & mask) {
        size_t home = hash_u64(m->slots[i].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->used[hole] = 0;
    m->len--;
    return true;
}

void map_clear(struct map *m)
{
    if (m->cap)
        memset(m->used, 0, m->cap);
    m->len = 0;
}

void map_release(struct map *m)
{
    free(m->slots);
    free(m->used);
    *m = (struct map){0};
}

bool map_next(const struct map *m, size_t *i, uint64_t *ret_key, uint64_t *ret_value)
{
    for (; *i < m->cap; ++*i) {
        if (!m->used[*i])
            continue;
        *ret_key = m->slots[*i].key;
        *ret_value = m->slots[*i].value;
        ++*i;
        return true;
    }
    return false;
}
