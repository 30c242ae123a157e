/* SPDX-License-Identifier: Apache-2.0 */
/* Presents a timeline as slices and arrows, for the formats of thread viewers. */
#pragma once

#include "base/buf.h"
#include "timeline/timeline.h"

/* The name of the row of pauses, where there are any. */
#define SLICES_OF_PAUSES "pauses for collections"

/*
 * The callbacks are not called in order of time overall. The slices of one thread are in order and
 * do not overlap.
 */
struct slice_visitor {
    void *context;
    /*
     * The state of node `state` lasts from start to end. `end_node` ends it; TL_NONE means the end
     * of the recording. Ended threads have no slices, nor has a time of which nothing is known.
     */
    int (*slice)(void *context, uint32_t state, uint64_t start, uint64_t end, uint32_t end_node);
    /* Interaction number id goes from node `waker` to node `woken`. */
    int (*arrow)(void *context, uint64_t id, uint32_t waker, uint32_t woken);
};

/*
 * Loads the timeline of a recording for a format of threads. Returns 0, or a negative errno with
 * the reason in why: -ENODATA when the recording holds nothing about threads.
 */
int thread_slices_load(struct timeline **ret, const char *path, struct buf *why) must_check;
/*
 * Visits the slices and arrows of a timeline; v->arrow may be NULL. Returns 0, -ENOMEM, or the
 * first result of a visit that is not 0, which ends the visits.
 */
int thread_slices(const struct timeline *t, const struct slice_visitor *v) must_check;

/*
 * Writes the name of a slice, such as "wait-lock java.lang.Object", into text[size]. Returns text.
 */
const char *thread_slice_name(const struct timeline *t, uint32_t state, char *text, size_t size);
