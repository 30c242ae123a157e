/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for locks whose owners the recording does not show. What such an owner did meanwhile is
 * attributed to none of the lock's sections, so that their time on the path, and the gain from
 * shortening them, are underestimated.
 */
#pragma once

#include "base/vec.h"
#include "timeline/timeline.h"

/* One row for each class with such waits, the longest first. */
struct unknown_table {
    VEC(struct tl_unowned) rows;
};

/*
 * Counts the waits that overlap a range in ns; to = 0: no upper end. The timeline keeps the result
 * for the whole recording. Returns 0 or -ENOMEM.
 */
int unknown_owners_find(struct timeline *t, uint64_t from, uint64_t to,
                        struct unknown_table *ret) must_check;
/*
 * Returns whether these waits took long enough for the answers about their locks to mention them: a
 * thousandth of the recording.
 */
bool unknown_owners_matter(const struct timeline *t, uint64_t ns);
/* Returns the row of a class, or NULL. */
const struct tl_unowned *unknown_owners_of(const struct unknown_table *u, uint32_t class);
