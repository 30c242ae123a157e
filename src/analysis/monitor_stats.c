/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/monitor_stats.h"

#include "analysis/graph.h"
#include "base/hash.h"
#include "base/map.h"
#include "timeline/idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Histogram of a row's durations, for percentiles. It has 32 buckets per power of two, as
 * HdrHistogram has, so it is accurate to 3 %.
 */
enum { SUB = 32, BUCKETS = SUB * 60 };

struct histogram {
    uint32_t counts[BUCKETS];
    uint64_t total_ns, max_ns;
};

struct counting {
    const struct timeline *t;
    const struct stats_filter *f;
    struct monitor_stats *s;
    uint8_t *kinds; /* the role of each method */
    struct map classes, sites, distinct;
    VEC(struct histogram) class_block, class_wait, site_times;
};

static unsigned bucket(uint64_t ns)
{
    if (ns < SUB)
        return (unsigned)ns;
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - 5;
    return MIN((shift + 1) * SUB + (unsigned)(ns >> shift) - SUB, BUCKETS - 1);
}

static uint64_t bucket_value(unsigned b)
{
    if (b < SUB)
        return b;
    unsigned shift = b / SUB - 1;
    return ((uint64_t)(b % SUB + SUB) << shift) + ((UINT64_C(1) << shift) >> 1);
}

static uint64_t percentile(const struct histogram *h, const struct wait_times *w, double share)
{
    uint64_t whole = w->count - w->cut, seen = 0;
    uint64_t want = (uint64_t)((double)whole * share + 0.5);
    for (unsigned i = 0; i < BUCKETS && whole; i++) {
        seen += h->counts[i];
        if (seen >= MAX(want, 1))
            return MAX(w->min_ns, MIN(bucket_value(i), h->max_ns));
    }
    return h->max_ns;
}

static void times_settle(struct wait_times *w, const struct histogram *h)
{
    w->avg_ns = w->count > w->cut ? h->total_ns / (w->count - w->cut) : 0;
    w->p50_ns = percentile(h, w, 0.5);
    w->p90_ns = percentile(h, w, 0.9);
    w->p99_ns = percentile(h, w, 0.99);
}

struct one_wait {
    struct tl_node begin;
    struct tl_context context;
    uint64_t from_ns, ns; /* within the selected part */
    bool block, inferred, unknown, idle, cut;
};

static void times_add(struct wait_times *t, struct histogram *h, const struct one_wait *w)
{
    t->max_ns = MAX(t->max_ns, w->ns);
    t->total_ns += w->ns;
    t->inferred += w->inferred;
    t->unknown += w->unknown;
    if (w->cut) {
        t->cut++;
    } else {
        t->min_ns = t->count > t->cut ? MIN(t->min_ns, w->ns) : w->ns;
        h->max_ns = MAX(h->max_ns, w->ns);
        h->total_ns += w->ns;
        h->counts[bucket(w->ns)]++;
    }
    t->count++;
}

/* Counts a value once per kind and row. */
static int count_distinct(struct counting *c, unsigned kind, size_t row, uint32_t value,
                          uint32_t *count)
{
    bool added;
    if (!map_at(&c->distinct, hash_u64(hash_u64((uint64_t)row << 8 | kind | 4) + value), 0, &added))
        return -ENOMEM;
    *count += added;
    return 0;
}

static int class_add(struct counting *c, const struct one_wait *w, uint32_t class)
{
    bool added;
    uint64_t *slot = map_at(&c->classes, class, c->s->classes.len, &added);
    int r = slot ? 0 : -ENOMEM;
    if (slot && added) {
        r = vec_push(&c->s->classes, ((struct class_stats){.class = class}));
        if (r == 0)
            r = vec_extend(&c->class_block, 1);
        if (r == 0)
            r = vec_extend(&c->class_wait, 1);
    }
    if (r < 0)
        return r;
    size_t i = *slot;
    struct class_stats *row = &c->s->classes.data[i];
    if (w->block)
        times_add(&row->block, &c->class_block.data[i], w);
    else
        times_add(&row->wait, &c->class_wait.data[i], w);
    r = count_distinct(c, 0, i, w->context.object, &row->objects);
    return r < 0 ? r : count_distinct(c, 1, i, w->begin.thread, &row->threads);
}

