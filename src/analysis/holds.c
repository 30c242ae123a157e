/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/holds.h"

#include "base/map.h"
#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>

enum { MEDIAN_SAMPLE = 500000, ANSWERS = 1 << 14, AHEAD = 24 };

/* Whether a stack has the method at the top of another one: asked again and again for few pairs. */
struct answer {
    uint32_t stack, of;
    bool known, has;
};

struct collector {
    const struct timeline *t;
    struct holds *holds;
    uint32_t *open;    /* per object: its open hold + 1, or 0 */
    uint32_t *waiting; /* per thread: the object it waits for, or TL_NONE */
    uint32_t *current; /* per thread: the hold taken last, + 1 */
    uint8_t *within;   /* per thread: its state began in the method that took that */
    uint8_t *wanted;
    struct answer *answers; /* by a hash of the pair */
};

static int hold_open(struct collector *c, uint32_t thread, uint32_t object, uint32_t stack, uint64_t at, uint32_t node,
                     uint32_t flags)
{
    struct hold h = {.start = at,
                     .end = UINT64_MAX,
                     .seen = at,
                     .thread = thread,
                     .object = object,
                     .stack = stack,
                     .flags = flags,
                     .acquire = node,
                     .release = TL_NONE};
    int r = vec_push(&c->holds->list, h);
    if (r < 0)
        return r;
    c->open[object] = (uint32_t)c->holds->list.len;
    c->current[thread] = c->open[object];
    c->within[thread] = false;
    return 0;
}

static void hold_close(struct collector *c, uint32_t object, uint64_t at, uint32_t node)
{
    if (!c->open[object])
        return;
    struct hold *h = &c->holds->list.data[c->open[object] - 1];
    h->end = at;
    h->release = node;
    c->open[object] = 0;
}

/* The owner changed without a sign of its end: closed later, by what sections of its kind last. */
static void hold_forget(struct collector *c, uint32_t object, uint64_t not_after)
{
    if (!c->open[object])
        return;
    struct hold *h = &c->holds->list.data[c->open[object] - 1];
    h->end = not_after;
    h->flags |= HOLD_END_INFERRED;
    c->open[object] = 0;
}

static bool is_owner(const struct collector *c, uint32_t object, uint32_t thread)
{
    return c->open[object] && c->holds->list.data[c->open[object] - 1].thread == thread;
}

static bool is_exact(const struct collector *c, uint32_t object)
{
    return c->t->objects[object].flags & TL_OBJECT_EXACT;
}

static int acquired(struct collector *c, uint32_t i, uint32_t object, uint32_t stack)
{
    const struct tl_node *n = &c->t->nodes[i];
    if (is_owner(c, object, n->thread))
        return 0;
    /* The hand-over node says when; without one the hold that is open ended somewhere before. */
    if (n->edge != TL_NO_EDGE && n->waker != TL_NONE && c->open[object] &&
        c->holds->list.data[c->open[object] - 1].thread == c->t->nodes[n->waker].thread)
        hold_close(c, object, c->t->nodes[n->waker].time, n->waker);
    else
        hold_forget(c, object, n->time);
    return hold_open(c, n->thread, object, stack, n->time, i, 0);
}

/* A node that ends a wait: was what it waited for a lock that it has now? */
static int wait_ended(struct collector *c, uint32_t i)
{
    const struct tl_node *n = &c->t->nodes[i];
    uint32_t object = c->waiting[n->thread];
    c->waiting[n->thread] = TL_NONE;
    if (object == TL_NONE || n->prev == TL_NONE || !c->wanted[object] || is_exact(c, object))
        return 0;
    const struct tl_node *p = &c->t->nodes[n->prev];
    bool parked = p->kind == TL_PARK;
    if (parked && !(c->t->objects[object].flags & TL_OBJECT_LOCK && n->edge == TL_BY_UNPARK))
        return 0;
    if (!parked && p->kind != TL_WAIT_LOCK && p->kind != TL_WAIT_OBJECT && p->kind != TL_REACQUIRE && p->kind != TL_TIMEOUT)
        return 0;
    return acquired(c, i, object, c->t->contexts[p->context].stack);
}

static bool stack_has(struct collector *c, uint32_t stack, uint32_t of)
{
    struct answer *a = &c->answers[(stack * 0x9e3779b1u ^ of * 0x85ebca6bu) >> 7 & (ANSWERS - 1)];
    if (a->known && a->stack == stack && a->of == of)
        return a->has;
    uint32_t method = c->t->frames[c->t->stacks[of].first].method;
    bool has = false;
    for (uint32_t k = 0; k < c->t->stacks[stack].len && !has; k++)
        has = c->t->frames[c->t->stacks[stack].first + k].method == method;
    *a = (struct answer){stack, of, true, has};
    return has;
}

