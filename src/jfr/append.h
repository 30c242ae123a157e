/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the file of another recorder to a recording of ours. Readers of JDK 25 and later convert the
 * times of all chunks of a file by the clock of its first one, so the added chunks get that clock:
 * the times of their events are converted.
 */
#pragma once

#include "jfr/reader.h"

/*
 * Appends the recording in `from`, whole or not at all, but without its events of the given types
 * (an empty table: with all of them); `to` is a closed recording. A chunk whose events cannot be
 * read is copied as it is. Returns 0, -EBADMSG when `from` is no recording, or another negative
 * errno.
 */
int jfr_append(int to, int from, const struct rec_select *without) must_check;
