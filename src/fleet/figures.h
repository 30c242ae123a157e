/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the VM and its process. A store keeps how often each was read, the sum and the largest
 * value; those that are durations have a histogram as well.
 */
#pragma once

#include "base/buf.h"

enum fleet_figure {
    FIGURE_COLLECTIONS, /* how long each took */
    FIGURE_PAUSES,      /* for collections */
    FIGURE_SAFEPOINTS,  /* for how long each stopped all threads */
    FIGURE_THROTTLED,   /* the container was out of CPU */
    FIGURE_CPU,         /* that the process used from one reading to the next */
    FIGURE_HEAP,        /* used after a collection */
    FIGURE_RSS,
    FIGURE_MEMORY, /* of the container */
    FIGURE_THREADS,
    FLEET_FIGURES
};

enum figure_unit { FIGURE_NS, FIGURE_BYTES, FIGURE_COUNT };

extern const struct fleet_figure_info {
    const char *name;
    enum figure_unit unit;
} fleet_figures[FLEET_FIGURES];

struct batch;
struct fleet_reading;
struct profile;

/*
 * Adds the figures of a recording to a batch, in buckets of FLEET_BUCKET_S, and findings about late
 * threads and a lack of CPU; other files have none. p: the profile in the file. Returns 0, or a
 * negative errno with the reason in why.
 */
int figures_read_vm(struct batch *b, const char *path, const struct profile *p,
                    const struct fleet_reading *how, struct buf *why) must_check;
