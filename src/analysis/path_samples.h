/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ran on the critical path. While a thread runs without an event, the timeline knows nothing
 * about it, but CPU samples in the same recording do. A run's time is divided equally among its
 * samples.
 */
#pragma once

#include "analysis/critical_path.h"

struct ran_method {
    const char *name;
    uint64_t self_ns, total_ns; /* share of the path's time */
};

struct path_samples {
    struct recording *recording; /* the recording that owns the names */
    /*
     * methods of all segments (of runs: by their samples where there are any), the largest total
     * first
     */
    VEC(struct ran_method) rows;
    /*
     * per segment: the method in which most of its samples were taken, or NULL when there is none
     */
    const char **top;
    uint8_t *sampled; /* per segment: whether it has samples */
    /* per segment: whether its thread waited for work (timeline/idle.h) */
    uint8_t *idle;
    uint64_t idle_ns;          /* the total of these segments */
    uint64_t samples;          /* the number of samples on the path */
    uint64_t run_ns, known_ns; /* time of the path in runs, and in runs that have samples */
    bool exists;               /* whether the recording holds CPU samples */
    bool too_large;            /* the recording was not read a second time because of its size */
};

/*
 * Reads from the recording `file` what ran on the path of its timeline; other files yield nothing.
 * idle: treats waits for work as waits, so that no segment is marked as idle. Returns 0, -ENOMEM or
 * an error of reading; for an unchecked timeline also -EPROTO.
 */
int path_samples(const struct timeline *t, const char *file, bool idle,
                 const struct critical_path *p, struct path_samples *ret) must_check;
/*
 * Returns whether a row is informative. The JDK's methods that only call others, such as the first
 * methods of each thread, are not.
 */
bool path_method_is_informative(const struct ran_method *row);
/* Computes the path's time by state without idle segments. */
void path_busy_states(const struct critical_path *p, const struct path_samples *s,
                      uint64_t ret[PATH_STATES]);
void path_samples_release(struct path_samples *s);
