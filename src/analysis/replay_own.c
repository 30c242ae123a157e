/* SPDX-License-Identifier: Apache-2.0 */
/* What all replays share: what is scaled, and what a node takes. */
#include "analysis/graph.h"
#include "analysis/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool replay_stack_inside(const struct timeline *t, const uint8_t *stacks, uint32_t node)
{
    uint32_t stack = tl_context_of(t, node)->stack;
    return stack != TL_NONE && stacks[stack];
}

int scaled_init(struct scaled *ret, const struct timeline *t, const struct what_if *w)
{
    struct scaled s = {0};
    int r = 0;
    if (w->lock) {
        s.objects = calloc(t->n_objects + 1, 1);
        for (size_t i = 0; s.objects && i < t->n_objects; i++)
            s.objects[i] = w->lock(t, (uint32_t)i, w->lock_arg);
        r = s.objects ? hold_list_init(&s.list, t, w->lock, w->lock_arg) : -ENOMEM;
    }
    if (r == 0 && w->method) {
        s.stacks = calloc(t->n_stacks + 1, 1);
        r = s.stacks ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < t->n_stacks; i++) {
            for (uint32_t k = 0; k < t->stacks[i].len && !s.stacks[i]; k++)
                s.stacks[i] = w->method(t, t->frames[t->stacks[i].first + k].method, w->method_arg);
        }
    }
    if (r < 0)
        scaled_release(&s);
    else
        *ret = s;
    return r;
}

void scaled_release(struct scaled *s)
{
    free(s->objects);
    hold_list_release(&s->list);
    free(s->stacks);
    *s = (struct scaled){0};
}

int replay_init(struct replay *ret, const struct timeline *t, const struct scaled *what,
                double factor, enum hold_ends ends)
{
    struct replay r = {.t = t, .what = what, .factor = factor, .ends = ends};
    int result = what->objects ? sections_init(&r.sections, t, &what->list, what->objects) : 0;
    if (result == 0 && !(r.saved = calloc(t->n_threads + 1, sizeof(*r.saved))))
        result = -ENOMEM;
    if (result == 0 && what->stacks && !(r.seen = calloc(t->n_threads + 1, sizeof(*r.seen))))
        result = -ENOMEM;
    if (result < 0)
        replay_release(&r);
    else
        *ret = r;
    return result;
}

void replay_release(struct replay *r)
{
    sections_release(&r->sections);
    free(r->seen);
    free(r->saved);
    *r = (struct replay){0};
}

static uint64_t scale(const struct replay *r, uint64_t all, uint64_t inside)
{
    return (all - inside) + (uint64_t)((double)inside * r->factor + 0.5);
}

bool replay_method_inside(struct replay *r, const struct tl_node *at, uint32_t n)
{
    const struct timeline *t = r->t;
    const uint8_t *stacks = r->what->stacks;
    if (!stacks || at->prev >= n)
        return false;
    uint32_t state = graph_state_seen(t, at->prev, &r->seen[at->thread]);
    if (tl_node(t, state).flags & TL_BLOCKED)
        return replay_stack_inside(t, stacks, state);
    if (replay_stack_inside(t, stacks, n))
        return true;
    uint32_t wait = r->what->wide ? graph_before(t, state) : TL_NONE;
    return r->what->wide &&
           (replay_stack_inside(t, stacks, state) ||
            (wait != TL_NONE && replay_stack_inside(t, stacks, graph_state(t, wait))));
}

void replay_own(struct replay *r, const struct tl_node *at, uint32_t n, uint64_t start,
                uint64_t ret[HOLD_ENDS])
{
    uint64_t end = at->time, inside[HOLD_ENDS] = {0};
    if (start >= end) {
        memset(ret, 0, HOLD_ENDS * sizeof(*ret));
        return;
    }
    if (r->what->objects)
        sections_inside_all(&r->sections, at->thread, start, end, inside);
    bool all = replay_method_inside(r, at, n);
    for (int i = 0; i < HOLD_ENDS; i++) {
        inside[i] = all ? end - start : inside[i];
        ret[i] = scale(r, end - start, inside[i]);
    }
    r->scaled += inside[r->ends];
}

uint64_t replay_part(struct replay *r, uint32_t n, uint64_t to)
{
    uint64_t from = tl_node(r->t, n).time;
    return scale(r, to - from,
                 r->what->objects
                     ? sections_inside(&r->sections, tl_node(r->t, n).thread, from, to, r->ends)
                     : 0);
}

uint64_t replay_node(struct replay *r, const uint64_t *times, uint32_t n)
{
    const struct tl_node at = tl_node(r->t, n);
    bool caused = graph_caused(&at, n);
    const struct tl_node waker = caused ? tl_node(r->t, at.waker) : at;
    uint64_t time = at.time;
    if (at.prev == TL_NONE || (caused && graph_carried(r->t, &at, &waker)))
        return caused ? times[at.waker] + (time - waker.time) : time;
    const uint64_t before = tl_node(r->t, at.prev).time;
    if (!caused) {
        uint64_t own[HOLD_ENDS];
        replay_own(r, &at, n, before, own);
        return times[at.prev] + replay_left(&r->saved[at.thread], own[r->ends]);
    }
    if (!graph_woken(r->t, n))
        return MAX(times[at.prev] + (time - before), times[at.waker]);
    return replay_woken(r, &at, waker.time, &r->saved[waker.thread], before, times[at.prev],
                        times[at.waker]);
}
