/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline as a graph: what the analyses of paths share. A node of a timeline that was not
 * checked may lead to any other one: each step here goes to an earlier node or nowhere, so that
 * every way ends, within the nodes.
 */
#pragma once

#include "model/timeline.h"

/* The thread's node before n, or TL_NONE. */
static inline uint32_t graph_before(const struct timeline *t, uint32_t n)
{
    uint32_t prev = t->nodes[n].prev;
    return prev < n ? prev : TL_NONE;
}

/* True when an earlier node caused node i, as far as that is known. */
static inline bool graph_caused(const struct tl_node *at, size_t i)
{
    return at->edge != TL_NO_EDGE && at->waker < i;
}

/*
 * The node whose state the thread is in after node n: n itself, or the last state before an
 * instant.
 */
static inline uint32_t graph_state(const struct timeline *t, uint32_t n)
{
    while (!tl_is_state(t->nodes[n].kind) && t->nodes[n].prev < n)
        n = t->nodes[n].prev;
    return n;
}

/*
 * A state that was asked for, so that a thread's next question, from either side, need not go the
 * same way again. {0}: none.
 */
struct graph_seen {
    uint32_t node, state; /* between them the thread's nodes are instants */
};

/*
 * As graph_state. Questions along a thread, in either direction, take a step a node in all:
 * instants may come by the million.
 */
static inline uint32_t graph_state_seen(const struct timeline *t, uint32_t n,
                                        struct graph_seen *seen)
{
    bool same = t->nodes[seen->node].thread == t->nodes[n].thread;
    uint32_t at = n;
    while (!tl_is_state(t->nodes[at].kind) && t->nodes[at].prev < at)
        at = same && seen->state <= at && at <= seen->node ? seen->state : t->nodes[at].prev;
    *seen = (struct graph_seen){n, at};
    return at;
}

/*
 * The first node of the wait that node n ends: a wait may have several states (waiting, then
 * reacquiring). n when it is none.
 */
static inline uint32_t graph_wait_start(const struct timeline *t, uint32_t n)
{
    uint32_t start = n;
    while (t->nodes[start].prev < start && t->nodes[t->nodes[start].prev].flags & TL_BLOCKED)
        start = t->nodes[start].prev;
    return start;
}

/*
 * True when another thread decided when node n came: it has a cause, and that lies within the wait.
 * (A cause before the wait, a permit that was there already, did not delay it.) A thread's first
 * node is the end of its not having been there.
 */
static inline bool graph_woken(const struct timeline *t, uint32_t n)
{
    const struct tl_node *at = &t->nodes[n];
    if (!graph_caused(at, n))
        return false;
    return at->prev >= n || t->nodes[at->waker].time >= t->nodes[graph_wait_start(t, n)].time;
}

/*
 * True when node n is what a carrier does since the virtual thread on it has ended: when it came is
 * that thread's time alone. Before, the carrier waited for the scheduler, whose timers are those of
 * the sleeps of the threads that it schedules.
 */
static inline bool graph_carried(const struct timeline *t, uint32_t n)
{
    const struct tl_node *at = &t->nodes[n];
    return at->edge == TL_BY_JOIN && at->waker < n && t->nodes[at->waker].kind == TL_DEAD &&
           tl_context_of(t, at->waker)->other == at->thread;
}
