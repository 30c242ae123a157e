/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline as a graph: helpers that the analyses of paths share. A node of an unchecked
 * timeline may refer to any other node. Each step here goes to an earlier node or nowhere, so every
 * walk ends and stays within the nodes.
 */
#pragma once

#include "timeline/timeline.h"

/* Returns the thread's node before n, or TL_NONE. */
static inline uint32_t graph_before(const struct timeline *t, uint32_t n)
{
    uint32_t prev = tl_node(t, n).prev;
    return prev < n ? prev : TL_NONE;
}

/* Returns whether an earlier node is known to have caused node i. */
static inline bool graph_caused(const struct tl_node *at, size_t i)
{
    return at->edge != TL_NO_EDGE && at->waker < i;
}

/*
 * Returns the node whose state the thread is in after node n: n itself, or the last state if n is
 * an instant.
 */
static inline uint32_t graph_state(const struct timeline *t, uint32_t n)
{
    while (!tl_is_state(tl_node(t, n).kind) && tl_node(t, n).prev < n)
        n = tl_node(t, n).prev;
    return n;
}

/*
 * Returns whether what ended a wait has no node of its own: a lock that was handed over by a thread
 * that waited or ended, or the end of a thread that was joined.
 */
static inline bool graph_is_implied(const struct timeline *t, const struct tl_node *n)
{
    return n->edge != TL_NO_EDGE && n->edge != TL_BY_START && n->waker != TL_NONE &&
           tl_is_state(tl_node(t, n->waker).kind) && n->kind == TL_RUN;
}

/*
 * The answer to the previous question about a thread's state, so that the next question about the
 * same thread, from either direction, need not walk the same nodes again. {0}: no previous
 * question.
 */
struct graph_seen {
    uint32_t node, state; /* the nodes of the thread between these two are instants */
};

/*
 * Returns what graph_state returns. A series of questions along one thread, in either direction,
 * takes one step per node in total, even when there are millions of instants. seen: for the
 * questions about this thread.
 */
static inline uint32_t graph_state_seen(const struct timeline *t, uint32_t n,
                                        struct graph_seen *seen)
{
    bool same = tl_node(t, seen->node).thread == tl_node(t, n).thread;
    uint32_t at = n;
    while (!tl_is_state(tl_node(t, at).kind) && tl_node(t, at).prev < at)
        at = same && seen->state <= at && at <= seen->node ? seen->state : tl_node(t, at).prev;
    *seen = (struct graph_seen){n, at};
    return at;
}

/*
 * Returns the first node of the wait that node n ends; a wait may have several states (waiting,
 * then reacquiring). Returns n when n does not end a wait.
 */
static inline uint32_t graph_wait_start(const struct timeline *t, uint32_t n)
{
    uint32_t start = n;
    while (tl_node(t, start).prev < start && tl_node(t, tl_node(t, start).prev).flags & TL_BLOCKED)
        start = tl_node(t, start).prev;
    return start;
}

/*
 * Returns whether another thread decided when node n happened: the node has a cause, and the cause
 * lies within the wait. (A cause before the wait, such as a permit that was already there, did not
 * delay the thread.) Before its first node a thread did not exist, so that node counts as the end
 * of a wait. *ret_cause is the time of the cause if there is one.
 */
static inline bool graph_woken_at(const struct timeline *t, const struct tl_node *at, uint32_t n,
                                  uint64_t *ret_cause)
{
    if (!graph_caused(at, n))
        return false;
    *ret_cause = tl_node(t, at->waker).time;
    return at->prev >= n || *ret_cause >= tl_node(t, graph_wait_start(t, n)).time;
}

/* Returns whether graph_woken_at is true of node n. */
static inline bool graph_woken(const struct timeline *t, uint32_t n)
{
    const struct tl_node at = tl_node(t, n);
    uint64_t cause;
    return graph_woken_at(t, &at, n, &cause);
}

/*
 * Returns the node that ended the wait which ends at node n, to who knows only what happened from a
 * time on: if a thread was unparked before this time, and again afterwards before it ran, that is
 * the first of the later calls, which in fact changed nothing.
 */
static inline uint32_t graph_waker_since(const struct timeline *t, uint32_t n, uint64_t from)
{
    const struct tl_node at = tl_node(t, n);
    uint32_t waker = at.waker;
    if (!graph_caused(&at, n) || at.edge != TL_BY_UNPARK || tl_node(t, waker).time >= from)
        return waker;
    for (uint32_t i = n; i-- > at.waker + 1 && tl_node(t, i).time >= from;) {
        const struct tl_node call = tl_node(t, i);
        if (call.kind == TL_UNPARK && t->contexts[call.context].other == at.thread)
            waker = i;
    }
    return waker;
}

/*
 * Returns whether a node with this cause is what a carrier does after the virtual thread on it has
 * ended: its time is then decided by that thread alone. Before that, the carrier waited for the
 * scheduler, whose timers are those of the sleeping threads that it schedules.
 */
static inline bool graph_carried(const struct timeline *t, const struct tl_node *at,
                                 const struct tl_node *waker)
{
    return at->edge == TL_BY_JOIN && waker->kind == TL_DEAD &&
           t->contexts[waker->context].other == at->thread;
}

/*
 * Returns the index of the thread's first delay that ends after a time or, if there is none, the
 * index after the thread's delays. The delays of one thread do not overlap.
 */
static inline size_t graph_delay_after(const struct timeline *t, uint32_t thread, uint64_t time)
{
    size_t low = 0, high = t->n_delays;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct tl_delay *d = &t->delays[mid];
        if (d->thread < thread || (d->thread == thread && d->end_ns <= time))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}
