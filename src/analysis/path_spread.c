/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much the length of a path would vary if the program ran again, as far as the path itself
 * shows. A path consists of many pieces of the same kinds: runs that end at the same place, waits
 * of the same sort. The pieces of each kind, in chronological order, are divided into ten batches
 * of equal size; the variance of the batches' sums estimates that of the kind's total. This is the
 * method of batch means known from simulation: what a piece has in common with its neighbours, such
 * as a processor that is slow for a while, stays within a batch and is counted. More than ten
 * batches would be too short for that; with fewer, the variance would be poorly known. Random
 * events that the program does not cause, pauses and times without a processor, are modelled as a
 * Poisson process. A piece that is the only one of its kind contributes nothing.
 */
#include "analysis/critical_path.h"

#include "analysis/graph.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/order.h"
#include "base/vec.h"
#include "timeline/index.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* the largest number of segments that is examined; larger paths are sampled */
enum { SEGMENTS_MOST = 1 << 20, BATCHES = 10, SPANS_LEAST = 5 };

struct kind {
    uint64_t n, each; /* n: pieces in all; each: pieces in a batch */
    uint64_t filled;  /* pieces in the batch that is open */
    double sum;       /* sum of the open batch */
    double batches, mean, squares;
};

struct spread {
    const struct timeline *t;
    const struct critical_path *path;
    struct map index;
    VEC(struct kind) kinds;
    size_t step;

    /*
     * The piece that is being visited. Something that does not belong to it may have interrupted
     * it.
     */
    struct piece {
        uint32_t node;
        uint8_t state;
        bool behind; /* whether the piece follows the node; otherwise it precedes it */
        double ns;   /* 0: there is no piece */
    } piece;

    void (*take)(struct kind *, double);
    bool failed;
};

static bool is_random(const struct path_segment *s)
{
    return s->state == PATH_GC || s->state == PATH_PREEMPTED || s->state == PATH_THROTTLED;
}

/*
 * Pieces are of the same kind when they have the same state, place, class of objects and timeout.
 */
static uint64_t key_of(const struct timeline *t, const struct piece *p)
{
    uint64_t state = p->state << 1 | p->behind;
    /* the index is damaged, at a place that the path did not touch */
    if (p->node == TL_NONE || !timeline_node_holds(t, p->node))
        return state;
    const struct tl_context *x = tl_context_of(t, p->node);
    uint32_t class = x->object < t->n_objects ? t->objects[x->object].class : TL_NONE;
    uint64_t at =
        hash_u64(state << 8 | tl_node(t, p->node).kind) ^ ((uint64_t)x->stack << 32 | class);
    return hash_u64(hash_u64(at) ^ x->timeout_ms);
}

static struct kind *kind_of(struct spread *p)
{
    bool added = false;
    uint64_t *slot = map_at(&p->index, key_of(p->t, &p->piece), p->kinds.len, &added);
    if (!slot || (added && vec_push(&p->kinds, (struct kind){0}) < 0))
        return NULL;
    return &p->kinds.data[*slot];
}

static void count(struct kind *k, double ns)
{
    k->n++;
}

static void add(struct kind *k, double ns)
{
    k->sum += ns;
    if (++k->filled < k->each)
        return;
    double from_mean = k->sum - k->mean;
    k->mean += from_mean / ++k->batches;
    k->squares += from_mean * (k->sum - k->mean);
    k->filled = 0;
    k->sum = 0;
}

static void piece_ends(struct spread *p)
{
    struct kind *k = p->piece.ns > 0 ? kind_of(p) : NULL;
    if (k)
        p->take(k, p->piece.ns);
    else if (p->piece.ns > 0)
        p->failed = true;
    p->piece.ns = 0;
}

static void piece_of(struct spread *p, uint8_t state, uint32_t node, bool behind, uint64_t from,
                     uint64_t to)
{
    if (to <= from)
        return;
    if (p->piece.node != node || p->piece.state != state || p->piece.behind != behind)
        piece_ends(p);
    p->piece = (struct piece){node, state, behind, p->piece.ns + (double)(to - from)};
}

