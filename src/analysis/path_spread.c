/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much the length of a path would differ if the program ran again, by what the path itself shows. It is made of pieces of
 * the same kind over and over: runs that end at the same place, waits of the same sort. Of each kind the pieces, in order of
 * time, are divided into ten batches of as many; the variance of the batches' sums is that of the kind's total (the method of
 * batch means, of simulations: what a piece has in common with its neighbours, a processor that is slow for a while, is within
 * a batch and counts; more batches than ten would be too short for that, of fewer the variance is not known well). What happens
 * at random and is not done by the program, pauses and times without a processor, comes as often as a Poisson process has it. A
 * piece of which there is no other one says nothing.
 */
#include "analysis/critical_path.h"

#include "analysis/graph.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/timeline_index.h"

#include <errno.h>
#include <math.h>

/* Of more segments some are looked at. */
enum { SEGMENTS_MOST = 1 << 20, BATCHES = 10 };

struct kind {
    uint64_t n, each; /* pieces in all, and in a batch */
    uint64_t filled;  /* of the batch that is open, */
    double sum;       /* and its sum */
    double batches, mean, squares;
};

struct spread {
    const struct timeline *t;
    const struct critical_path *path;
    struct map index;
    VEC(struct kind) kinds;
    size_t step;

    /* The piece that is being looked at: it may have been interrupted, by what is no part of it. */
    struct piece {
        uint32_t node;
        uint8_t state;
        bool behind; /* the node, not before it */
        double ns;   /* 0: none */
    } piece;

    void (*take)(struct kind *, double);
    bool failed;
};

static bool is_random(const struct path_segment *s)
{
    return s->state == PATH_GC || s->state == PATH_PREEMPTED;
}

/* Pieces are of a kind when they are in one state, at one place, for objects of one class, with one timeout. */
static uint64_t key_of(const struct timeline *t, const struct piece *p)
{
    uint64_t state = p->state << 1 | p->behind;
    if (p->node == TL_NONE || !timeline_node_holds(t, p->node)) /* of a damaged index, where the path has not come by */
        return state;
    const struct tl_context *x = tl_context_of(t, p->node);
    uint32_t class = x->object < t->n_objects ? t->objects[x->object].class : TL_NONE;
    uint64_t at = hash_u64(state << 8 | t->nodes[p->node].kind) ^ ((uint64_t)x->stack << 32 | class);
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

static void piece_of(struct spread *p, uint8_t state, uint32_t node, bool behind, uint64_t from, uint64_t to)
{
    if (to <= from)
        return;
    if (p->piece.node != node || p->piece.state != state || p->piece.behind != behind)
        piece_ends(p);
    p->piece = (struct piece){node, state, behind, p->piece.ns + (double)(to - from)};
}

/* What a thread did without a wait, from one of its events to the next. */
static void visit_run(struct spread *p, const struct path_segment *s)
{
    uint64_t end = s->end;
    uint32_t later = TL_NONE;
    for (uint32_t n = s->node; end > s->start; later = n, n = graph_before(p->t, n)) {
        uint64_t from = n == TL_NONE ? s->start : MAX((uint64_t)p->t->nodes[n].time, s->start);
        if (from < end) {
            piece_of(p, s->state, later == TL_NONE ? s->node : later, later == TL_NONE, from, end);
            end = from;
        }
        if (n == TL_NONE)
            break;
    }
}

/* All pieces, from the end to the beginning. */
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
    double sum = 0, random = 0, step = (double)p->step;
    for (size_t i = 0; i < p->kinds.len; i++) {
        const struct kind *k = &p->kinds.data[i];
        if (k->batches > 1) /* the batches' variance, as many times as the pieces make batches */
            sum += k->squares / (k->batches - 1) * ((double)k->n / (double)k->each);
    }
    for (size_t i = 0; i < p->path->segments.len; i += p->step) {
        const struct path_segment *s = &p->path->segments.data[i];
        double ns = (double)(s->end - s->start);
        random += is_random(s) ? ns * ns : 0;
    }
    return sum * step * step + random * step;
}

int path_spread(const struct timeline *t, const struct critical_path *path, double *ret)
{
    struct spread p = {.t = t, .path = path, .step = 1 + path->segments.len / SEGMENTS_MOST};
    int r = visit(&p, count);
    for (size_t i = 0; r == 0 && i < p.kinds.len; i++)
        p.kinds.data[i].each = MAX(p.kinds.data[i].n / BATCHES, 1U);
    if (r == 0)
        r = visit(&p, add);
    if (r == 0)
        *ret = sqrt(variance(&p));
    map_release(&p.index);
    vec_release(&p.kinds);
    return r;
}
