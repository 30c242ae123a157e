/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers the objects of a dump from 0 to count - 1 in the order of their ids (addresses) and finds
 * ids and numbers. Dense addresses are stored as a bitmap with counts (half a byte for each
 * object), others as a sorted list with a directory (nine bytes for each object).
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

#define HEAP_NONE UINT64_MAX

enum { HEAP_LINE_BITS = 512 };

/*
 * The owner is either the build, which calls heap_ids_release, or a mapped index; it owns all
 * memory.
 */
struct heap_ids {
    uint64_t min, max, count;
    uint32_t shift;   /* ids are min + k << shift */
    uint32_t bitmap;  /* 1: lines and ranks are used; 0: sorted and buckets */
    uint64_t lines_n; /* the number of lines of the bitmap, or of buckets of the list */
    unsigned bucket_shift;
    /* ranks[k]: the number of objects before line k; lines_n + 1 elements */
    uint64_t *lines, *ranks;
    /*
     * buckets[k]: the first index in `sorted` with (id - min) >> bucket_shift >= k; lines_n + 1
     * elements.
     */
    uint64_t *sorted, *buckets;
};

/*
 * Chooses the form for ids from min to max and allocates it. `bits` is the OR of all (id - min).
 * Returns 0 or -ENOMEM.
 */
int heap_ids_init(struct heap_ids *m, uint64_t min, uint64_t max, uint64_t bits,
                  uint64_t upper_count) must_check;
/*
 * Adds one id. Several threads may call this. `slot` is a number below upper_count that differs in
 * each call.
 */
void heap_ids_add(struct heap_ids *m, uint64_t id, uint64_t slot);
/*
 * Ends adding ids. From then on count is valid and the functions below work. Returns 0 or -ENOMEM.
 */
int heap_ids_seal(struct heap_ids *m) must_check;
void heap_ids_release(struct heap_ids *m);

uint64_t heap_ids_find_sorted(const struct heap_ids *m, uint64_t id);
/* Returns the id for a number below count. */
uint64_t heap_ids_at(const struct heap_ids *m, uint64_t number);

/* Returns the number of an id, or HEAP_NONE. */
static inline uint64_t heap_ids_find(const struct heap_ids *m, uint64_t id)
{
    if (id < m->min || id > m->max)
        return HEAP_NONE;
    if (unlikely(!m->bitmap))
        return heap_ids_find_sorted(m, id);
    uint64_t bit = (id - m->min) >> m->shift, line = bit / HEAP_LINE_BITS;
    if (unlikely((bit << m->shift) != id - m->min))
        return HEAP_NONE;
    const uint64_t *words = m->lines + line * 8;
    unsigned word = (unsigned)(bit / 64) % 8;
    uint64_t mask = UINT64_C(1) << (bit % 64);
    if (unlikely(!(words[word] & mask)))
        return HEAP_NONE;
    uint64_t rank = m->ranks[line] + (unsigned)__builtin_popcountll(words[word] & (mask - 1));
    for (unsigned i = 0; i < word; i++)
        rank += (unsigned)__builtin_popcountll(words[i]);
    return rank;
}
