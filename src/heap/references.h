/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the references of all objects, and where each object lies, its class and its size. */
#pragma once

#include "heap/dump.h"
#include "heap/edges.h"
#include "heap/ids.h"

/* Sections of the index by object number (heap/index.h), which the caller owns. */
struct heap_columns {
    uint32_t *offset_low;
    uint8_t *offset_high;
    void *class_of; /* u32 if class_wide, else u16 */
    void *sizes; /* shallow sizes, u64 if sizes_wide, else u32, in units of 1 << size_shift bytes */
    bool class_wide, sizes_wide;
    unsigned size_shift;
};

/*
 * Fills `to` and initialises and fills `e`, on as many threads as the dump has. The caller releases
 * e, also after an error. Returns 0 or a negative errno.
 */
int heap_references_read(const struct heap_dump *d, const struct heap_ids *ids, struct edges *e,
                         const struct heap_columns *to) must_check;
