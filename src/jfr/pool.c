/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/pool.h"

#include "base/hash.h"

#define SLOTS_MAX ((UINT32_C(1) << POOL_SLOT_BITS) - 1)

static size_t size_of(const struct pool_constant *c)
{
    return sizeof(*c) + c->len;
}

static struct pool_constant *constant_new(struct pool *p, const void *bytes, size_t len,
                                          uint32_t chunk)
{
    struct pool_constant *c = len > UINT32_MAX ? NULL : malloc(sizeof(*c) + len);
    if (!c)
        return NULL;
    *c = (struct pool_constant){.used = chunk, .len = (uint32_t)len};
    if (len)
        memcpy(c->bytes, bytes, len);
    p->bytes += size_of(c);
    return c;
}

static void constant_free(struct pool *p, struct pool_constant *c)
{
    p->bytes -= c ? size_of(c) : 0;
    free(c);
}

static size_t find(const struct pool *p, uint64_t hash, const void *bytes, size_t len)
{
    size_t mask = p->index_size - 1, i = hash & mask;
    for (const struct pool_constant *c; (c = p->index[i]); i = (i + 1) & mask)
        if (c->hash == hash && c->len == len && (len == 0 || memcmp(c->bytes, bytes, len) == 0))
            break;
    return i;
}

static void fill_index(struct pool *p)
{
    memset(p->index, 0, p->index_size * sizeof(*p->index));
    for (size_t i = 0; i < p->slots.len; i++) {
        struct pool_constant *c = p->slots.data[i];
        if (c)
            p->index[find(p, c->hash, c->bytes, c->len)] = c;
    }
}

static bool grow_index(struct pool *p)
{
    size_t size = MAX(2 * p->index_size, (size_t)64);
    struct pool_constant **index = calloc(size, sizeof(struct pool_constant *));
    if (!index)
        return false;
    free(p->index);
    p->index = index;
    p->index_size = size;
    fill_index(p);
    return true;
}

struct pool_constant *pool_intern(struct pool *p, const void *bytes, size_t len, uint32_t chunk)
{
    if (2 * (pool_entries(p) + 1) > p->index_size && !grow_index(p))
        return NULL;
    uint64_t hash = hash_bytes(bytes, len);
    size_t at = find(p, hash, bytes, len);
    if (p->index[at]) {
        p->index[at]->used = chunk;
        return p->index[at];
    }
    /* Makes room in both vectors, so that dropping entries later cannot fail. */
    size_t slots = p->slots.len + 1;
    if (!p->free.len &&
        (slots > SLOTS_MAX || vec_reserve(&p->slots, slots) || vec_reserve(&p->free, slots)))
        return NULL;
    struct pool_constant *c = constant_new(p, bytes, len, chunk);
    if (!c)
        return NULL;
    if (!p->free.len)
        p->free.data[p->free.len++] = (uint32_t)p->slots.len++;
    uint32_t slot = p->free.data[--p->free.len];
    p->slots.data[slot] = p->index[at] = c;
    c->hash = hash;
    c->id = p->generation << POOL_SLOT_BITS | (slot + 1);
    return c;
}

struct pool_constant *pool_put(struct pool *p, uint64_t id, const void *bytes, size_t len,
                               uint32_t chunk)
{
    struct pool_constant *c = constant_new(p, bytes, len, chunk);
    uint64_t *place = c ? map_at(&p->keyed, id, 0, NULL) : NULL;
    if (!place) {
        constant_free(p, c);
        return NULL;
    }
    constant_free(p, (struct pool_constant *)(uintptr_t)*place);
    c->id = id;
    *place = (uintptr_t)c;
    return c;
}

struct pool_constant *pool_get(const struct pool *p, uint64_t id)
{
    if (p->keyed.len) {
        const uint64_t *found = map_get(&p->keyed, id);
        return found ? (struct pool_constant *)(uintptr_t)*found : NULL;
    }
    uint64_t slot = (id & SLOTS_MAX) - 1;
    struct pool_constant *c = slot < p->slots.len ? p->slots.data[slot] : NULL;
    return c && c->id == id ? c : NULL;
}

static bool is_old(const struct pool_constant *c, uint32_t before)
{
    return !c->stays && MAX(c->used, c->emitted) < before;
}

static void drop_keyed(struct pool *p, uint32_t before)
{
    VEC(uint64_t) gone = {0};
    uint64_t id, value;
    for (size_t i = 0; map_next(&p->keyed, &i, &id, &value);)
        if (is_old((struct pool_constant *)(uintptr_t)value, before) && vec_push(&gone, id))
            break; /* out of memory; the next call drops them */
    for (size_t i = 0; i < gone.len; i++) {
        constant_free(p, (struct pool_constant *)(uintptr_t)*map_get(&p->keyed, gone.data[i]));
        map_remove(&p->keyed, gone.data[i]);
    }
    vec_release(&gone);
}

void pool_drop(struct pool *p, uint32_t before)
{
    size_t left = pool_entries(p);
    drop_keyed(p, before);
    for (size_t i = 0; i < p->slots.len; i++) {
        struct pool_constant *c = p->slots.data[i];
        if (!c || !is_old(c, before))
            continue;
        constant_free(p, c);
        p->slots.data[i] = NULL;
        p->free.data[p->free.len++] = (uint32_t)i;
    }
    if (pool_entries(p) == left)
        return;
    p->generation++;
    fill_index(p);
}

void pool_release(struct pool *p)
{
    uint64_t id, value;
    for (size_t i = 0; map_next(&p->keyed, &i, &id, &value);)
        free((void *)(uintptr_t)value);
    map_release(&p->keyed);
    for (size_t i = 0; i < p->slots.len; i++)
        free(p->slots.data[i]);
    vec_release(&p->slots);
    vec_release(&p->free);
    free(p->index);
    *p = (struct pool){0};
}
