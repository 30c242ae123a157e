/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hold_block.h"

/* Bits that are written one value after the other. */
struct bit_writer {
    uint8_t *to;
    uint64_t word; /* the last bits, which are not written yet; fewer than 64 between two values */
    unsigned bits;
};

static void put_word(const struct bit_writer *w)
{
    uint64_t word = htole64(w->word);
    memcpy(w->to, &word, sizeof(word));
}

static void put_column(struct bit_writer *to, const uint64_t *values, size_t n, unsigned width)
{
    enum { WORD_BITS = 64 };

    struct bit_writer w = *to; /* which values cannot overlap */
    for (size_t i = 0; width && i < n; i++) {
        w.word |= values[i] << w.bits;
        w.bits += width;
        if (w.bits < WORD_BITS)
            continue;
        put_word(&w);
        w.to += sizeof(w.word);
        w.bits -= WORD_BITS;
        w.word = w.bits ? values[i] >> (width - w.bits) : 0;
    }
    *to = w;
}

static unsigned width_of(const uint64_t *values, size_t n)
{
    uint64_t all = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < n; i++)
        all |= values[i];
    return all ? 64 - (unsigned)__builtin_clzll(all) : 0;
}

size_t hold_block_put(const struct hold_values *values, int columns, uint8_t *to)
{
    struct hold_block b = {
        .start = values->start, .latest = values->latest, .n = (uint8_t)values->n};
    struct bit_writer w = {.to = to + sizeof(b)};
    for (int c = 0; c < columns; c++) {
        unsigned width = width_of(values->of[c], values->n);
        b.width[c] = (uint8_t)width;
        put_column(&w, values->of[c], values->n, width);
    }
    memcpy(to, &b, sizeof(b));
    put_word(&w);
    w.to += (w.bits + 7) / 8;
    memset(w.to, 0, HOLD_PADDING);
    return (size_t)(w.to - to) + HOLD_PADDING;
}

bool hold_block_next(struct cursor *from, struct hold_bits *ret)
{
    const uint8_t *head = cursor_take(from, sizeof(ret->block));
    uint32_t bits = 0;
    if (!head)
        return false;
    memcpy(&ret->block, head, sizeof(ret->block));
    bool good = ret->block.n > 0 && ret->block.n <= HOLD_BLOCK;
    for (int c = 0; c < HOLD_COLUMNS; c++) {
        good &= ret->block.width[c] <= HOLD_BITS_MAX;
        ret->first[c] = bits;
        bits += (uint32_t)ret->block.width[c] * ret->block.n;
    }
    ret->bits = good ? cursor_take(from, (bits + 7) / 8 + HOLD_PADDING) : NULL;
    return ret->bits != NULL;
}
