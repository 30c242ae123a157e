/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of a pool of constants. A pool either assigns an id to each new content and finds
 * entries by content, or is `keyed`: its owner chooses the ids. Entries stay until pool_drop. The
 * id of a dropped entry is never assigned again, so it leads to nothing. The caller holds a lock.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"

struct pool_constant {
    uint64_t id, hash;
    uint32_t emitted; /* the number of the chunk that has it; 0: none */
    uint32_t used;    /* the chunk in which it was last used or defined */
    bool stays;       /* it is not dropped */
    uint32_t len;
    uint8_t bytes[];
};

struct pool {
    /* Known by their content: the id is generation << POOL_SLOT_BITS | slot + 1. */
    VEC(struct pool_constant *) slots; /* NULL: free */
    VEC(uint32_t) free;
    struct pool_constant **index; /* open addressing by content */
    size_t index_size;            /* 0 or a power of two, at least twice the number of entries */
    uint64_t generation;          /* how often entries were dropped */
    struct map keyed;             /* id -> struct pool_constant * */
    uint64_t bytes;               /* of the entries */
};

enum { POOL_SLOT_BITS = 28 };

/*
 * Returns the entry with this content, which is added if it is new. Returns NULL when out of memory
 * or ids. chunk: the number of the chunk that is being written.
 */
struct pool_constant *pool_intern(struct pool *p, const void *bytes, size_t len,
                                  uint32_t chunk) must_check;
/*
 * Adds or replaces the entry with an id that the owner chose, and returns it. Returns NULL when out
 * of memory.
 */
struct pool_constant *pool_put(struct pool *p, uint64_t id, const void *bytes, size_t len,
                               uint32_t chunk) must_check;

/* Returns the number of entries that are known by their content. */
static inline size_t pool_entries(const struct pool *p)
{
    return p->slots.len - p->free.len;
}

/* Returns the entry with an id; NULL when the pool has none. */
struct pool_constant *pool_get(const struct pool *p, uint64_t id);
/* Drops entries that do not stay and that no chunk from `before` on has used or contains. */
void pool_drop(struct pool *p, uint32_t before);
void pool_release(struct pool *p);