/*
 * Returns the frame of the method that waits, or TL_NONE. A monitor is entered by the method on
 * top, which `report` shows too; other waits begin in the JDK, on behalf of a method below.
 */
static uint32_t calling_frame(const struct counting *c, const struct one_wait *w)
{
    uint32_t stack = w->context.stack;
    if (w->begin.kind != TL_WAIT_LOCK || stack == TL_NONE || !c->t->stacks[stack].len)
        return idle_waiting_frame(c->t, c->kinds, stack);
    uint32_t top = c->t->stacks[stack].first;
    /* JDK 27 and later report as entering that a thread gets its monitor back */
    return strncmp(tl_string(c->t, c->t->frames[top].method), "java.lang.Object.wait", 21) != 0
               ? top
               : idle_waiting_frame(c->t, c->kinds, stack);
}

/*
 * Takes over where a wait is, if it began before the row's others. Of those that began together, as
 * all do that a part begins in, the thread's id decides, so that a part shows what the whole shows.
 */
static void site_show(struct site_stats *row, const struct one_wait *w, uint64_t thread,
                      uint32_t line, bool added)
{
    if (!added && (w->from_ns > row->since_ns ||
                   (w->from_ns == row->since_ns && thread >= row->since_thread)))
        return;
    row->line = line;
    row->stack = w->context.stack;
    row->idle = w->idle;
    row->since_ns = w->from_ns;
    row->since_thread = thread;
}

static int site_add(struct counting *c, const struct one_wait *w, uint32_t class)
{
    uint32_t at = calling_frame(c, w);
    struct tl_frame frame = at == TL_NONE ? (struct tl_frame){TL_NONE, 0} : c->t->frames[at];
    bool added;
    uint64_t key = hash_u64((uint64_t) class << 32 | frame.method) ^ w->block;
    uint64_t *slot = map_at(&c->sites, key, c->s->sites.len, &added);
    int r = slot ? 0 : -ENOMEM;
    if (slot && added) {
        r = vec_push(&c->s->sites, ((struct site_stats){
                                       .class = class, .method = frame.method, .block = w->block}));
        if (r == 0)
            r = vec_extend(&c->site_times, 1);
    }
    if (r < 0)
        return r;
    size_t i = *slot;
    struct site_stats *row = &c->s->sites.data[i];
    site_show(row, w, c->t->threads[w->begin.thread].id, frame.line, added);
    times_add(&row->times, &c->site_times.data[i], w);
    r = count_distinct(c, 2, i, w->context.object, &row->objects);
    return r < 0 ? r : count_distinct(c, 3, i, w->begin.thread, &row->threads);
}

static void thread_add(struct thread_stats *row, enum tl_kind kind, uint64_t ns, bool idle)
{
    row->idle += idle;
    row->idle_ns += idle ? ns : 0;
    switch (kind) {
    case TL_UNMOUNTED:
    case TL_PREEMPTED:
        row->ready++;
        row->ready_ns += ns;
        break;
    case TL_WAIT_LOCK:
    case TL_REACQUIRE:
        row->blocked++;
        row->blocked_ns += ns;
        break;
    case TL_IO:
        row->io++;
        row->io_ns += ns;
        break;
    default:
        row->waited++;
        row->waited_ns += ns;
    }
}

static uint32_t class_of(const struct counting *c, const struct one_wait *w)
{
    return w->context.object == TL_NONE ? TL_NONE : c->t->objects[w->context.object].class;
}

/* Returns whether the call that ended a wait at node n lies before the selected part. */
static bool ended_before(const struct counting *c, uint32_t n)
{
    uint8_t edge = tl_node(c->t, n).edge;
    bool by_call = edge == TL_BY_NOTIFY || edge == TL_BY_NOTIFY_ALL || edge == TL_BY_UNPARK ||
                   edge == TL_BY_INTERRUPT;
    uint32_t waker = by_call ? graph_waker_since(c->t, n, c->f->from) : TL_NONE;
    return waker != TL_NONE && tl_node(c->t, waker).time < c->f->from;
}

