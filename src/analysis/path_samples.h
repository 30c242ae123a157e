/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ran on the critical path: while a thread runs without an event its record tells nothing of
 * it, but CPU samples in the same recording do. A run's time is divided among the samples of it.
 */
#pragma once

#include "analysis/critical_path.h"

struct ran_method {
    const char *name;
    uint64_t self_ns, total_ns; /* of the path */
};

struct path_samples {
    struct recording *recording; /* which the names are of */
    /* of all segments, runs by their samples where they have some; the largest total first */
    VEC(struct ran_method) rows;
    /* per segment: the method that most of its samples were in; NULL: it has none */
    const char **top;
    uint8_t *sampled; /* per segment */
    /* per segment: its thread waited for something to do (model/idle.h) */
    uint8_t *idle;
    uint64_t idle_ns;          /* of these */
    uint64_t samples;          /* on the path */
    uint64_t run_ns, known_ns; /* of the path: runs, and those of them that have samples */
    bool there;                /* the recording holds CPU samples */
    bool too_large;            /* it is not read a second time for them */
};

/*
 * What a recording (another file: nothing) knows of the runs on the path of its timeline. idle:
 * waits for something to do are asked for, and so none is marked. 0, -ENOMEM or an error of
 * reading; of an unchecked timeline -EPROTO.
 */
int path_samples(const struct timeline *t, const char *file, bool idle,
                 const struct critical_path *p, struct path_samples *ret) must_check;
/*
 * Whether a row says something: the JDK's methods that only call others, the first ones of each
 * thread above all, do not.
 */
bool path_method_tells(const struct ran_method *row);
/* The path's time by state without what is idle. */
void path_busy_states(const struct critical_path *p, const struct path_samples *s,
                      uint64_t ret[PATH_STATES]);
void path_samples_release(struct path_samples *s);
