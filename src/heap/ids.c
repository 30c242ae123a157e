/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/ids.h"

#include "heap/memory.h"

#include <errno.h>
#include <string.h>

int heap_ids_init(struct heap_ids *m, uint64_t min, uint64_t max, uint64_t bits,
                  uint64_t upper_count)
{
    *m = (struct heap_ids){.min = min,
                           .max = max,
                           .shift = bits ? (unsigned)__builtin_ctzll(bits) : 0,
                           .count = upper_count};
    uint64_t lines = ((max - min) >> m->shift) / HEAP_LINE_BITS + 1;
    m->bitmap = lines <= (upper_count * 8 + (1 << 20)) / 72;
    if (m->bitmap) {
        m->lines_n = lines;
        m->lines = heap_memory(lines * 64);
        m->ranks = heap_memory((lines + 1) * 8);
        return m->lines && m->ranks ? 0 : -ENOMEM;
    }
    m->lines_n = upper_count / 8 + 2; /* so that shifts of up to 63 bits suffice for any range */
    m->bucket_shift = 0;
    while ((max - min) >> m->bucket_shift >= m->lines_n)
        m->bucket_shift++;
    m->sorted = heap_memory(upper_count * 8);
    m->buckets = heap_memory((m->lines_n + 1) * 8);
    return m->sorted && m->buckets ? 0 : -ENOMEM;
}

/* Sorts by bytes, the least significant first; skips the bytes that all ids share. */
static int radix_sort(uint64_t *ids, uint64_t n, uint64_t range)
{
    uint64_t *other = heap_memory(n * 8), *from = ids, *to = other;
    if (!other)
        return -ENOMEM;
    for (unsigned shift = 0; shift < 64 && range >> shift; shift += 8) {
        uint64_t at[257] = {0};
        for (uint64_t i = 0; i < n; i++)
            at[((from[i] >> shift) & 255) + 1]++;
        for (int b = 0; b < 256; b++)
            at[b + 1] += at[b];
        for (uint64_t i = 0; i < n; i++)
            to[at[(from[i] >> shift) & 255]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != ids)
        memcpy(ids, from, n * 8);
    heap_memory_free(other);
    return 0;
}

static int seal_sorted(struct heap_ids *m)
{
    bool ordered = true;
    for (uint64_t i = 0; i < m->count; i++) {
        m->sorted[i] -= m->min;
        ordered = ordered && (i == 0 || m->sorted[i - 1] <= m->sorted[i]);
    }
    if (!ordered && radix_sort(m->sorted, m->count, m->max - m->min) < 0)
        return -ENOMEM;
    uint64_t n = 0, bucket = 0;
    for (uint64_t i = 0; i < m->count; i++) {
        uint64_t id = m->sorted[i];
        if (n && id + m->min == m->sorted[n - 1])
            continue; /* a duplicate */
        while (bucket <= id >> m->bucket_shift)
            m->buckets[bucket++] = n;
        m->sorted[n++] = id + m->min;
    }
    while (bucket <= m->lines_n)
        m->buckets[bucket++] = n;
    m->count = n;
    return 0;
}

int heap_ids_seal(struct heap_ids *m)
{
    if (!m->bitmap)
        return seal_sorted(m);
    uint64_t n = 0;
    for (uint64_t line = 0; line < m->lines_n; line++) {
        m->ranks[line] = n;
        for (int i = 0; i < 8; i++)
            n += heap_ids_bits_(m->lines[line * 8 + (unsigned)i]);
    }
    m->ranks[m->lines_n] = n;
    m->count = n;
    return 0;
}

void heap_ids_release(struct heap_ids *m)
{
    heap_memory_free(m->lines);
    heap_memory_free(m->ranks);
    heap_memory_free(m->sorted);
    heap_memory_free(m->buckets);
    *m = (struct heap_ids){0};
}

int heap_finder_init(struct heap_finder *f, const struct heap_ids *ids)
{
    *f = (struct heap_finder){.ids = ids};
    if (!ids->bitmap)
        return 0;
    f->words = heap_memory(ids->lines_n * 8 * sizeof(*f->words));
    if (!f->words)
        return -ENOMEM;
    uint64_t before = 0;
    for (uint64_t i = 0; i < ids->lines_n * 8; i++) {
        f->words[i] = (struct heap_finder_word){ids->lines[i], before};
        before += heap_ids_bits_(ids->lines[i]);
    }
    return 0;
}

void heap_finder_release(struct heap_finder *f)
{
    heap_memory_free(f->words);
    f->words = NULL;
}

uint64_t heap_ids_find_sorted(const struct heap_ids *m, uint64_t id)
{
    uint64_t bucket = (id - m->min) >> m->bucket_shift;
    uint64_t low = MIN(m->buckets[bucket], m->count), high = MIN(m->buckets[bucket + 1], m->count);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (m->sorted[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->count && m->sorted[low] == id ? low : HEAP_NONE;
}

uint64_t heap_ids_at(const struct heap_ids *m, uint64_t number)
{
    if (!m->bitmap)
        return m->sorted[number];
    uint64_t low = 0, high = m->lines_n; /* find the last line with ranks[line] <= number */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (m->ranks[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    uint64_t left = number - m->ranks[low];
    for (unsigned i = 0; i < 8; i++) {
        uint64_t word = m->lines[low * 8 + i];
        unsigned here = heap_ids_bits_(word);
        if (left >= here) {
            left -= here;
            continue;
        }
        while (left--)
            word &= word - 1;
        return m->min +
               ((low * HEAP_LINE_BITS + i * 64 + (unsigned)__builtin_ctzll(word)) << m->shift);
    }
    return m->min; /* happens only when an index is damaged */
}
