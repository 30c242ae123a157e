/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

/*
 * Appends a value that consists of several fields: dates, string builders, large numbers,
 * addresses. Returns false when the object is none of these.
 */
bool heap_shown(const struct heap *h, uint64_t i, struct buf *b);
/*
 * Appends characters as UTF-8, at most `limit` bytes. The array holds chars of two bytes, or bytes
 * in Latin-1 (in UTF-16 when `wide`).
 */
void heap_put_characters(const struct hprof_item *array, uint64_t count, bool wide, struct buf *b,
                         size_t limit);
