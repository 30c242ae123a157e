/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timeline in a file next to its recording: a cache in the machine's own byte order that is
 * mapped instead of being read.
 */
#pragma once

#include "timeline/timeline.h"

/*
 * Begins to write the timeline for timeline_map; it can be used meanwhile, and timeline_free waits
 * until it is written. key identifies the source by its size and time. If the file cannot be
 * written, the timeline has none.
 */
void timeline_save(struct timeline *t, const char *path, uint64_t key);
/* Returns whether a file that is no index has the place of one, so that none can be written. */
bool timeline_index_is_foreign(const char *path);
/*
 * Maps an index file. Returns 0, or a negative errno; -ESTALE when the key differs, -EPROTO when
 * the file is damaged.
 */
int timeline_map(struct timeline **ret, const char *path, uint64_t key) must_check;
/*
 * Maps an index file like timeline_map, without reading the arrays: references in the tables may be
 * out of range until timeline_check or timeline_check_tables has returned 0, and the contents of
 * nodes may be wrong (node.h).
 */
int timeline_map_unchecked(struct timeline **ret, const char *path, uint64_t key) must_check;
/*
 * Checks a timeline that was mapped unchecked: the references in its tables, and the checksum of
 * its arrays. Returns 0, or -EPROTO when it is damaged.
 */
int timeline_check(const struct timeline *t) must_check;
/*
 * Checks the references in the tables without reading nodes. Returns 0, or -EPROTO when one of them
 * is wrong.
 */
int timeline_check_tables(const struct timeline *t) must_check;
/* Returns whether an unchecked timeline has a node with this number, and the stack of the node. */
bool timeline_node_holds(const struct timeline *t, uint32_t node);
/*
 * Returns a number that other files made from this timeline must match; 0 when it has no index
 * file.
 */
uint64_t timeline_identity(const struct timeline *t);

#define TL_KEEP_(type, name) TL_KEEP_##name,

enum tl_kept { TL_KEPT(TL_KEEP_) TL_KEPT_ARRAYS };

#undef TL_KEEP_

/*
 * Adds an array of n analysis results to the timeline and, if it has an index file, to the file,
 * unless the timeline has this array already. data was malloc'ed; the timeline takes ownership in
 * any case. One call at a time, while nobody else uses these results.
 */
void timeline_keep(struct timeline *t, enum tl_kept which, void *data, size_t n);
/*
 * Adds a copy of n rows of `size` bytes each, like timeline_keep. When out of memory, nothing is
 * kept.
 */
void timeline_keep_copy(struct timeline *t, enum tl_kept which, const void *rows, size_t n,
                        size_t size);
/*
 * Adds an array that need not lie in memory, like timeline_keep: `put` writes its elements into the
 * file, from which the timeline uses them afterwards, and returns the number of elements or a
 * negative errno. A timeline can have only one such array. Returns 0, or a negative errno with
 * nothing changed in the timeline; -ENOENT when it has no file, or has such an array.
 */
int timeline_keep_put(struct timeline *t, enum tl_kept which, int64_t (*put)(int fd, void *arg),
                      void *arg) must_check;
/* Waits until everything has been written, and frees what belongs to the file. */
void timeline_index_close(struct timeline *t);
/*
 * Writes the first 32 bytes that timeline_map expects of a file of this length, for fuzz targets,
 * which make up the rest.
 */
void timeline_index_stamp(uint32_t start[8], uint64_t key, uint64_t len);