/*
 * A thread that waits or calls with the method on its stack that took the lock has not left that method; nor has it when the
 * wait ends.
 */
static void look_at_stack(struct collector *c, const struct tl_node *n)
{
    if (!c->current[n->thread])
        return;
    struct hold *h = &c->holds->list.data[c->current[n->thread] - 1];
    uint32_t stack = c->t->contexts[n->context].stack;
    if (c->within[n->thread])
        h->seen = n->time;
    if (stack == TL_NONE || h->stack == TL_NONE || c->t->stacks[h->stack].len == 0) {
        c->within[n->thread] = false;
        return;
    }
    bool in = stack_has(c, stack, h->stack);
    c->within[n->thread] = in;
    if (in)
        h->seen = n->time;
    else
        c->current[n->thread] = 0;
}

/* The node at which the monitor of an exact hold was had: where the wait for it ended, when there was one. */
static uint32_t acquisition(const struct collector *c, uint32_t i, uint32_t object)
{
    uint32_t had = c->t->nodes[i].prev, waited = had == TL_NONE ? TL_NONE : c->t->nodes[had].prev;
    if (waited == TL_NONE || c->t->nodes[had].kind != TL_RUN || !(c->t->nodes[waited].flags & TL_BLOCKED))
        return i;
    return c->t->contexts[c->t->nodes[waited].context].object == object ? had : i;
}

static int visit(struct collector *c, uint32_t i)
{
    const struct tl_node *n = &c->t->nodes[i];
    look_at_stack(c, n);
    struct tl_context x = c->t->contexts[n->context];
    bool wanted = x.object != TL_NONE && c->wanted[x.object];
    int r = 0;
    switch ((enum tl_kind)n->kind) {
    case TL_WAIT_OBJECT:
    case TL_WAIT_JOIN:
    case TL_REACQUIRE:
        c->waiting[n->thread] = x.object;
        if (wanted && !is_exact(c, x.object) && n->kind != TL_REACQUIRE && is_owner(c, x.object, n->thread))
            hold_close(c, x.object, n->time, i);
        return 0;
    case TL_WAIT_LOCK:
    case TL_PARK:
        c->waiting[n->thread] = x.object;
        if (!wanted || is_exact(c, x.object) || x.other == TL_NONE || x.other == n->thread || is_owner(c, x.object, x.other))
            return 0;
        hold_forget(c, x.object, n->time);
        return hold_open(c, x.other, x.object, TL_NONE, n->time, i, HOLD_START_INFERRED);
    case TL_RUN:
        return wait_ended(c, i);
    case TL_HANDOFF:
        if (wanted && !is_exact(c, x.object) && is_owner(c, x.object, n->thread))
            hold_close(c, x.object, n->time, i);
        return 0;
    case TL_UNPARK:
        if (x.other != TL_NONE && c->waiting[x.other] != TL_NONE && is_owner(c, c->waiting[x.other], n->thread))
            hold_close(c, c->waiting[x.other], n->time, i);
        return 0;
    case TL_ACQUIRE:
        if (!wanted)
            return 0;
        if (c->open[x.object])
            hold_close(c, x.object, n->time, i);
        return hold_open(c, n->thread, x.object, x.stack, n->time, acquisition(c, i, x.object), HOLD_EXACT);
    case TL_RELEASE:
        if (wanted && is_owner(c, x.object, n->thread))
            hold_close(c, x.object, n->time, i);
        return 0;
    default:
        return r;
    }
}

struct length {
    uint64_t key, ns;
};

