/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of exceptions by class, place and handler. Rows never move; they are kept until
 * thrown_rows_release. Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct thrown_row {
    char *class_name;
    char *place, *caught; /* caught is NULL: by no Java code of the thread */
    _Atomic uint64_t count;
    uint64_t written; /* the dump's own */
};

/* The row of a key that thrown_row_also gave it, NULL when there is none. */
struct thrown_row *thrown_row(uint64_t key);
/*
 * The row of these texts, made when it is new; takes the strings over. NULL when there are too
 * many, or one of the first two is NULL.
 */
struct thrown_row *thrown_row_of(char *class_name, char *place, char *caught);
/* A row is found by an even key too; not when there are too many, or memory is out. */
void thrown_row_also(const struct thrown_row *row, uint64_t key);
/* Rows 0 .. thrown_rows() - 1. */
unsigned thrown_rows(void);
struct thrown_row *thrown_row_at(unsigned i);
void thrown_rows_release(void);

static inline uint64_t thrown_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}