/*
 * Adds one state of a wait, which lasts from its node to `end`, the thread's next node. With
 * TL_NONE the wait goes on.
 */
static int wait_add(struct counting *c, uint32_t begin, uint32_t end)
{
    struct tl_node n = tl_node(c->t, begin);
    uint64_t until = end == TL_NONE ? c->t->end_ns : tl_node(c->t, end).time;
    if ((c->f->threads && !c->f->threads[n.thread]) ||
        (until <= c->f->from && n.time < c->f->from) || (c->f->to && n.time >= c->f->to))
        return 0;
    /* What lies outside the selected part is ignored, as if only that part had been recorded. */
    uint64_t from = MAX(n.time, c->f->from);
    uint64_t to = c->f->to ? MIN(until, c->f->to) : until;
    if (to < until)
        end = TL_NONE;
    /* Who was notified before the part is not known in the part: the thread still waits. */
    bool before = n.kind == TL_REACQUIRE && from > n.time;
    if (before)
        n.kind = TL_WAIT_OBJECT;
    if (c->f->times && !request_times_hold(c->f->times, c->t->threads[n.thread].id,
                                           (int64_t)(c->t->origin_ns + n.time)))
        return 0;
    struct one_wait w = {
        .begin = n, .context = c->t->contexts[n.context], .from_ns = from, .ns = to - from};
    if (c->f->objects && (w.context.object == TL_NONE || !c->f->objects[w.context.object]))
        return 0;
    bool shorter = until - n.time < c->f->min_ns;
    c->s->shorter += shorter;
    c->s->waits += !shorter;
    if (shorter)
        return 0;
    w.block = n.kind == TL_WAIT_LOCK || n.kind == TL_REACQUIRE;
    bool ends = end != TL_NONE;
    const struct tl_node e = ends ? tl_node(c->t, end) : (struct tl_node){0};
    before = before || (ends && ended_before(c, end));
    w.inferred = ends && !before && e.flags & TL_INFERRED;
    w.cut = !ends || from > n.time || (n.time == 0 && c->t->began_before);
    c->s->began_before += from > n.time;
    w.unknown = ends && !(e.flags & TL_BLOCKED) && (e.edge == TL_NO_EDGE || before);
    /* The VM's own threads run no Java code while they wait for work. */
    bool in_vm = c->t->threads[n.thread].flags & TL_THREAD_SYSTEM && w.context.stack == TL_NONE &&
                 class_of(c, &w) == TL_NONE;
    /* A virtual thread that is ready only lacks a carrier and does not wait for another thread. */
    bool ready = n.kind == TL_UNMOUNTED || n.kind == TL_PREEMPTED;
    w.idle = !w.block && !ready && (in_vm || idle_is_idle_stack(c->t, c->kinds, w.context.stack));
    if (w.ns >= c->f->over_ns && ends && !(e.flags & TL_BLOCKED) && !ready &&
        (!w.idle || c->f->idle)) {
        c->s->intervals++;
        c->s->caused += !w.unknown;
        c->s->inferred += w.inferred;
    }
    if (n.kind == TL_WAIT_LOCK && w.context.other == TL_NONE) {
        c->s->owner_unknown++;
        c->s->owner_unknown_at_start += n.time == 0 && c->t->began_before;
        c->s->owner_unknown_virtual += (c->t->threads[n.thread].flags & TL_THREAD_VIRTUAL) != 0;
    }
    c->s->back += n.kind == TL_REACQUIRE;
    c->s->back_ns += n.kind == TL_REACQUIRE ? w.ns : 0;
    c->s->idle += w.idle;
    c->s->idle_ns += w.idle ? w.ns : 0;
    if (w.idle && !c->f->idle) {
        c->s->threads.data[n.thread].idle++;
        c->s->threads.data[n.thread].idle_ns += w.ns;
        return 0;
    }
    thread_add(&c->s->threads.data[n.thread], n.kind, w.ns, w.idle);
    if (c->f->only_threads)
        return 0;
    uint32_t class = class_of(c, &w);
    if (n.kind == TL_IO || ready)
        return 0;
    int r = class == TL_NONE ? 0 : class_add(c, &w, class);
    return r < 0 ? r : site_add(c, &w, class);
}