static int by_length(const void *a, const void *b)
{
    const struct length *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

/* Sections of one kind: of a class, and entered at one place where that is known. */
static uint64_t section_key(const struct timeline *t, const struct hold *h, bool by_stack)
{
    return (uint64_t)t->objects[h->object].class << 32 | (by_stack ? h->stack : TL_NONE);
}

/*
 * Sections whose end nobody saw end where the thread was last seen in the method that took the lock; else they get the median
 * length of those of the same kind, or of the same class. Not past their bound.
 */
static int ends_settle(const struct timeline *t, struct holds *h)
{
    VEC(struct length) known = {0};
    struct map medians = {0}, wanted = {0};
    bool any = false;
    int r = 0;
    for (size_t i = 0; r == 0 && i < h->list.len; i++) {
        const struct hold *one = &h->list.data[i];
        if (!(one->flags & HOLD_END_INFERRED) || one->seen > one->start)
            continue;
        any = true;
        r = map_put(&wanted, section_key(t, one, true), 1);
        if (r == 0)
            r = map_put(&wanted, section_key(t, one, false), 1);
    }
    /* Of very many sections one in so many tells the median. */
    for (size_t i = 0; r == 0 && any && i < h->list.len; i += 1 + h->list.len / MEDIAN_SAMPLE) {
        const struct hold *one = &h->list.data[i];
        if (one->flags & HOLD_INFERRED)
            continue;
        if (one->stack != TL_NONE && map_get(&wanted, section_key(t, one, true)))
            r = vec_push(&known, ((struct length){section_key(t, one, true), one->end - one->start}));
        if (r == 0 && map_get(&wanted, section_key(t, one, false)))
            r = vec_push(&known, ((struct length){section_key(t, one, false), one->end - one->start}));
    }
    if (r == 0 && known.len)
        qsort(known.data, known.len, sizeof(*known.data), by_length);
    for (size_t i = 0, end; r == 0 && i < known.len; i = end) {
        for (end = i; end < known.len && known.data[end].key == known.data[i].key; end++)
            ;
        r = map_put(&medians, known.data[i].key, known.data[i + (end - i) / 2].ns);
    }
    for (size_t i = 0; r == 0 && i < h->list.len; i++) {
        struct hold *one = &h->list.data[i];
        if (!(one->flags & HOLD_END_INFERRED))
            continue;
        uint64_t *median = map_get(&medians, section_key(t, one, true));
        if (!median)
            median = map_get(&medians, section_key(t, one, false));
        uint64_t end = one->seen > one->start ? one->seen : one->start + (median ? *median : 0);
        one->end = MIN(MIN(one->end, t->threads[one->thread].end_ns), end);
        one->end = MAX(one->end, one->start);
    }
    vec_release(&known);
    map_release(&medians);
    map_release(&wanted);
    return r;
}

/*
 * Groups the list by thread. Within a thread it is in order of start already: a hold is noted when it begins. By a copy: in
 * place each step is a miss of the cache, which took as long as all else.
 */
static int holds_index(const struct timeline *t, struct holds *h)
{
    struct hold *to = malloc((h->list.len + 1) * sizeof(*to));
    size_t *at = calloc(t->n_threads + 2, sizeof(*at));
    h->first = calloc(t->n_threads + 2, sizeof(*h->first));
    if (!to || !at || !h->first || h->list.len >= TL_NONE) {
        free(to);
        free(at);
        return -ENOMEM;
    }
    huge_pages(to, h->list.len * sizeof(*to));
    for (size_t i = 0; i < h->list.len; i++)
        h->first[h->list.data[i].thread + 1]++;
    for (size_t i = 0; i <= t->n_threads; i++)
        at[i + 1] = h->first[i + 1] += h->first[i];
    for (size_t i = 0; i < h->list.len; i++) {
        uint32_t thread = h->list.data[i].thread;
        struct hold *one = &to[at[thread]];
        *one = h->list.data[i];
        one->reach = at[thread] > h->first[thread] ? MAX(one->end, one[-1].reach) : one->end;
        at[thread]++;
    }
    free(at);
    free(h->list.data);
    h->list.data = to;
    h->list.cap = h->list.len + 1;
    return 0;
}

int holds_collect(const struct timeline *t, holds_want *want, void *arg, struct holds *ret)
{
    struct holds h = {0};
    struct collector c = {.t = t, .holds = &h};
    c.open = calloc(t->n_objects + 1, sizeof(*c.open));
    c.wanted = calloc(t->n_objects + 1, sizeof(*c.wanted));
    c.waiting = malloc((t->n_threads + 1) * sizeof(*c.waiting));
    c.current = calloc(t->n_threads + 1, sizeof(*c.current));
    c.within = calloc(t->n_threads + 1, sizeof(*c.within));
    c.answers = calloc(ANSWERS, sizeof(*c.answers));
    int r = c.answers && c.open && c.wanted && c.waiting && c.current && c.within ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < t->n_threads; i++)
        c.waiting[i] = TL_NONE;
    for (size_t i = 0; r == 0 && i < t->n_objects; i++)
        c.wanted[i] = !want || want(t, (uint32_t)i, arg);
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        if (i + AHEAD < t->n_nodes) /* contexts lie anywhere: half of the time was waiting for them */
            __builtin_prefetch(&t->contexts[t->nodes[i + AHEAD].context]);
        r = visit(&c, (uint32_t)i);
    }
    for (size_t i = 0; r == 0 && i < t->n_objects; i++)
        hold_forget(&c, (uint32_t)i, t->end_ns);
    if (r == 0)
        r = ends_settle(t, &h);
    if (r == 0)
        r = holds_index(t, &h);
    free(c.answers);
    free(c.open);
    free(c.wanted);
    free(c.waiting);
    free(c.current);
    free(c.within);
    if (r < 0)
        holds_release(&h);
    else
        *ret = h;
    return r;
}

void holds_release(struct holds *h)
{
    vec_release(&h->list);
    free(h->first);
    h->first = NULL;
}
