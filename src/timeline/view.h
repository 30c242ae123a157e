/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a timeline that can be drawn in a given width. Each thread's states lie together, and
 * above them a pyramid of marks with sums of time by kind, so that the cost of a row of pixels
 * depends on its pixels and not on the number of states. A view in a file is mapped and opens at
 * once.
 */
#pragma once

#include "base/buf.h"
#include "timeline/timeline.h"

struct timeline_view;

/* Makes a view from all nodes of t, which must outlive the view. Returns 0 or -ENOMEM. */
int timeline_view_new(struct timeline_view **ret, const struct timeline *t) must_check;
/*
 * Saves a view in a file, together with data that the caller wants to find there again. Returns 0,
 * or a negative errno; -EEXIST when the path is that of a file of another kind.
 */
int timeline_view_save(struct timeline_view *v, const char *path, uint64_t key, const void *rest,
                       size_t len) must_check;
/*
 * Maps a file of timeline_view_save. No part of it is read before it is shown, and only those nodes
 * of t that are shown are examined. t need not have been checked (timeline_map_unchecked) and must
 * outlive the view, which owns the caller's data. Returns 0, -ESTALE when the key differs, -EPROTO
 * when the file is damaged, or another negative errno; what its numbers refer to is checked
 * whenever they are used.
 */
int timeline_view_map(struct timeline_view **ret, const struct timeline *t, const char *path,
                      uint64_t key, const void **ret_rest, size_t *ret_len) must_check;
/*
 * Writes the first 24 bytes that timeline_view_map expects of a file of this length, for fuzz
 * targets, which make up the rest.
 */
void timeline_view_stamp(uint64_t start[3], uint64_t key, uint64_t len);
void timeline_view_free(struct timeline_view *v);
DEFINE_CLEANUP(struct timeline_view *, timeline_view_free)

struct view_range {
    uint64_t from, to; /* ns since the origin */
    uint32_t width;    /* pixels */
    const uint32_t *threads;
    size_t n_threads;
};

enum { VIEW_WIDTH_MAX = 16384, VIEW_ARROWS = 500, VIEW_LOOKED_AT = 50000 };

/*
 * Appends the rows of the range's threads, in their order. A row consists of the number of runs;
 * for each run twice the time since the end of the previous one (initially since `from`), plus 1 if
 * the run has several states, and its length; for a run of one state its node and kind; for a run
 * of several states 16 times their number plus the number of their kinds, and for each kind the
 * kind and its share of 255, as bytes. Then follow the number of instants (those at least three
 * pixels apart), and for each instant the time since the previous one, kind and node. All numbers
 * are LEB128. A run of several states is at most a pixel long, and two consecutive runs are
 * together at least a pixel long. Returns 0, -ENOMEM, or -E2BIG when `out` has no room.
 */
int timeline_view_rows(const struct timeline_view *v, const struct view_range *r,
                       struct buf *out) must_check;

/*
 * Appends the wake-ups in the range between two of its threads, or between one of them and another
 * thread: the number of all in the range; one in how many of them is included; the number of
 * included ones; then for each arrow the time since the previous one, the time since its cause,
 * node, waker, thread, waker's thread, and the edge, plus 16 if it is inferred. Returns 0, -ENOMEM,
 * or -E2BIG when `out` has no room.
 */
int timeline_view_arrows(const struct timeline_view *v, const struct view_range *r,
                         struct buf *out) must_check;

/* Returns the node at which the thread's state at a time began; TL_NONE before its first one. */
uint32_t timeline_view_at(const struct timeline_view *v, uint32_t thread, uint64_t time);
/*
 * Stores the nodes of the thread's states before and after a state, TL_NONE when the thread has
 * none, and the time at which the state ends.
 */
void timeline_view_around(const struct timeline_view *v, uint32_t node, uint32_t *ret_before,
                          uint32_t *ret_after, uint64_t *ret_end);
/*
 * Stores the nodes, at most n, at which threads were woken by an interaction. Returns how many were
 * stored.
 */
size_t timeline_view_woken(const struct timeline_view *v, uint32_t node, uint32_t *ret, size_t n);
