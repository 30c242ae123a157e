/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a timeline fits a picture. Each thread's states lie together with sums of time by kind beside them, so that a row
 * of pixels costs what its pixels cost, however many states lie behind one.
 */
#pragma once

#include "base/buf.h"
#include "model/timeline.h"

struct timeline_view;

/* t must outlive the view. 0 or -ENOMEM. */
int timeline_view_new(struct timeline_view **ret, const struct timeline *t) must_check;
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
 * Appends the length of a pixel, then the rows of the range's threads, in their order. Of each: the number of runs, then per
 * run twice the time from the end of the one before (from `from` on), and of one state: its length, node and kind plus 1, of a
 * pixel of many: 16 times how many and the number of their kinds, then kind and share of 255 for each, as bytes and the number
 * of instants (those that lie three pixels apart), then per instant the time since the one before, kind, node. All numbers are
 * LEB128. A run is a state of a pixel or more, or the many states of one pixel. 0 or -ENOMEM.
 */
int timeline_view_rows(const struct timeline_view *v, const struct view_range *r, struct buf *out) must_check;

/*
 * Appends the wake-ups in the range between two of its threads, or of one with a thread elsewhere: how many there are in the
 * range at all, of how many one is here, how many are here, then per arrow the time since the one before, the time since its
 * cause, node, waker, thread, waker's thread, edge and 16 if it is inferred.
 */
int timeline_view_arrows(const struct timeline_view *v, const struct view_range *r, struct buf *out) must_check;

/* The thread's state at a time, TL_NONE before its first one. */
uint32_t timeline_view_at(const struct timeline_view *v, uint32_t thread, uint64_t time);
/* Of a state: the thread's one before and after, TL_NONE when there is none, and when the state ends. */
void timeline_view_around(const struct timeline_view *v, uint32_t node, uint32_t *ret_before, uint32_t *ret_after,
                          uint64_t *ret_end);
/* Threads' states that an interaction woke: at most n; how many are written. */
size_t timeline_view_woken(const struct timeline_view *v, uint32_t node, uint32_t *ret, size_t n);
