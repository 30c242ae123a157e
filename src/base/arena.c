/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK_SIZE = 64 * 1024 };

struct arena_block {
    struct arena_block *before;
    alignas(max_align_t) char data[];
};

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if ((size_t)(a->end - a->at) < size) {
        size_t want = size > BLOCK_SIZE / 4 ? size : BLOCK_SIZE - sizeof(struct arena_block);
        struct arena_block *b = malloc(sizeof(*b) + want);
        if (!b)
            return NULL;
        a->bytes += sizeof(*b) + want;
        if (want == size && a->last) {
            /*
             * A large allocation gets a block of its own, which is linked in after the current
             * block so that the rest of the current one remains usable.
             */
            b->before = a->last->before;
            a->last->before = b;
            return b->data;
        }
        b->before = a->last;
        a->last = b;
        a->at = b->data;
        a->end = b->data + want;
    }
    void *p = a->at;
    a->at += size;
    return p;
}

void *arena_zalloc(struct arena *a, size_t size)
{
    void *p = arena_alloc(a, size);
    return p ? memset(p, 0, size) : NULL;
}

char *arena_copy(struct arena *a, const void *bytes, size_t len)
{
    char *p = len < SIZE_MAX / 2 ? arena_alloc(a, len + 1) : NULL;
    if (!p)
        return NULL;
    if (len)
        memcpy(p, bytes, len);
    p[len] = 0;
    return p;
}

void arena_release(struct arena *a)
{
    for (struct arena_block *b = a->last, *before; b; b = before) {
        before = b->before;
        free(b);
    }
    *a = (struct arena){0};
}
