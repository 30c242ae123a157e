/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the ledger share: request_ledger.c indexes the timeline, request_delays.c
 * divides the times without a processor among requests, request_stretches.c divides the time of a
 * thread by what it did, request_walk.c follows a request back from its end, and request_blame.c
 * finds where threads were and which threads kept them waiting.
 *
 * Its functions begin with ledger_.
 */
#pragma once

#include "analysis/request_ledger.h"

#include "analysis/graph.h"
#include "timeline/idle.h"

/* A thread waited while it initialized a class: others that need the class wait for that thread. */
struct initializing {
    uint64_t start, end;
    uint32_t thread, node;
};

/*
 * The time until a safepoint was reached: the thread for which the VM waited, TL_NONE if unknown.
 */
struct stopping {
    uint32_t thread;
    /* the time of the thread's last sample before the safepoint, in ns since 1970 */
    int64_t seen_ns;
};

/* A request on one thread, and by how much it took longer than the median of its name. */
struct request_excess {
    uint64_t start, end, ns;
    uint32_t thread;
};

struct request_ledger {
    const struct requests *r;
    const struct timeline *t;
    struct map threads;             /* maps the id of a thread to its index in the timeline */
    uint32_t *first;                /* per thread: its first place in `nodes` */
    uint32_t *nodes;                /* by thread, in chronological order */
    uint32_t *object_first, *taken; /* per object: the nodes at which a wait for it ended */
    uint8_t *roles;                 /* of the timeline's strings: enum frame_role */
    uint8_t *marks;                 /* of the same strings: FRAME_ */
    uint8_t *sampled;               /* marks of the requests' stacks */
    VEC(struct initializing) inits; /* sorted by start */
    VEC(struct stopping) late;      /* of the requests' spans without a thread, in the same order */
    /* of requests within one run during which the thread lost time; sorted by thread and start */
    VEC(struct request_excess) excesses;
    double *excess_sums; /* per delay of the timeline: the excess of all requests in its run */
    struct strpool made; /* texts that neither the timeline nor the requests contain */
    struct request_parts scratch;
};

#define FRAME_POOL       1
#define FRAME_CLASS_LOAD 2 /* a class is being loaded or initialized */
#define FRAME_CLASS_INIT 4
#define FRAME_IO         8 /* a virtual thread reads or writes, parked until the poller wakes it */

/* A state of a thread that lasts from start to end. Node `ends`, if there is one, ended it. */
struct stretch {
    uint64_t start, end;
    uint32_t state, ends; /* nodes; state is TL_NONE before the first one */
};

/* ---- request_ledger.c ---- */

/* Returns the FRAME_ marks of a method, and of all methods in a node's stack. */
uint8_t ledger_mark(const char *method);
uint8_t ledger_stack_marks(const struct request_ledger *l, uint32_t node);
/* Returns the timeline's thread with an id, or TL_NONE. */
uint32_t ledger_thread(const struct request_ledger *l, uint64_t id);
/* Convert between the times of requests, in ns since 1970, and those of the timeline. */
uint64_t ledger_since_origin(const struct request_ledger *l, int64_t ns);
int64_t ledger_since_epoch(const struct request_ledger *l, uint64_t ns);

/* ---- request_delays.c ---- */

/* Finds the requests of `excesses`. Returns 0 or -ENOMEM. */
int ledger_index_excesses(struct request_ledger *l) must_check;

/* What delayed a thread that did not wait, apart from the lack of a processor, in ns. */
struct delay_parts {
    uint64_t throttled; /* it had no processor because of the container's quota */
    uint64_t fault;     /* it waited for pages of memory */
};

/*
 * Returns for how many nanoseconds the thread could not run between two times of a run, and stores
 * in *ret what is known about them. In a run without requests the moments without a processor are
 * unknown, so they are spread evenly over the run.
 */
uint64_t ledger_delayed(const struct request_ledger *l, uint32_t thread, uint64_t start,
                        uint64_t end, struct delay_parts *ret);

/* ---- request_stretches.c ---- */

/*
 * Returns the thread's last stretch that begins before `at`, cut at `at` and at `floor`. Instants
 * do not end a stretch.
 */
struct stretch ledger_before(const struct request_ledger *l, uint32_t thread, uint64_t floor,
                             uint64_t at);
/*
 * Returns when the thread's stretch that holds `at` ends: at its next state, or when the timeline
 * ends.
 */
uint64_t ledger_until(const struct request_ledger *l, uint32_t thread, uint64_t at);
/* Returns whether a thread in this state waits for another one. */
bool ledger_is_blocked(enum tl_kind kind);
/*
 * Returns the index of the thread's first sample from start on, and stores the index after its last
 * sample before `end` in *ret_end.
 */
size_t ledger_samples(const struct request_ledger *l, uint32_t thread, uint64_t start, uint64_t end,
                      size_t *ret_end);
/*
 * Add a part, and a stretch of a thread that worked for a request. Parts are found from the end to
 * the beginning and reversed when they are complete. Return 0 or -ENOMEM.
 */
int ledger_add_part(struct request_parts *p, struct request_part part) must_check;
int ledger_add_stretch(struct request_ledger *l, struct request_parts *p, uint32_t work,
                       uint32_t thread, const struct stretch *s) must_check;
