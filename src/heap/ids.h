/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers the objects of a dump 0 .. count-1 in order of their ids (addresses), and finds them again. Addresses that lie close
 * together are a bitmap with counts (half a byte an object); others a sorted list with a directory (nine bytes an object).
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

#define HEAP_NONE UINT64_MAX

enum { HEAP_LINE_BITS = 512 };

/* All memory is the owner's: of the build (heap_ids_release) or of a mapped index. */
struct heap_ids {
    uint64_t min, max, count;
    uint32_t shift;   /* ids are min + k << shift */
    uint32_t bitmap;  /* 1: lines and ranks; 0: sorted and buckets */
    uint64_t lines_n; /* lines of the bitmap; buckets of the list */
    unsigned bucket_shift;
    uint64_t *lines, *ranks;    /* ranks[k]: objects before line k; lines_n + 1 of them */
    uint64_t *sorted, *buckets; /* buckets[k]: first in sorted with (id - min) >> bucket_shift >= k; lines_n + 1 */
};

/* Chooses the form for ids between min and max, of which `bits` is the OR of (id - min), and allocates. 0 or -ENOMEM. */
int heap_ids_init(struct heap_ids *m, uint64_t min, uint64_t max, uint64_t bits, uint64_t upper_count) must_check;
/* Adds one id; may be called by several threads. `slot` is a number of the caller's, distinct for each call, below upper_count.
 */
void heap_ids_add(struct heap_ids *m, uint64_t id, uint64_t slot);
/* Ends adding; then count holds and the functions below work. 0 or -ENOMEM. */
int heap_ids_seal(struct heap_ids *m) must_check;
void heap_ids_release(struct heap_ids *m);

uint64_t heap_ids_find_sorted(const struct heap_ids *m, uint64_t id);
/* The id of a number below count. */
uint64_t heap_ids_at(const struct heap_ids *m, uint64_t number);

/* The number of an id, HEAP_NONE when there is none. */
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
