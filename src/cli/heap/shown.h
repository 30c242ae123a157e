/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

/*
 * Values that are made of several fields: dates, builders of text, large numbers, addresses. False
 * when it is none of these.
 */
bool heap_shown(const struct heap *h, uint64_t i, struct buf *b);
/*
 * Characters as UTF-8, at most `limit` bytes; chars of two bytes or bytes of Latin-1 (or of UTF-16
 * when `wide`).
 */
void heap_put_characters(const struct hprof_item *array, uint64_t count, bool wide, struct buf *b,
                         size_t limit);
