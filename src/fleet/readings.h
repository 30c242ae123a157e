/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a series' readings among its samples in proportion to weight. */
#pragma once

#include <stdint.h>

struct readings {
    uint64_t all; /* 0: each sample is one */
    double each;  /* for a unit of weight */
    double weight;
    uint64_t given;
};

/* Returns the number of readings that belong to the next sample. */
static inline uint64_t readings_next(struct readings *r, uint64_t weight)
{
    if (!r->all)
        return 1;
    r->weight += (double)weight;
    uint64_t n = (uint64_t)(r->weight * r->each + 0.5) - r->given;
    r->given += n;
    return n;
}
