/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if.h"

#include "analysis/graph.h"
#include "analysis/replay.h"
#include "base/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* From so many nodes on threads work beside; how many nodes the one is ahead at least; how many are mapped at a time. */
enum { BESIDE_NODES = 1 << 18, AHEAD_NODES = 1 << 16, MAP_NODES = 1 << 20 };

static bool stack_inside(const struct timeline *t, const uint8_t *stacks, uint32_t node)
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

int replay_init(struct replay *ret, const struct timeline *t, const struct scaled *what, double factor)
{
    struct replay r = {.t = t, .what = what, .factor = factor};
    int result = what->objects ? sections_init(&r.sections, t, &what->list, what->objects) : 0;
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
    *r = (struct replay){0};
}

/* The thread's own time from start, that of the node before, to node n: scaled as far as it is inside. */
static uint64_t own(struct replay *r, uint32_t n, uint64_t start)
{
    const struct timeline *t = r->t;
    const struct tl_node *at = &t->nodes[n];
    uint64_t end = at->time, inside = 0;
    if (start >= end)
        return 0;
    if (r->what->objects)
        inside = sections_inside(&r->sections, at->thread, start, end);
    if (r->what->stacks && at->prev < n && inside < end - start) {
        /* A wait is where its stack says. A run has none: it is inside when what comes before and behind it is. */
        uint32_t state = graph_state_seen(t, at->prev, &r->seen[at->thread]);
        if (stack_inside(t, r->what->stacks, t->nodes[state].flags & TL_BLOCKED ? state : n))
            inside = end - start;
    }
    r->scaled += inside;
    return (end - start - inside) + (uint64_t)((double)inside * r->factor + 0.5);
}

uint64_t replay_node(struct replay *r, const uint64_t *times, uint32_t n)
{
    const struct tl_node *nodes = r->t->nodes, *at = &nodes[n];
    bool caused = graph_caused(at, n);
    uint64_t time = at->time;
    if (at->prev == TL_NONE)
        return caused ? times[at->waker] + (time - nodes[at->waker].time) : time;
    if (!caused)
        return times[at->prev] + own(r, n, nodes[at->prev].time);
    if (!graph_woken(r->t, n))
        return MAX(times[at->prev] + (time - nodes[at->prev].time), times[at->waker]);
    return MAX(times[at->prev], times[at->waker] + (time - nodes[at->waker].time));
}

/*
 * The order kept: nodes lie in topological order. The same as replay_node, node by node, but a pass over a hundred million
 * nodes has no time to look back: what is asked of a thread's nodes before is at hand. The threads' own times hang on no
 * other's: they are worked out ahead, by a thread of its own.
 */
struct ahead {
    struct replay *r;
    uint64_t *times; /* per node: its own time, until the replay comes to it */
    size_t done;
    int error;
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
};

static void tell(struct ahead *a, size_t done, int error)
{
    if (done % AHEAD_NODES != 0 && done != a->r->t->n_nodes && error == 0)
        return;
    pthread_mutex_lock(&a->lock);
    a->done = done;
    a->error = error;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
}

/* What else a node leads to is looked at where it is used. */
static bool leads_somewhere(const struct timeline *t, const struct tl_node *at)
{
    return at->thread < t->n_threads && at->context < t->n_contexts;
}

static void *own_times(void *arg)
{
    struct ahead *a = arg;
    const struct timeline *t = a->r->t;
    size_t i = 0;
    uint64_t *last = malloc((t->n_threads + 1) * sizeof(*last)); /* per thread: the time of its node before */
    int error = last ? 0 : -ENOMEM;
    for (size_t k = 0; error == 0 && k < t->n_threads; k++)
        last[k] = UINT64_MAX;
    for (; error == 0 && i < t->n_nodes; tell(a, ++i, 0)) {
        const struct tl_node *at = &t->nodes[i];
        if (t->mapped && i % MAP_NODES == 0)
            pages_to_read(at, MIN(t->n_nodes - i, (size_t)MAP_NODES) * sizeof(*at));
        if (!leads_somewhere(t, at)) {
            error = -EPROTO;
            break;
        }
        if (!graph_caused(at, i))
            a->times[i] = own(a->r, (uint32_t)i, last[at->thread]);
        last[at->thread] = at->time;
    }
    free(last);
    if (error == 0 && a->r->sections.failed)
        error = -ENOMEM;
    tell(a, i, error);
    return NULL;
}