/* Equal rows are ordered by name, so that a part has the order that the whole has. */
static int by_blocked(const void *a, const void *b, void *t)
{
    const struct class_stats *x = a, *y = b;
    if (x->block.total_ns != y->block.total_ns)
        return (x->block.total_ns < y->block.total_ns) - (x->block.total_ns > y->block.total_ns);
    if (x->wait.total_ns != y->wait.total_ns)
        return (x->wait.total_ns < y->wait.total_ns) - (x->wait.total_ns > y->wait.total_ns);
    return strcmp(tl_string(t, x->class), tl_string(t, y->class));
}

static int by_total(const void *a, const void *b, void *t)
{
    const struct site_stats *x = a, *y = b;
    if (x->times.total_ns != y->times.total_ns)
        return (x->times.total_ns < y->times.total_ns) - (x->times.total_ns > y->times.total_ns);
    int order = strcmp(tl_string(t, x->method), tl_string(t, y->method));
    return order ? order : strcmp(tl_string(t, x->class), tl_string(t, y->class));
}

static void settle(struct counting *c)
{
    struct monitor_stats *s = c->s;
    for (size_t i = 0; i < c->class_block.len && i < c->class_wait.len; i++) {
        times_settle(&s->classes.data[i].block, &c->class_block.data[i]);
        times_settle(&s->classes.data[i].wait, &c->class_wait.data[i]);
    }
    for (size_t i = 0; i < c->site_times.len; i++)
        times_settle(&s->sites.data[i].times, &c->site_times.data[i]);
    if (s->classes.len)
        qsort_r(s->classes.data, s->classes.len, sizeof(*s->classes.data), by_blocked,
                (void *)c->t);
    if (s->sites.len)
        qsort_r(s->sites.data, s->sites.len, sizeof(*s->sites.data), by_total, (void *)c->t);
}

int monitor_stats(const struct timeline *t, const struct stats_filter *f, struct monitor_stats *ret)
{
    struct monitor_stats s = {0};
    struct counting c = {.t = t, .f = f, .s = &s};
    int r = vec_extend(&s.threads, t->n_threads);
    c.kinds = idle_frame_roles(t);
    if (r == 0 && !c.kinds)
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < t->n_threads; i++)
        s.threads.data[i].thread = (uint32_t)i;
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        /*
         * A state ends at the thread's next node, not counting instants within the state. Nodes
         * refer to the node before them, so the end is found from there.
         */
        const struct tl_node n = tl_node(t, i);
        uint32_t p = n.prev;
        s.implied += graph_is_implied(t, &n);
        if (p == TL_NONE || !tl_is_state(n.kind))
            continue;
        uint32_t state = graph_state(t, p);
        if (tl_node(t, state).flags & TL_BLOCKED && n.kind != TL_DEADLOCK)
            r = wait_add(&c, state, (uint32_t)i);
    }
    for (size_t i = 0; r == 0 && i < t->n_threads; i++) {
        uint32_t last = t->threads[i].last;
        if (last == TL_NONE)
            continue;
        last = graph_state(t, last);
        if (tl_node(t, last).kind == TL_DEADLOCK && tl_node(t, last).prev != TL_NONE)
            last = graph_state(t, tl_node(t, last).prev);
        if (tl_node(t, last).flags & TL_BLOCKED)
            r = wait_add(&c, last, TL_NONE);
    }
    if (r == 0)
        settle(&c);
    free(c.kinds);
    map_release(&c.classes);
    map_release(&c.sites);
    map_release(&c.distinct);
    vec_release(&c.class_block);
    vec_release(&c.class_wait);
    vec_release(&c.site_times);
    if (r < 0)
        monitor_stats_release(&s);
    else
        *ret = s;
    return r;
}

void monitor_stats_release(struct monitor_stats *s)
{
    vec_release(&s->threads);
    vec_release(&s->classes);
    vec_release(&s->sites);
}
