/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path: the chain of dependent activities whose length is the time from the beginning
 * to the end (TPTP thread profiling, "Critical Path"). It is built from the end backward: what a
 * thread does is part of the path; where it waited for another thread, the path continues on that
 * thread, at the moment of the wake-up. Segments touch, so their lengths add up to the makespan.
 *
 * Its functions begin with path_.
 */
#pragma once

#include "analysis/holds.h"
#include "base/vec.h"
#include "timeline/timeline.h"

enum path_state {
    PATH_RUN,
    /* waiting for a lock: the wake-up after a hand-over, or a wait whose cause is unknown */
    PATH_LOCK,
    PATH_REACQUIRE, /* waiting to acquire a monitor again after wait() */
    PATH_SLEEP,
    PATH_TIMER, /* a wait or park that ended by its timeout */
    PATH_IO,
    PATH_GC,
    PATH_PREEMPTED,
    PATH_THROTTLED, /* preempted, because the container was out of CPU */
    PATH_UNKNOWN,
    PATH_STATES
};

struct path_segment {
    uint64_t start, end;
    uint32_t thread;
    /* what the thread did; the node's context has the stack; or TL_NONE */
    uint32_t node;
    /* the object for which the thread waits, or waited until the path came to it; or TL_NONE */
    uint32_t object;
    /* the thread from which the path came to the beginning of this segment, or TL_NONE */
    uint32_t waker;
    uint8_t state; /* enum path_state */
    uint8_t edge;  /* enum tl_edge: the edge by which the path came */
    bool inferred; /* whether that edge is inferred */
};

struct critical_path {
    uint64_t makespan, length;
    VEC(struct path_segment) segments; /* in chronological order */
    uint64_t states[PATH_STATES];      /* ns in each */
    /* the number of thread changes by kind, and how many of all of them are inferred */
    uint32_t edges[TL_EDGES], inferred;
};

struct path_options {
    uint64_t from, to; /* ns since the origin; to = 0 stands for the end of the last node */
    /* the thread whose last node ends the path, or TL_NONE for the thread that ends the program */
    uint32_t end_thread;
};

#define PATH_OPTIONS ((struct path_options){.end_thread = TL_NONE})

/* The name that a state has in JSON. */
const char *path_state_name(enum path_state state);
/* What people read in its place. */
const char *path_state_text(enum path_state state);

/*
 * Finds the critical path. Returns 0, -ENOENT (nothing lies between from and to), -ENOMEM or, if
 * only the tables of the timeline, not its nodes, have been checked (timeline_check_tables),
 * -EPROTO for a node that leads nowhere.
 */
int critical_path(const struct timeline *t, const struct path_options *o,
                  struct critical_path *ret) must_check;
/*
 * Computes the range of the path without walking it. *ret_end is the node at which the path ends.
 * Returns 0, -ENOENT or -EPROTO, for the same reasons as critical_path.
 */
int critical_path_range(const struct timeline *t, const struct path_options *o, uint64_t *ret_from,
                        uint64_t *ret_to, uint32_t *ret_end) must_check;
void critical_path_release(struct critical_path *p);
/*
 * path_delays.c: turns the part of running segments in which the thread had no processor into
 * PATH_PREEMPTED. The place of that part within a segment is inferred. Returns 0 or -ENOMEM.
 */
int path_split_delays(const struct timeline *t, struct critical_path *p) must_check;
/*
 * path_spread.c: estimates how much the path's length would vary from run to run, as far as the
 * path shows it. *ret is a standard deviation in ns. Returns 0 or -ENOMEM.
 */
int path_spread(const struct timeline *t, const struct critical_path *p, double *ret) must_check;
/*
 * Returns the first segment, from i on, that ends after a given time, or the number of segments
 * when there is none. Takes constant time when the segment is near i.
 */
size_t critical_path_after(const struct critical_path *p, size_t i, uint64_t time);

/* The shares of the path's time by class of locks, the largest first. */
struct path_shares {
    VEC(struct tl_share) rows;
};

/*
 * Computes how much of the path's time lies inside the sections of each class's locks, whatever the
 * thread does there. h: the holds of these locks. Returns 0 or -ENOMEM.
 */
int path_lock_shares(const struct timeline *t, const struct critical_path *p, const struct holds *h,
                     struct path_shares *ret) must_check;

/*
 * Computes the shares of all locks, as path_lock_shares does, in the path p that `o` describes.
 * Copies them from the timeline's index if path_shares_known returns true. Returns 0 or a negative
 * errno.
 */
int path_shares_of(struct timeline *t, const struct path_options *o, const struct critical_path *p,
                   struct path_shares *ret) must_check;
/*
 * Stores whether the share of one of the locks is inferred whose class `of` accepts. Returns 0, or
 * an error of critical_path or path_shares_of.
 */
int path_share_inferred(struct timeline *t, const struct path_options *o,
                        bool (*of)(const void *context, const char *class), const void *context,
                        bool *ret) must_check;
/* Returns whether the timeline's index contains the shares of the path that `o` describes. */
bool path_shares_known(const struct timeline *t, const struct path_options *o);

struct path_method {
    uint32_t method; /* number of a string */
    uint64_t self_ns, total_ns;
};

struct path_methods {
    VEC(struct path_method) rows; /* the largest total first */
};

/*
 * Computes which methods were on the stacks of the path's segments, leaving out segments for which
 * `skip` is set (NULL: none). Only the ends of a run are recorded, so a run counts for the methods
 * that were on the stack at both ends. Returns 0 or -ENOMEM.
 */
int path_methods(const struct timeline *t, const struct critical_path *p, const uint8_t *skip,
                 struct path_methods *ret) must_check;

/* Frames of a timeline, innermost first. */
struct path_frames {
    uint32_t first, n;
};

/*
 * Returns what a thread had on its stack during a segment, as far as its records show: for a wait
 * the stack of the wait; for a run the frames of the program that were on the stack before and
 * after the run. kinds: idle_frame_roles() of the timeline.
 */
struct path_frames path_frames(const struct timeline *t, const uint8_t *kinds,
                               const struct path_segment *s);
struct unknown_table;

/*
 * Computes the path, the shares of locks and the waits for unknown owners (unknown_owners.h), with
 * two threads for a large timeline. Returns 0, or an error of critical_path or path_shares_of; on
 * an error nothing needs to be released.
 */
int critical_path_and_shares(struct timeline *t, const struct path_options *o,
                             struct critical_path *ret, struct path_shares *ret_shares,
                             struct unknown_table *ret_unknown) must_check;