static void own_times_begin(struct ahead *ret, struct replay *r, uint64_t *times)
{
    *ret = (struct ahead){.r = r, .times = times};
    pthread_mutex_init(&ret->lock, NULL);
    pthread_cond_init(&ret->more, NULL);
    huge_pages(times, r->t->n_nodes * sizeof(*times));
    ret->threaded = r->t->n_nodes >= BESIDE_NODES && pthread_create(&ret->thread, NULL, own_times, ret) == 0;
    if (!ret->threaded)
        own_times(ret);
}

/* Waits for the next own times; how many there are. */
static size_t own_times_wait(struct ahead *a, size_t beyond)
{
    pthread_mutex_lock(&a->lock);
    while (a->done <= beyond && a->error == 0)
        pthread_cond_wait(&a->more, &a->lock);
    size_t done = a->done;
    pthread_mutex_unlock(&a->lock);
    return done;
}

static int own_times_end(struct ahead *a)
{
    if (a->threaded)
        (void)pthread_join(a->thread, NULL);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->more);
    return a->error;
}

/* Where a thread is in the replay. */
struct lane {
    uint64_t time, now; /* of its last node: as recorded, replayed */
    uint64_t since;     /* where the wait began that its last node is part of */
    bool begun, blocked;
};

static int replay_kept(struct ahead *a)
{
    const struct timeline *t = a->r->t;
    const struct tl_node *nodes = t->nodes;
    uint64_t *times = a->times;
    struct lane *lanes = calloc(t->n_threads + 1, sizeof(*lanes));
    for (size_t i = 0, done = 0; lanes && i < t->n_nodes; i++) {
        if (i == done && (done = own_times_wait(a, i)) <= i)
            break;
        const struct tl_node *at = &nodes[i];
        struct lane *lane = &lanes[at->thread];
        uint64_t time = at->time, now;
        bool blocked = at->flags & TL_BLOCKED;
        if (!graph_caused(at, i)) {
            now = lane->begun ? lane->now + times[i] : time;
        } else {
            uint64_t from = nodes[at->waker].time, woken = times[at->waker];
            if (!lane->begun)
                now = woken + (time - from);
            else if (from >= (lane->blocked ? lane->since : time))
                now = MAX(lane->now, woken + (time - from));
            else
                now = MAX(lane->now + (time - lane->time), woken);
        }
        *lane = (struct lane){time, now, lane->blocked ? lane->since : time, true, blocked};
        times[i] = now;
    }
    int result = own_times_end(a);
    if (!lanes)
        result = -ENOMEM;
    free(lanes);
    return result;
}

int what_if_times(const struct timeline *t, const struct what_if *w, uint64_t *times)
{
    struct scaled what;
    struct replay r;
    int result = scaled_init(&what, t, w);
    if (result < 0)
        return result;
    result = replay_init(&r, t, &what, w->factor);
    if (result == 0) {
        struct ahead ahead;
        own_times_begin(&ahead, &r, times);
        result = replay_kept(&ahead);
        replay_release(&r);
    }
    scaled_release(&what);
    return result;
}

/*
 * The thread's last node not behind a moment, or TL_NONE: looked for from the moment back, among all nodes, and from the
 * thread's end back, whichever meets it first.
 */
