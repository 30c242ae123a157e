/* SPDX-License-Identifier: Apache-2.0 */
/* The two replays behind what_if.h. */
#pragma once

#include "analysis/graph.h"
#include "analysis/sections.h"
#include "analysis/what_if.h"

#include <pthread.h>

/* What is scaled, and the state of a replay. */
struct scaled {
    uint8_t *objects;      /* per object: whether its sections are scaled; NULL when none are */
    struct hold_list list; /* all holds; empty if objects is NULL */
    /* per stack: whether it is inside a scaled method; NULL when there is none */
    uint8_t *stacks;
    /* with stacks: a run counts as inside if the wait before or after it does */
    bool wide;
};

/* Determines which objects and stacks w scales. Returns 0, -ENOMEM or an error of holds_collect. */
int scaled_init(struct scaled *ret, const struct timeline *t, const struct what_if *w) must_check;
void scaled_release(struct scaled *s);

/* Returns whether the stack of a node is one of the marked ones. */
bool replay_stack_inside(const struct timeline *t, const uint8_t *stacks, uint32_t node);

struct replay {
    const struct timeline *t;
    const struct scaled *what;
    enum hold_ends ends;
    struct sections sections; /* with objects */
    struct graph_seen *seen;  /* per thread, with stacks */
    /*
     * per thread: the time by which its next own times become shorter because it no longer wakes a
     * thread; negative if it now wakes one
     */
    int64_t *saved;
    double factor;
    uint64_t scaled;
    /* assumed cost of handing a lock to a sleeping thread; 0: as recorded */
    uint64_t wake_as;
    uint64_t usual; /* assumed cost of waking a thread that a lock is not handed to, in ns */
};

/* Returns whether the waker of a node hands over a lock or unparks the thread. */
static inline bool replay_hands_over(const struct tl_node *at)
{
    return at->edge == TL_BY_HANDOFF || at->edge == TL_BY_UNPARK;
}

/*
 * Returns what fraction of a wake-up's cost applies to a thread that waits for this long. A thread
 * that arrives after the cause does not wait and pays nothing. A thread that waits for less than a
 * wake-up takes may not be asleep yet; the shorter the wait, the likelier.
 */
static inline double replay_sleeps(const struct replay *r, int64_t waits)
{
    int64_t asleep = (int64_t)r->t->wake_ns;
    return waits < 0 ? 0 : waits >= asleep ? 1 : (double)waits / (double)asleep;
}

/*
 * Returns how long after its cause a woken thread continues, when it waits for `now` ns instead of
 * `then`. If the waker hands over a lock or unparks the thread, and need not wake it, the waker's
 * next own time (*saved) becomes shorter, by at most what the wake-up took the woken thread.
 */
static inline uint64_t replay_wake_up(const struct replay *r, const struct tl_node *at,
                                      uint64_t caused, int64_t *saved, int64_t then, int64_t now)
{
    /* In a damaged index a wake-up may come before its cause. */
    uint64_t wake_up = at->time > caused ? at->time - caused : 0;
    if (then < (int64_t)r->t->wake_ns)
        return wake_up;
    double sleeps = replay_sleeps(r, now);
    if (replay_hands_over(at)) {
        *saved += (int64_t)((1 - sleeps) * (double)MIN(r->t->wake_ns, wake_up));
        wake_up = r->wake_as ? r->wake_as : wake_up;
    }
    return (uint64_t)(sleeps * (double)wake_up);
}

/*
 * Returns what remains of a thread's own time when *saved, the thread's saved time, is subtracted
 * from it, and reduces *saved by as much.
 */
static inline uint64_t replay_left(int64_t *saved, uint64_t own)
{
    int64_t less = MIN(*saved, (int64_t)own);
    *saved -= less;
    return own - (uint64_t)less;
}

/*
 * Prepares a replay in which the time inside `what`, which must outlive the replay, is multiplied
 * by `factor`. ends: which ends of sections to assume. Returns 0 or -ENOMEM.
 */
int replay_init(struct replay *ret, const struct timeline *t, const struct scaled *what,
                double factor, enum hold_ends ends) must_check;
void replay_release(struct replay *r);

/*
 * Returns whether the time before a node lies inside a scaled method. For a wait, its stack says
 * so. A run has no stack; it counts as inside when the node that ends it does.
 */
bool replay_method_inside(struct replay *r, const struct tl_node *at, uint32_t n);

/*
 * Computes the thread's own time from start, the time of the previous node, to a node, scaled where
 * it lies inside scaled sections; one result for each assumption about where these end.
 */
void replay_own(struct replay *r, const struct tl_node *at, uint32_t n, uint64_t start,
                uint64_t ret[HOLD_ENDS]);

/*
 * Returns when a thread that was woken at a node continues in the replay. since and caused: when,
 * as recorded, the thread's wait began and the waker woke the thread; arrived and cause: these
 * moments in the replay. *saved: the waker's, as in struct replay.
 */
