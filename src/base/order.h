/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Compares for qsort, which then sorts uint64_t in ascending order. */
static inline int order_ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
