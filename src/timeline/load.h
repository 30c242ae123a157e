/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines from recordings: from ours, and from those of plain JFR, in which whatever is not
 * recorded is unknown or inferred.
 */
#pragma once

#include "base/buf.h"
#include "timeline/timeline.h"

/* The size of a recording from which on its timeline is built while it is read. */
enum { TIMELINE_STREAMED_BYTES = 32 << 20 };

/*
 * Reads a recording. For a large one an index is written next to it (PATH.timeline) and used as
 * long as the recording has the same size and time; if the index cannot be written, the timeline
 * has none. Returns 0, or a negative errno with the reason in why.
 */
int timeline_load(struct timeline **ret, const char *path, struct buf *why) must_check;
/*
 * Loads a recording's timeline from its index, which is mapped and not checked (timeline_check).
 * Returns 0, -ENOENT when the recording has no index, or another error of timeline_map.
 */
int timeline_load_unchecked(struct timeline **ret, const char *path) must_check;
/*
 * Reads a recording without using an index. When the timeline has many nodes, they lie in the file
 * `index`, which timeline_save turns into an index (NULL: in memory). The timeline is built while
 * the recording is read if it has at least streamed_from bytes. Returns 0, or a negative errno with
 * the reason in why.
 */
int timeline_read(struct timeline **ret, const char *path, uint64_t streamed_from,
                  const char *index, struct buf *why) must_check;
/*
 * Reads a part of a flight recording, as if `convert` had written it and the result was read: what
 * came before it is unknown, and waits that reach over its ends are cut there. to_ns = 0: up to the
 * end. streamed_from: as for timeline_read. Sets *ret_whole_ns to the length of the whole
 * recording; a part that begins after that is empty. Returns 0, -ENOEXEC for a file that is no
 * flight recording but another one that timeline_load reads, or another negative errno with the
 * reason in why.
 */
int timeline_read_part(struct timeline **ret, const char *path, uint64_t streamed_from,
                       uint64_t from_ns, uint64_t to_ns, uint64_t *ret_whole_ns,
                       struct buf *why) must_check;
