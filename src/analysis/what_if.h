/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would the program's time be if a section were shorter: the graph replayed forward with the
 * section's own time scaled, t'(n) = max(t'(before) + own time, t'(waker) + wake-up). Once with the
 * order in which locks were taken kept, once with the locks given to whom comes first in the new
 * schedule: the truth lies between as far as the recording knows the program.
 */
#pragma once

#include "analysis/critical_path.h"

struct what_if {
    holds_want *lock; /* sections of these locks, or NULL */
    void *lock_arg;
    /*
     * Frames of this method, or NULL: true for the string number of a method that is to be scaled.
     */
    bool (*method)(const struct timeline *t, uint32_t method, void *arg);
    void *method_arg;
    double factor; /* of the time inside: 0.5 halves it; >= 0 */
};

struct what_if_answer {
    uint64_t before;       /* makespan as recorded */
    uint64_t kept;         /* makespan with the order of lock acquisitions kept */
    uint64_t arbitrated;   /* with the order decided anew, when it was: else as kept */
    uint32_t decided_anew; /* 0: not, in a timeline of too many nodes */
    uint32_t spare;
    uint64_t scaled_ns; /* own time of all threads that was inside */
    uint64_t answer;    /* the order decided anew if it was, else as kept */
    /* where nine of ten runs of the changed program are expected: both orders, widened */
    uint64_t low, high;
    /*
     * by how much one run of it differs from others, a standard deviation, as far as this one shows
     */
    uint64_t spread;
    /* makespan if all of the path's share were gained: before - share * (1 - factor) */
    uint64_t upper_bound;
};

/*
 * Whether what_if looks at the nodes itself: then these need not be checked
 * (timeline_check_tables), and it answers -EPROTO.
 */
bool what_if_checks(const struct timeline *t);
int what_if(const struct timeline *t, const struct path_options *o, const struct what_if *w,
            struct what_if_answer *ret) must_check;

/* The replay alone: the new time of every node, into times (n_nodes of them). For tests. */
int what_if_times(const struct timeline *t, const struct what_if *w, uint64_t *times) must_check;
