/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a replay cannot know, as bounds. A recording shows no wait for a lock that was free, nor for
 * a thread that had already ended. Such locks and joins may hold threads up once sections take
 * another time. Nor does it show sections that no thread waited for, unless acquisitions were
 * recorded.
 */
#pragma once

#include "analysis/replay.h"

/*
 * Sets *ret to what `what` scales and, in addition, the time in all methods that were seen to take
 * its locks, where acquisitions of these were not recorded. *ret_more is false if that adds
 * nothing. `what` must outlive *ret, which needs possible_release. Returns 0 or -ENOMEM.
 */
int possible_sections(const struct timeline *t, const struct scaled *what, struct scaled *ret,
                      bool *ret_more) must_check;
void possible_release(struct scaled *s);

/*
 * Computes two parts of the time between two moments: when a thread of the program was inside what
 * is scaled, and when in addition none of them did anything else. If what did not happen at the
 * same time in the recording never does, the gain from shorter sections is that of the second
 * part, and the loss from longer ones that of the first part, whatever other locks there are. Waits
 * of threads that have nothing to do count as nothing. Returns 0 or -ENOMEM.
 */
int possible_alone(const struct timeline *t, const struct scaled *what, enum hold_ends ends,
                   uint64_t from, uint64_t to, uint64_t *ret_inside,
                   uint64_t *ret_alone) must_check;
/* Returns whether the timeline is small enough for possible_alone. */
bool possible_counts(const struct timeline *t);
