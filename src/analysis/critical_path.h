/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path: the chain of dependent activities whose length is the time from the beginning
 * to the end (TPTP thread profiling, "Critical Path"). From the end backward: what a thread does is
 * part of the path; where it waited for another thread, the path goes on there, at the moment it
 * was woken. Segments touch, so their lengths add up to the makespan.
 */
#pragma once

#include "analysis/holds.h"
#include "base/vec.h"
#include "model/timeline.h"

enum path_state {
    PATH_RUN,
    /*
     * waiting for a lock: wake-up after a hand-over, or a wait without a known cause of its length
     */
    PATH_LOCK,
    PATH_REACQUIRE, /* the same for a monitor after wait() */
    PATH_SLEEP,
    PATH_TIMER, /* a wait or park that its timeout ended */
    PATH_IO,
    PATH_GC,
    PATH_PREEMPTED,
    PATH_UNKNOWN,
    PATH_STATES
};

struct path_segment {
    uint64_t start, end;
    uint32_t thread;
    uint32_t node; /* what the thread did: whose context has object and stack; or TL_NONE */
    /* thread from which the path came to the beginning of this segment, or TL_NONE */
    uint32_t waker;
    uint8_t state; /* enum path_state */
    uint8_t edge;  /* enum tl_edge by which it came */
    bool inferred; /* that edge is */
};

struct critical_path {
    uint64_t makespan, length;
    VEC(struct path_segment) segments; /* in order of time */
    uint64_t states[PATH_STATES];      /* ns in each */
    /* changes of thread by their kind; how many of all are inferred */
    uint32_t edges[TL_EDGES], inferred;
};

struct path_options {
    uint64_t from, to; /* ns since the origin; to 0: the end of the end node */
    /* path of this thread's last node, or TL_NONE: of the thread that ends the program */
    uint32_t end_thread;
};

#define PATH_OPTIONS ((struct path_options){.end_thread = TL_NONE})

const char *path_state_name(enum path_state state);

/*
 * 0, -ENOENT (nothing lies between from and to) or -ENOMEM. Of a timeline whose nodes are
 * unchecked, its tables apart (timeline_check_tables), -EPROTO when it meets one that leads
 * nowhere.
 */
int critical_path(const struct timeline *t, const struct path_options *o,
                  struct critical_path *ret) must_check;
/* From when to when it will be, without walking it; its errors. ret_end: the node where it ends. */
int critical_path_range(const struct timeline *t, const struct path_options *o, uint64_t *ret_from,
                        uint64_t *ret_to, uint32_t *ret_end) must_check;
void critical_path_release(struct critical_path *p);
/*
 * path_delays.c: what of the running segments was without a processor becomes PATH_PREEMPTED, its
 * place inferred.
 */
int path_split_delays(const struct timeline *t, struct critical_path *p) must_check;
/*
 * path_spread.c: by how much its length would differ from run to run as far as the path shows it, a
 * standard deviation, ns.
 */
int path_spread(const struct timeline *t, const struct critical_path *p, double *ret) must_check;
/*
 * The first segment from i on that ends beyond a time, found at once when it is near; their number
 * when none does.
 */
size_t critical_path_behind(const struct critical_path *p, size_t i, uint64_t time);

/* One row a class of locks, the largest first. */
struct path_shares {
    VEC(struct tl_share) rows;
};

/* The path's time inside the sections of each class's locks, whatever the thread does there. */
int path_lock_shares(const struct timeline *t, const struct critical_path *p, const struct holds *h,
                     struct path_shares *ret) must_check;

/*
 * The same of all locks, for the path of those options: what the timeline's index knows of it is
 * not worked out again.
 */
int path_shares_of(struct timeline *t, const struct path_options *o, const struct critical_path *p,
                   struct path_shares *ret) must_check;
/* Whether the index knows all that it takes. */
bool path_shares_known(const struct timeline *t, const struct path_options *o);

struct path_method {
    uint32_t method; /* string */
    uint64_t self_ns, total_ns;
};

struct path_methods {
    VEC(struct path_method) rows; /* the largest total first */
};

/*
 * What was on the stacks of the path's segments; segments with `skip` are left out (NULL: none). Of
 * a run only its ends are recorded: it counts for the methods that were on the stack at both.
 */
int path_methods(const struct timeline *t, const struct critical_path *p, const uint8_t *skip,
                 struct path_methods *ret) must_check;

/* Frames of a timeline, leaf first. */
struct path_frames {
    uint32_t first, n;
};

/*
 * What a thread had on its stack during a segment, as far as its record tells: where it waited, the
 * stack; where it ran, the frames of the program that it had before and after. kinds: frame_roles()
 * of the timeline.
 */
struct path_frames path_frames(const struct timeline *t, const uint8_t *kinds,
                               const struct path_segment *s);
/*
 * The path, these and the shares of locks; of a large timeline what they take is found beside each
 * other.
 */
int critical_path_and_shares(struct timeline *t, const struct path_options *o,
                             struct critical_path *ret, struct path_shares *ret_shares,
                             struct path_methods *ret_methods) must_check;
