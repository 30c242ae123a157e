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
 * upper_count: the number of ids or more. Returns 0 or -ENOMEM.
 */
int heap_ids_init(struct heap_ids *m, uint64_t min, uint64_t max, uint64_t bits,
                  uint64_t upper_count) must_check;

/*
 * Adds ids. Each thread has one. Neighbours mostly lie in the same word of the bitmap, so their
 * bits are collected first: an atomic operation costs more than all else here.
 */
struct heap_ids_adder {
    struct heap_ids *ids;
    uint64_t word, bits; /* the bits that `word` of the bitmap has yet to get */
};

/* `slot` is a number below upper_count that differs in each call, of all threads. */
static inline void heap_ids_add(struct heap_ids_adder *a, uint64_t id, uint64_t slot)
{
    struct heap_ids *m = a->ids;
    if (unlikely(!m->bitmap)) {
        m->sorted[slot] = id;
        return;
    }
    uint64_t bit = (id - m->min) >> m->shift;
    if (unlikely(bit / 64 != a->word)) {
        if (a->bits)
            __atomic_fetch_or(&m->lines[a->word], a->bits, __ATOMIC_RELAXED);
        a->word = bit / 64;
        a->bits = 0;
    }
    a->bits |= UINT64_C(1) << (bit % 64);
}

/* Adds the ids that the adder has collected. Call it after the thread's last heap_ids_add. */
static inline void heap_ids_add_end(struct heap_ids_adder *a)
{
    if (a->bits)
        __atomic_fetch_or(&a->ids->lines[a->word], a->bits, __ATOMIC_RELAXED);
    a->bits = 0;
}

/*
 * Ends adding ids. From then on count is valid and the functions below work. Returns 0 or -ENOMEM.
 */
int heap_ids_seal(struct heap_ids *m) must_check;
void heap_ids_release(struct heap_ids *m);

/* Does what heap_ids_find does for a list and an id from min to max. */
uint64_t heap_ids_find_sorted(const struct heap_ids *m, uint64_t id);
/* Returns the id for a number below count. */
uint64_t heap_ids_at(const struct heap_ids *m, uint64_t number);

/*
 * Counts the set bits. The baseline of x86-64 has no instruction, and the compiler calls a
 * function.
 */
static inline unsigned heap_ids_bits_(uint64_t v)
{
    v -= v >> 1 & UINT64_C(0x5555555555555555);
    v = (v & UINT64_C(0x3333333333333333)) + (v >> 2 & UINT64_C(0x3333333333333333));
    v = (v + (v >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(v * UINT64_C(0x0101010101010101) >> 56);
}

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
    uint64_t rank = m->ranks[line] + heap_ids_bits_(words[word] & (mask - 1));
    for (unsigned i = 0; i < word; i++)
        rank += heap_ids_bits_(words[i]);
    return rank;
}

/*
 * Finds many numbers in random order, while an index is built: a look-up takes one cache line,
 * which can be prefetched, and one count of bits. Uses twice the memory of the bitmap.
 */
struct heap_finder {
    const struct heap_ids *ids;

    /* By word of the bitmap: its bits, and the number of objects before it. NULL for a list. */
    struct heap_finder_word {
        uint64_t bits, before;
    } * words;
};

/*
 * Prepares a finder for sealed ids, which must exist as long as the finder. Returns 0 or -ENOMEM.
 */
int heap_finder_init(struct heap_finder *f, const struct heap_ids *ids) must_check;
void heap_finder_release(struct heap_finder *f);

/* Fetches into the cache what heap_finder_find needs for this id. */
static inline void heap_finder_expect(const struct heap_finder *f, uint64_t id)
{
    const struct heap_ids *m = f->ids;
    if (likely(f->words && id >= m->min && id <= m->max))
        __builtin_prefetch(&f->words[(id - m->min) >> m->shift >> 6]);
}

/* Returns the number of an id, or HEAP_NONE. */
static inline uint64_t heap_finder_find(const struct heap_finder *f, uint64_t id)
{
    const struct heap_ids *m = f->ids;
    if (unlikely(!f->words))
        return heap_ids_find(m, id);
    uint64_t bit = (id - m->min) >> m->shift;
    if (unlikely(id < m->min || id > m->max || (bit << m->shift) != id - m->min))
        return HEAP_NONE;
    struct heap_finder_word word = f->words[bit / 64];
    uint64_t mask = UINT64_C(1) << (bit % 64);
    if (unlikely(!(word.bits & mask)))
        return HEAP_NONE;
    return word.before + heap_ids_bits_(word.bits & (mask - 1));
}
