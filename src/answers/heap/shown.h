/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

/*
 * Appends the value of an object that consists of several fields: dates, string builders, large
 * numbers, addresses. Returns false when the object is none of these.
 */
bool heap_shown(const struct heap *h, uint64_t i, struct buf *b);
