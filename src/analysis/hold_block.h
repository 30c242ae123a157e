/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Up to 128 consecutive holds of a thread in a block. One column follows the other, and each takes
 * as many bits as its largest value in that block needs, so that a column without values takes
 * nothing and each hold can be read without those before it. The collected holds use all columns
 * (hold_memory.c), the short form of a timeline's index the first four (sections.c).
 */
#pragma once

#include "base/cursor.h"
#include "base/macro.h"

#include <endian.h>
#include <string.h>

enum hold_column {
    /* its start, counted from the block's first hold; in the short form, from the hold before it */
    HOLD_AT,
    HOLD_LENGTH,
    HOLD_OBJECT,
    HOLD_UNSURE,
    HOLD_SHORT_COLUMNS, /* the short form ends here */
    HOLD_STACK = HOLD_SHORT_COLUMNS,
    HOLD_WAKE,
    HOLD_FLAGS,
    HOLD_COLUMNS
};

/* Holds of a block, the most bits of a value, and bytes after a block's bits that may be read. */
enum { HOLD_BLOCK = 128, HOLD_BITS_MAX = 56, HOLD_PADDING = 8 };

/* What is before the bits of a block. */
struct hold_block {
    uint64_t start;  /* of its first hold */
    uint64_t latest; /* none of its holds can end later */
    uint8_t n;
    uint8_t width[HOLD_COLUMNS]; /* bits of a value */
};

enum {
    HOLD_BLOCK_BYTES =
        sizeof(struct hold_block) + HOLD_COLUMNS * HOLD_BITS_MAX * HOLD_BLOCK / 8 + HOLD_PADDING
};

/* The holds of a block that is to be written. */
struct hold_values {
    uint64_t start, latest;
    size_t n;
    uint64_t of[HOLD_COLUMNS][HOLD_BLOCK];
};

/* A block that is being read. */
struct hold_bits {
    struct hold_block block;
    uint32_t first[HOLD_COLUMNS]; /* where each column begins, in bits */
    const uint8_t *bits;
};

/*
 * Writes the first `columns` columns of a block to memory that has room for HOLD_BLOCK_BYTES.
 * Returns how many bytes the block takes.
 */
size_t hold_block_put(const struct hold_values *values, int columns, uint8_t *to);
/* Begins to read the next block. Returns false at the end, or when the block is damaged. */
bool hold_block_next(struct cursor *from, struct hold_bits *ret);

static inline uint64_t hold_block_get(const struct hold_bits *b, enum hold_column column, size_t i)
{
    unsigned width = b->block.width[column];
    size_t bit = b->first[column] + i * width;
    uint64_t word;
    memcpy(&word, b->bits + (bit >> 3), sizeof(word));
    return le64toh(word) >> (bit & 7) & ((UINT64_C(1) << width) - 1);
}

/* Reads a column of the whole block: n values into `ret`. */
static inline void hold_block_column(const struct hold_bits *b, enum hold_column column,
                                     uint64_t ret[HOLD_BLOCK])
{
    const unsigned width = b->block.width[column];
    const size_t n = b->block.n;
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    const uint8_t *bits = b->bits;
    if (!width) {
        memset(ret, 0, n * sizeof(*ret));
        return;
    }
    size_t bit = b->first[column];
    for (size_t i = 0; i < n; i++, bit += width) {
        uint64_t word;
        memcpy(&word, bits + (bit >> 3), sizeof(word));
        ret[i] = le64toh(word) >> (bit & 7) & mask;
    }
}
