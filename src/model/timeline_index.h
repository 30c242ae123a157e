/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timeline in a file beside its recording: a cache, in the machine's own byte order, that is
 * mapped and not read.
 */
#pragma once

#include "model/timeline.h"

/*
 * Writes the timeline for timeline_map, while it is used by others; timeline_free waits until it is
 * written. key is what the file must match (size and time of the source). Where no file can be
 * written there is none.
 */
void timeline_save(struct timeline *t, const char *path, uint64_t key);
/* Maps an index file. -ESTALE when the key differs, -EPROTO when it is damaged. */
int timeline_map(struct timeline **ret, const char *path, uint64_t key) must_check;
/*
 * The same without a look at what the arrays hold: they may lead anywhere until timeline_check has
 * said 0.
 */
int timeline_map_unchecked(struct timeline **ret, const char *path, uint64_t key) must_check;
int timeline_check(const struct timeline *t) must_check;
/* All but the nodes: these may still lead anywhere, each until timeline_node_holds has said so. */
int timeline_check_tables(const struct timeline *t) must_check;
/*
 * Whether what a node of an unchecked timeline leads to is there: its thread, context, stack and
 * waker.
 */
bool timeline_node_holds(const struct timeline *t, uint32_t node);
/* A number that other files made of this timeline must match; 0 when it has no index file. */
uint64_t timeline_identity(const struct timeline *t);

#define TL_KEEP_(type, name) TL_KEEP_##name,

enum tl_kept { TL_KEPT(TL_KEEP_) TL_KEPT_ARRAYS };

#undef TL_KEEP_

/*
 * The timeline has this array of what analyses found from now on, and its file too, when it has one
 * without it. data was malloc'ed and is the timeline's now, whatever happens. One at a time, while
 * nobody else asks the timeline.
 */
void timeline_keep(struct timeline *t, enum tl_kept which, void *data, size_t n);
/*
 * The same of an array that need not lie in memory: `put` writes its n elements into the file,
 * where the timeline has them from then on. 0 or negative errno: nothing has changed; -ENOENT when
 * there is no file.
 */
int timeline_keep_put(struct timeline *t, enum tl_kept which, size_t n,
                      int (*put)(int fd, void *arg), void *arg) must_check;
/* Waits for what is being written. */
void timeline_index_close(struct timeline *t);
/* The first 32 bytes of a file of that length, as timeline_map wants them. */
void timeline_index_stamp(uint32_t start[8], uint64_t key, uint64_t len);
