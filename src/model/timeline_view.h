/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a timeline fits a picture. Each thread's states lie together, and above them a pyramid of
 * marks with sums of time by kind, so that a row of pixels costs what its pixels cost, however many
 * states lie behind one. In a file it is mapped, and opens in no time.
 */
#pragma once

#include "base/buf.h"
#include "model/timeline.h"

struct timeline_view;

/* Looks at every node of t, which must outlive the view. 0 or -ENOMEM. */
int timeline_view_new(struct timeline_view **ret, const struct timeline *t) must_check;
/*
 * Keeps a view that was made in a file, with what the caller wants to find there again. 0 or
 * negative errno.
 */
int timeline_view_save(struct timeline_view *v, const char *path, uint64_t key, const void *rest,
                       size_t len) must_check;
/*
 * Maps such a file: nothing of it is read before it is shown, and only the nodes of t that are
 * shown are looked at. t need not have been checked (timeline_map_unchecked) and must outlive the
 * view, in which the rest lies. -ESTALE when the key differs, -EPROTO when the file is damaged;
 * what its numbers lead to is checked whenever they are used.
 */
int timeline_view_map(struct timeline_view **ret, const struct timeline *t, const char *path,
                      uint64_t key, const void **ret_rest, size_t *ret_len) must_check;
/* The first 24 bytes of a file of that length, as timeline_view_map wants them. */
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
 * Appends the rows of the range's threads, in their order. Of each: the number of runs, then per
 * run twice the time from the end of the one before (from `from` on), and 1 if it is of many
 * states; its length; of one state its node and kind, of many 16 times how many and the number of
 * their kinds, then kind and share of 255 for each, as bytes. Then the number of instants (those
 * that lie three pixels apart), and per instant the time since the one before, kind, node. All
 * numbers are LEB128. A run of many is a pixel long or less, and two runs together are a pixel or
 * more. 0 or -ENOMEM.
 */
int timeline_view_rows(const struct timeline_view *v, const struct view_range *r,
                       struct buf *out) must_check;

/*
 * Appends the wake-ups in the range between two of its threads, or of one with a thread elsewhere:
 * how many there are in the range at all, of how many one is here, how many are here, then per
 * arrow the time since the one before, the time since its cause, node, waker, thread, waker's
 * thread, edge and 16 if it is inferred.
 */
int timeline_view_arrows(const struct timeline_view *v, const struct view_range *r,
                         struct buf *out) must_check;

/* The thread's state at a time, TL_NONE before its first one. */
uint32_t timeline_view_at(const struct timeline_view *v, uint32_t thread, uint64_t time);
/*
 * Of a state: the thread's one before and after, TL_NONE when there is none, and when the state
 * ends.
 */
void timeline_view_around(const struct timeline_view *v, uint32_t node, uint32_t *ret_before,
                          uint32_t *ret_after, uint64_t *ret_end);
/* Threads' states that an interaction woke: at most n; how many are written. */
size_t timeline_view_woken(const struct timeline_view *v, uint32_t node, uint32_t *ret, size_t n);
