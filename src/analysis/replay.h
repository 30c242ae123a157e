/* SPDX-License-Identifier: Apache-2.0 */
/* The two replays behind what_if.h. */
#pragma once

#include "analysis/graph.h"
#include "analysis/sections.h"
#include "analysis/what_if.h"

#include <pthread.h>

/* What is scaled. */
struct scaled {
    uint8_t *objects;      /* per object: its sections; NULL when none are */
    struct hold_list list; /* with objects: all holds */
    uint8_t *stacks;       /* per stack: inside a method that is scaled; NULL when none is */
};

int scaled_init(struct scaled *ret, const struct timeline *t, const struct what_if *w) must_check;
void scaled_release(struct scaled *s);

struct replay {
    const struct timeline *t;
    const struct scaled *what;
    struct sections sections; /* with objects */
    struct graph_seen *seen;  /* per thread, with stacks */
    /* per thread: of its next own times, since it wakes nobody any more, or does now */
    int64_t *saved;
    double factor;
    uint64_t scaled;
    /* what it takes to hand a lock over to a thread that sleeps; 0: what it took */
    uint64_t wake_as;
    uint64_t usual; /* the same where it was not handed over */
};

static inline bool replay_hands_over(const struct tl_node *at)
{
    return at->edge == TL_BY_HANDOFF || at->edge == TL_BY_UNPARK;
}

/*
 * What of a wake-up is to be paid by who waits for so long. Who comes behind the cause does not
 * wait, and pays nothing. Who waits for less than a wake-up takes the waker may not sleep yet: the
 * less, the likelier.
 */
static inline double replay_sleeps(const struct replay *r, int64_t waits)
{
    int64_t asleep = (int64_t)r->t->wake_ns;
    return waits < 0 ? 0 : waits >= asleep ? 1 : (double)waits / (double)asleep;
}

/*
 * How long after its cause a thread goes on that was woken at a node, and that waits for so long
 * now instead of then. Without a wake-up the waker's next own time is shorter, by at most as much
 * as it took the woken one.
 */
static inline uint64_t replay_wake_up(struct replay *r, const struct tl_node *at, int64_t then,
                                      int64_t now)
{
    const struct tl_node *waker = &r->t->nodes[at->waker];
    uint64_t wake_up = at->time - waker->time;
    if (then < (int64_t)r->t->wake_ns)
        return wake_up;
    double sleeps = replay_sleeps(r, now);
    if (replay_hands_over(at)) {
        r->saved[waker->thread] += (int64_t)((1 - sleeps) * (double)MIN(r->t->wake_ns, wake_up));
        wake_up = r->wake_as ? r->wake_as : wake_up;
    }
    return (uint64_t)(sleeps * (double)wake_up);
}

/* What is left of a thread's own time. */
static inline uint64_t replay_left(struct replay *r, uint32_t thread, uint64_t own)
{
    int64_t less = MIN(r->saved[thread], (int64_t)own);
    r->saved[thread] -= less;
    return (uint64_t)((int64_t)own - less);
}

int replay_init(struct replay *ret, const struct timeline *t, const struct scaled *what,
                double factor) must_check;
void replay_release(struct replay *r);

/*
 * The thread's own time from start, that of the node before, to node n: scaled as far as it is
 * inside.
 */
uint64_t replay_own(struct replay *r, uint32_t n, uint64_t start);

/*
 * When a thread goes on that was woken at a node; it waited since a time, and came for that in the
 * replay.
 */
static inline uint64_t replay_woken(struct replay *r, const struct tl_node *at, uint64_t since,
                                    uint64_t came, uint64_t cause)
{
    int64_t then = (int64_t)r->t->nodes[at->waker].time - (int64_t)since;
    return MAX(came, cause + replay_wake_up(r, at, then, (int64_t)cause - (int64_t)came));
}

/* New time of node n from those of the node before it and of its waker. */
uint64_t replay_node(struct replay *r, const uint64_t *times, uint32_t n);

/*
 * The thread's own time, as replayed, from node n, at which it runs, to a recorded time before its
 * next node.
 */
uint64_t replay_part(struct replay *r, uint32_t n, uint64_t to);

/* Whether the timeline is small enough for the next one to do anything. */
bool replay_arbitrates(const struct timeline *t);
/*
 * The schedule with locks given in the order in which threads come in the new schedule. 1; 0: it
 * cannot go on, times are as before; -ENOMEM.
 */
int replay_arbitrated(struct replay *r, uint64_t *times) must_check;

/* ---- replay_kept.c: the schedule with locks given in the order recorded ---- */

/*
 * From so many nodes on threads work beside; how many times are enough, but for wakers that lie
 * that far behind.
 */
enum { BESIDE_NODES = 1 << 18, KEPT_TIMES = 1 << 22 };

enum { KEPT_FROM, KEPT_TO, KEPT_MOMENTS };

/* Where a thread is in the replay. */
struct lane {
    uint64_t time, now; /* of its last node: as recorded, replayed */
    uint64_t since;     /* where the wait began that its last node is part of */
    bool begun, blocked;
};

struct kept {
    struct replay *r;
    uint64_t *times; /* per node: its own time, until the replay comes to it */
    size_t mask;     /* of their numbers: the times are a ring */
    size_t back;     /* so far back they are still there */
    struct lane *lanes;

    struct kept_moment {
        uint64_t time;
        struct lane *lanes; /* then */
    } moments[KEPT_MOMENTS];

    size_t done, replayed; /* nodes whose own time is there; whose time is */
    int error;
    bool threaded, stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
};

/*
 * Begins to work out the threads' own times; n_times of them have room, a power of two unless it is
 * all (then, after the end, they are the new times of all nodes). from and to: two moments of the
 * recording, in order, that are asked about.
 */
int kept_begin(struct kept *ret, struct replay *r, uint64_t *times, size_t n_times, uint64_t from,
               uint64_t to) must_check;
/* Replays to the end. 0, -ERANGE: a waker's time is no longer there; -EPROTO, -ENOMEM. */
int kept_end(struct kept *k) must_check;
void kept_release(struct kept *k);
/* The new time of a moment, as a thread has it. */
uint64_t kept_moment(const struct kept *k, int which, uint32_t thread);
/* The new time of a thread's last node. */
uint64_t kept_last(const struct kept *k, uint32_t thread);