static uint32_t node_at(const struct timeline *t, uint32_t thread, uint64_t at)
{
    size_t low = 0, high = t->n_nodes;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (t->nodes[mid].time <= at)
            low = mid + 1;
        else
            high = mid;
    }
    uint32_t n = t->threads[thread].last;
    for (; low > 0 && n != TL_NONE && t->nodes[n].time > at; low--, n = graph_before(t, n))
        if (t->nodes[low - 1].thread == thread)
            return (uint32_t)low - 1;
    return n != TL_NONE && t->nodes[n].time <= at ? n : TL_NONE;
}

/* New time of a moment: of the last node of the end thread before it, and what lies between kept. */
static uint64_t moment(const struct timeline *t, const uint64_t *times, uint32_t thread, uint64_t at)
{
    uint32_t n = node_at(t, thread, at);
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

/* The path, and what of it lies in what is scaled. */
struct path_part {
    const struct timeline *t;
    const struct path_options *options;
    const struct scaled *what;
    struct critical_path path;
    uint64_t inside;
    int result;
};

static void find_path(struct path_part *p)
{
    struct sections sections = {0};
    p->result = critical_path(p->t, p->options, &p->path);
    if (p->result == 0 && p->what->objects)
        p->result = sections_init(&sections, p->t, &p->what->list, p->what->objects);
    for (size_t i = 0; p->result == 0 && i < p->path.segments.len; i++) {
        const struct path_segment *s = &p->path.segments.data[i];
        uint64_t inside = p->what->objects ? sections_inside(&sections, s->thread, s->start, s->end) : 0;
        if (p->what->stacks && s->node != TL_NONE && stack_inside(p->t, p->what->stacks, s->node))
            inside = s->end - s->start;
        p->inside += inside;
    }
    if (p->result == 0 && sections.failed)
        p->result = -ENOMEM;
    sections_release(&sections);
}

static void *find_beside(void *arg)
{
    find_path(arg);
    return NULL;
}

static uint64_t makespan(const struct path_part *p, const uint64_t *times)
{
    const struct path_segment *first = &p->path.segments.data[0];
    return new_end(p->t, times, p->options, &p->path) - moment(p->t, times, first->thread, first->start);
}

static int replay_both(const struct timeline *t, double factor, struct path_part *p, uint64_t *times,
                       struct what_if_answer *ret)
{
    struct replay r;
    struct ahead ahead;
    int result = replay_init(&r, t, p->what, factor);
    if (result < 0)
        return result;
    own_times_begin(&ahead, &r, times);
    pthread_t finder;
    bool beside = t->n_nodes >= BESIDE_NODES && pthread_create(&finder, NULL, find_beside, p) == 0;
    if (!beside)
        find_path(p);
    result = replay_kept(&ahead);
    if (beside)
        (void)pthread_join(finder, NULL);
    if (result == 0)
        result = p->result;
    struct what_if_answer a = {.before = p->path.length, .scaled_ns = r.scaled};
    replay_release(&r);
    if (result < 0)
        return result;
    a.kept = makespan(p, times);
    a.upper_bound = p->path.length - (uint64_t)((double)p->inside * (1 - factor));
    result = replay_init(&r, t, p->what, factor);
    if (result < 0)
        return result;
    result = replay_arbitrated(&r, times);
    a.arbitrated = result < 0 ? 0 : makespan(p, times);
    replay_release(&r);
    *ret = a;
    return result;
}

bool what_if_checks(const struct timeline *t)
{
    return !replay_arbitrates(t) && t->holds && t->hold_first;
}

int what_if(const struct timeline *t, const struct path_options *o, const struct what_if *w, struct what_if_answer *ret)
{
    struct scaled what;
    struct what_if_answer a = {0};
    int result = scaled_init(&what, t, w);
    if (result < 0)
        return result;
    struct path_part p = {.t = t, .options = o, .what = &what};
    uint64_t *times = malloc((t->n_nodes + 1) * sizeof(*times));
    result = times ? replay_both(t, w->factor, &p, times, &a) : -ENOMEM;
    if (result == 0)
        *ret = a;
    free(times);
    critical_path_release(&p.path);
    scaled_release(&what);
    return result;
}
