/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines from recordings: ours, and those of plain JFR, where what is not recorded is unknown or
 * inferred.
 */
#pragma once

#include "base/buf.h"
#include "model/timeline.h"

/*
 * Reads a recording. A large one leaves an index beside it (PATH.timeline), which is used while the
 * recording has the same size and time; no index is written where that is not allowed. Negative
 * errno, with the reason in why.
 */
int timeline_load(struct timeline **ret, const char *path, struct buf *why) must_check;
/*
 * The same of one whose index lies beside it, which is mapped and not looked at (timeline_check).
 */
int timeline_load_unchecked(struct timeline **ret, const char *path) must_check;
/*
 * The same without an index, but that of many nodes these lie in the file which timeline_save makes
 * one of, with that name (NULL: nowhere). The timeline is built while the recording is read, when
 * that has so many bytes.
 */
int timeline_read(struct timeline **ret, const char *path, uint64_t streamed_from,
                  const char *index, struct buf *why) must_check;
