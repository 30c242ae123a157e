/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program's time would be if a section were shorter: the graph is replayed forward with
 * the section's own time scaled, t'(n) = max(t'(previous) + own time, t'(waker) + wake-up). It is
 * replayed once in the order in which locks were recorded as taken, and once with each lock given
 * to the thread that arrives first in the new schedule. The true result lies between the two, as
 * far as the recording describes the program.
 */
#pragma once

#include "analysis/critical_path.h"

struct what_if {
    holds_want *lock; /* scale the sections of these locks, or NULL */
    void *lock_arg;
    /* scale the frames of a method: returns true for the string number of such a method; or NULL */
    bool (*method)(const struct timeline *t, uint32_t method, void *arg);
    void *method_arg;
    double factor; /* factor for the time inside, >= 0: 0.5 halves it */
    bool bounds;   /* also computes what is possible */
};

struct what_if_answer {
    uint64_t before; /* makespan as recorded */
    uint64_t kept;   /* makespan with the order of lock acquisitions kept */
    /* with the order decided anew where that was possible; otherwise as kept */
    uint64_t arbitrated;
    /*
     * whether the order was decided anew; not if the timeline has too many nodes, or the new order
     * does not lead to the end
     */
    uint32_t decided_anew;
    /* true if the ends of sections are inferred because no thread waited for them */
    uint32_t ends_inferred;
    uint64_t scaled_ns; /* own time of all threads that was inside */
    /*
     * the makespan with the factor 1 if the order of acquisitions is decided anew; 0 if it was kept
     */
    uint64_t unchanged;
    /* before * arbitrated / unchanged where the order was decided anew, otherwise kept */
    uint64_t answer;
    /*
     * the interval in which nine of ten runs of the changed program are expected: both orders,
     * widened, and with inferred ends of sections as early and as late as they may have been
     */
    uint64_t low, high;
    /*
     * with ends_inferred: the answer if they ended at once, and if they ended as late as possible
     */
    uint64_t ends_ns[2];
    /* how much one run differs from others, as a standard deviation, as far as this run shows */
    uint64_t spread;
    /*
     * with bounds: the interval of what is possible, which contains low and high. least: the
     * threads held the locks wherever the recording cannot tell. most: what was free or over in the
     * recording, other locks and threads to be joined, holds threads up so that nothing happens at
     * the same time that did not in the recording.
     */
    uint64_t least, most;
    /* the makespan if all of the path's share were gained: before - share * (1 - factor) */
    uint64_t upper_bound;
};

/* Returns whether an answer's sections, with their times multiplied by factor, are on the path. */
static inline bool what_if_on_path(double factor, const struct what_if_answer *a)
{
    return factor == 1 || a->upper_bound != a->before;
}

/*
 * Returns whether what_if checks the nodes itself, returning -EPROTO for bad ones, so that they
 * need not be checked before (timeline_check_tables).
 */
bool what_if_checks(const struct timeline *t);
/*
 * Replays the path that `o` describes with shorter sections. Returns 0 or an error of critical_path
 * or holds_collect.
 */
int what_if(const struct timeline *t, const struct path_options *o, const struct what_if *w,
            struct what_if_answer *ret) must_check;

/*
 * Replays only, for tests: writes the new time of every node into times (n_nodes elements). Returns
 * 0 or an error of holds_collect.
 */
int what_if_times(const struct timeline *t, const struct what_if *w, uint64_t *times) must_check;
