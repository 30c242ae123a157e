/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of exceptions by class, place and handler. Rows never move and are kept until
 * thrown_rows_release. Callable from any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct thrown_row {
    char *class_name;
    /*
     * caught is NULL if no Java code of the thread catches it, or may be THROWN_NOT_KNOWN
     * (thrown_probes.h)
     */
    char *place, *caught;
    _Atomic uint64_t count;
    /* used only by the dump: counts that were written, and counts that were reported as lost */
    uint64_t written, lost;
};

/* Returns the row of a key that was passed to thrown_row_also, or NULL when there is none. */
struct thrown_row *thrown_row(uint64_t key);
/*
 * Returns the row of these texts, which is created if necessary; takes ownership of the strings.
 * Returns NULL when there are too many rows or one of the first two texts is NULL.
 */
struct thrown_row *thrown_row_of(char *class_name, char *place, char *caught);
/*
 * Makes a row findable by an even key as well, unless there are too many keys or memory is
 * exhausted.
 */
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
