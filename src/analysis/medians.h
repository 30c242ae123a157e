/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Medians of numbers, by the kinds to which the numbers belong. A zeroed struct is empty and valid.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"

struct medians {
    VEC(struct median_kind) kinds;
    struct map kind_of; /* by key: place in kinds */
    VEC(struct median_number) numbers;
};

/* Adds a number of the kind with this key. Returns 0 or -ENOMEM. */
int medians_add(struct medians *m, uint64_t key, uint64_t number) must_check;
/* Sets the median of each kind in a map by key. Returns 0 or -ENOMEM. */
int medians_find(const struct medians *m, struct map *ret) must_check;
void medians_release(struct medians *m);