static inline uint64_t replay_woken(const struct replay *r, const struct tl_node *at,
                                    uint64_t caused, int64_t *saved, uint64_t since,
                                    uint64_t arrived, uint64_t cause)
{
    int64_t then = (int64_t)(caused - since);
    return MAX(arrived,
               cause + replay_wake_up(r, at, caused, saved, then, (int64_t)(cause - arrived)));
}

/* Returns the new time of node n from those of the previous node and of its waker. */
uint64_t replay_node(struct replay *r, const uint64_t *times, uint32_t n);

/*
 * Returns the thread's replayed own time from node n, where it runs, to a recorded time before its
 * next node.
 */
uint64_t replay_part(struct replay *r, uint32_t n, uint64_t to);

/* Returns whether the timeline is small enough for replay_arbitrated. */
bool replay_arbitrates(const struct timeline *t);
/*
 * Replays twice with locks given in the order in which threads arrive in the new schedule. holds:
 * the holds of all locks, with links, whose `release` this function sets. Each array of times has
 * room for all nodes. Returns 1; 0 when the timeline is too large (replay_arbitrates) or one of the
 * replays cannot continue, in which case the times are undefined; or -ENOMEM.
 */
int replay_arbitrated(struct replay replays[2], const struct holds *holds,
                      uint64_t *const times[2]) must_check;

/* ---- replay_kept.c: the schedule with locks given in the order recorded ---- */

/*
 * CONCURRENT_NODES: several threads are used from this many nodes on. KEPT_TIMES_LEAST, KEPT_TIMES:
 * the least and the largest number of nodes whose times are kept, unless a waker lies further back.
 * KEPT_REPLAYS: the largest number of replays at a time.
 */
enum {
    CONCURRENT_NODES = 1 << 18,
    KEPT_TIMES_LEAST = 1 << 16,
    KEPT_TIMES = 1 << 22,
    KEPT_REPLAYS = 6
};

enum { KEPT_FROM, KEPT_TO, KEPT_MOMENTS };

/* The position of a thread in the replays. */
struct lane {
    uint64_t time;               /* of its last node, as recorded */
    uint64_t since;              /* the beginning of the wait to which its last node belongs */
    uint64_t now[KEPT_REPLAYS];  /* the new time of its last node in each replay */
    int64_t saved[KEPT_REPLAYS]; /* as in struct replay */
    bool begun, blocked;
};

struct replay_kept {
    const struct timeline *t;
    /* the replays differ in what is assumed about ends of sections and about wake-ups */
    struct replay *replays;
    size_t n;
    /*
     * per node, for each replay: its thread's own time, until the replay reaches it; then its new
     * time; and after these its recorded time and its thread
     */
    uint64_t *times;
    size_t stride; /* numbers for each node */
    size_t mask;   /* the times are a ring; the mask of node numbers */
    size_t back;   /* how far back times are still available */
    struct lane *lanes;

    struct replay_kept_moment {
        uint64_t time;
        struct lane *lanes; /* one per thread */
    } moments[KEPT_MOMENTS];

    size_t done, replayed; /* nodes whose own time is known; nodes whose new time is known */
    int error;
    bool threaded, stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
};

/* Numbers that are kept for each node besides the times of the replays. */
enum { KEPT_MORE = 2 };

/*
 * Returns the number of nodes whose times must be kept so that the time of each node's waker is
 * available, or KEPT_TIMES if that might not be enough.
 */
size_t replay_kept_times(const struct timeline *t);
/*
 * Starts to compute the threads' own times for n replays of the same sections by the same factor.
 * `times` has room for n + KEPT_MORE numbers of each of n_times nodes, a power of two unless it is
 * the number of all nodes (then it holds the new times of all nodes at the end). from and to are
 * two moments of the recording, in order, whose new times are wanted. Returns 0, -ENOMEM, or
 * -ERANGE when no second thread can be created and the times of all nodes do not fit; the caller
 * releases *ret in any case.
 */
int replay_kept_begin(struct replay_kept *ret, const struct timeline *t, struct replay *replays,
                      size_t n, uint64_t *times, size_t n_times, uint64_t from,
                      uint64_t to) must_check;
/* Replays to the end. Returns 0, -ERANGE when a waker's time is no longer available, or -ENOMEM. */
int replay_kept_end(struct replay_kept *k) must_check;
void replay_kept_release(struct replay_kept *k);
/*
 * Returns the new time of a moment in one of the replays, as a thread experiences it. which:
 * KEPT_FROM or KEPT_TO.
 */
uint64_t replay_kept_moment(const struct replay_kept *k, size_t replay, int which, uint32_t thread);
/* Returns the new time of a thread's last node in one of the replays. */
uint64_t replay_kept_last(const struct replay_kept *k, size_t replay, uint32_t thread);