/* Visits what a thread did without waiting, from one of its events to the next. */
static void visit_run(struct spread *p, const struct path_segment *s)
{
    uint64_t end = s->end;
    uint32_t later = TL_NONE;
    for (uint32_t n = s->node; end > s->start; later = n, n = graph_before(p->t, n)) {
        uint64_t from = n == TL_NONE ? s->start : MAX((uint64_t)tl_node(p->t, n).time, s->start);
        if (from < end) {
            piece_of(p, s->state, later == TL_NONE ? s->node : later, later == TL_NONE, from, end);
            end = from;
        }
        if (n == TL_NONE)
            break;
    }
}

/* Visits all pieces, from the end to the beginning. */
static int visit(struct spread *p, void (*take)(struct kind *, double))
{
    p->take = take;
    for (size_t i = 0, n = p->path->segments.len; i < n; i += p->step) {
        const struct path_segment *s = &p->path->segments.data[n - 1 - i];
        if (s->state == PATH_RUN)
            visit_run(p, s);
        else if (!is_random(s))
            piece_of(p, s->state, s->node, false, s->start, s->end);
    }
    piece_ends(p);
    return p->failed ? -ENOMEM : 0;
}

static double variance(struct spread *p)
{
    double sum = 0, step = (double)p->step;
    for (size_t i = 0; i < p->kinds.len; i++) {
        const struct kind *k = &p->kinds.data[i];
        if (k->batches > 1) /* the variance of the batches, times the number of batches */
            sum += k->squares / (k->batches - 1) * ((double)k->n / (double)k->each);
    }
    return sum * step * step;
}

/*
 * Estimates the standard deviation of random events within a span of time, from consecutive spans
 * of that length: half of the differences between neighbours are below 0.954 of it. (The variance
 * of the spans would not do, because a program's beginning differs from its end.)
 */
static int random_spread(const struct critical_path *path, uint64_t span, double *ret)
{
    VEC(uint64_t) differ = {0};
    uint64_t next = path->segments.data[0].start + span, sum = 0, before = 0;
    size_t spans = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < path->segments.len; i++) {
        const struct path_segment *s = &path->segments.data[i];
        for (; r == 0 && s->start >= next; next += span, before = sum, sum = 0)
            if (spans++ > 0)
                r = vec_push(&differ, MAX(sum, before) - MIN(sum, before));
        sum += is_random(s) ? s->end - s->start : 0;
    }
    size_t middle = differ.len / 2;
    if (differ.len)
        qsort(differ.data, differ.len, sizeof(*differ.data), order_ascending);
    *ret = differ.len ? (double)differ.data[middle] / 0.954 : 0;
    vec_release(&differ);
    return r;
}

/*
 * Estimates the standard deviation of the random events on the whole path. When the path is a small
 * part of the recording, the whole recording is examined: random events come in clusters (threads
 * share a processor until the system notices that another one is idle), of which one path may
 * contain none and the next one several.
 */
static int random_spread_of(const struct timeline *t, const struct critical_path *path, double *ret)
{
    struct critical_path all = {0};
    double more = 0;
    int r = random_spread(path, MAX(path->length / BATCHES, 1U), ret);
    *ret *= sqrt(BATCHES);
    if (r < 0 || path->length > t->end_ns / SPANS_LEAST)
        return r;
    r = critical_path(t, &PATH_OPTIONS, &all);
    if (r == 0)
        r = random_spread(&all, path->length, &more);
    *ret = MAX(*ret, more);
    critical_path_release(&all);
    return r;
}

int path_spread(const struct timeline *t, const struct critical_path *path, double *ret)
{
    struct spread p = {.t = t, .path = path, .step = 1 + path->segments.len / SEGMENTS_MOST};
    double random = 0;
    int r = visit(&p, count);
    for (size_t i = 0; r == 0 && i < p.kinds.len; i++)
        p.kinds.data[i].each = MAX(p.kinds.data[i].n / BATCHES, 1U);
    if (r == 0)
        r = visit(&p, add);
    if (r == 0)
        r = random_spread_of(t, path, &random);
    if (r == 0)
        *ret = sqrt(variance(&p) + random * random);
    map_release(&p.index);
    vec_release(&p.kinds);
    return r;
}
