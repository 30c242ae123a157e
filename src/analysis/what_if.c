/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if.h"

#include "analysis/graph.h"
#include "analysis/replay.h"

#include <errno.h>
#include <stdlib.h>

static bool stack_inside(const struct replay *r, uint32_t node)
{
    uint32_t stack = tl_context_of(r->t, node)->stack;
    return stack != TL_NONE && r->stacks[stack];
}

uint64_t replay_own(struct replay *r, uint32_t n)
{
    const struct timeline *t = r->t;
    uint32_t p = t->nodes[n].prev;
    uint64_t start = t->nodes[p].time, end = t->nodes[n].time, inside = 0;
    if (start == end)
        return 0;
    if (r->holds)
        inside = holds_overlap_near(r->holds, t->nodes[n].thread, start, end, TL_NONE, &r->near[t->nodes[n].thread]);
    if (r->stacks && inside < end - start) {
        /* A wait is where its stack says. A run has none: it is inside when what comes before and behind it is. */
        uint32_t state = graph_state_seen(t, p, &r->seen[t->nodes[n].thread]);
        bool in = stack_inside(r, t->nodes[state].flags & TL_BLOCKED ? state : n);
        if (in)
            inside = end - start;
    }
    r->scaled += inside;
    return (end - start - inside) + (uint64_t)((double)inside * r->factor + 0.5);
}

int replay_init(struct replay *ret, const struct timeline *t, const struct what_if *w)
{
    struct replay r = {.t = t, .factor = w->factor};
    int result = 0;
    if (w->lock) {
        result = holds_collect(t, w->lock, w->lock_arg, &r.lock_holds);
        r.holds = &ret->lock_holds;
        r.near = calloc(t->n_threads + 1, sizeof(*r.near));
        if (result == 0 && !r.near)
            result = -ENOMEM;
    }
    if (result == 0 && w->method) {
        r.stacks = calloc(t->n_stacks + 1, 1);
        r.seen = calloc(t->n_threads + 1, sizeof(*r.seen));
        if (!r.stacks || !r.seen)
            result = -ENOMEM;
        for (size_t i = 0; result == 0 && i < t->n_stacks; i++) {
            for (uint32_t k = 0; k < t->stacks[i].len && !r.stacks[i]; k++)
                r.stacks[i] = w->method(t, t->frames[t->stacks[i].first + k].method, w->method_arg);
        }
    }
    *ret = r;
    if (result < 0)
        replay_release(ret);
    return result;
}

void replay_release(struct replay *r)
{
    if (r->holds)
        holds_release(&r->lock_holds);
    free(r->near);
    free(r->stacks);
    free(r->seen);
    *r = (struct replay){0};
}

uint64_t replay_node(struct replay *r, const uint64_t *times, uint32_t n)
{
    const struct tl_node *nodes = r->t->nodes, *at = &nodes[n];
    bool has_waker = at->edge != TL_NO_EDGE && at->waker != TL_NONE && at->waker < n;
    uint64_t time = at->time;
    if (at->prev == TL_NONE)
        return has_waker ? times[at->waker] + (time - nodes[at->waker].time) : time;
    if (!has_waker)
        return times[at->prev] + replay_own(r, n);
    if (!graph_woken(r->t, n))
        return MAX(times[at->prev] + (time - nodes[at->prev].time), times[at->waker]);
    return MAX(times[at->prev], times[at->waker] + (time - nodes[at->waker].time));
}

/* The order kept: nodes lie in topological order. */
static void replay_kept(struct replay *r, uint64_t *times)
{
    for (size_t i = 0; i < r->t->n_nodes; i++)
        times[i] = replay_node(r, times, (uint32_t)i);
}

int what_if_times(const struct timeline *t, const struct what_if *w, uint64_t *times)
{
    struct replay r;
    int result = replay_init(&r, t, w);
    if (result < 0)
        return result;
    replay_kept(&r, times);
    replay_release(&r);
    return 0;
}

/* New time of a moment: of the last node of the end thread before it, and what lies between kept. */
static uint64_t moment(const struct timeline *t, const uint64_t *times, uint32_t thread, uint64_t at)
{
    uint32_t n = t->threads[thread].last;
    while (n != TL_NONE && t->nodes[n].time > at)
        n = t->nodes[n].prev;
    return n == TL_NONE ? at : times[n] + (at - t->nodes[n].time);
}

/*
 * The new end: that of the path's own end, and of every other thread of the program that had ended by then. (A join of a
 * thread that is dead already waits for nothing and leaves no edge; in the new schedule it may have to.)
 */
static uint64_t new_end(const struct timeline *t, const uint64_t *times, const struct path_options *o,
                        const struct critical_path *p)
{
    const struct path_segment *last = &p->segments.data[p->segments.len - 1];
    uint64_t end = moment(t, times, last->thread, last->end);
    for (size_t i = 0; o->end_thread == TL_NONE && i < t->n_threads; i++) {
        uint32_t n = t->threads[i].last;
        if (n != TL_NONE && (t->nodes[n].kind == TL_DEAD || t->nodes[n].kind == TL_DEAD_JOIN) &&
            t->nodes[n].time <= last->end && !(t->threads[i].flags & (TL_THREAD_DAEMON | TL_THREAD_SYSTEM)))
            end = MAX(end, times[n]);
    }
    return end;
}

/* What of the path lies in what is scaled. */
static uint64_t path_inside(struct replay *r, const struct critical_path *p)
{
    uint64_t inside = 0;
    for (size_t i = 0; i < p->segments.len; i++) {
        const struct path_segment *s = &p->segments.data[i];
        uint64_t own = r->holds ? holds_overlap(r->holds, s->thread, s->start, s->end, TL_NONE) : 0;
        if (r->stacks && s->node != TL_NONE && stack_inside(r, s->node))
            own = s->end - s->start;
        inside += own;
    }
    return inside;
}

int what_if(const struct timeline *t, const struct path_options *o, const struct what_if *w, struct what_if_answer *ret)
{
    struct critical_path path;
    struct replay r = {0};
    int result = critical_path(t, o, &path);
    if (result < 0)
        return result;
    uint64_t *times = malloc((t->n_nodes + 1) * sizeof(*times));
    struct what_if_answer a = {.before = path.length};
    result = times ? replay_init(&r, t, w) : -ENOMEM;
    if (result == 0) {
        const struct path_segment *first = &path.segments.data[0];
        replay_kept(&r, times);
        a.scaled_ns = r.scaled;
        a.kept = new_end(t, times, o, &path) - moment(t, times, first->thread, first->start);
        a.upper_bound = path.length - (uint64_t)((double)path_inside(&r, &path) * (1 - w->factor));
        result = replay_arbitrated(&r, times);
    }
    if (result == 0) {
        const struct path_segment *first = &path.segments.data[0];
        a.arbitrated = new_end(t, times, o, &path) - moment(t, times, first->thread, first->start);
        *ret = a;
    }
    free(times);
    replay_release(&r);
    critical_path_release(&path);
    return result;
}
