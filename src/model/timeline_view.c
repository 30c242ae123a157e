/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline_view.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK = 16, STATES = TL_TIMEOUT, RUN_MAX = 4 * 10 + 2 * STATES };

static_assert(STATES < 16, "the number of kinds has four bits");

/* Nodes by thread: time << 8 | kind and the node's number, in order of time. What a pixel needs lies in few cache lines. */
struct lanes {
    uint64_t *at;
    uint64_t *block; /* the first of every BLOCK of `at` */
    uint32_t *node;
    uint64_t *first; /* by thread, and one more */
};

struct arrow {
    uint64_t time;
    uint32_t node, waker, thread, from;
};

struct timeline_view {
    const struct timeline *t;
    struct lanes states, instants;
    uint8_t column[STATES]; /* of kinds that occur */
    uint8_t kind[STATES];   /* of columns */
    size_t n_columns;
    uint64_t *sums;       /* by block of states and column: time before the block, from the beginning of all lanes */
    struct arrow *arrows; /* wake-ups by another thread, in order of time */
    size_t n_arrows;
};

static uint64_t time_of(uint64_t packed)
{
    return packed >> 8;
}

static enum tl_kind kind_of(uint64_t packed)
{
    return packed & 255;
}

/* When the i-th state of a lane ends. */
static uint64_t end_of(const struct timeline_view *v, uint32_t thread, uint64_t i)
{
    uint64_t begin = time_of(v->states.at[i]);
    if (i + 1 < v->states.first[thread + 1])
        return time_of(v->states.at[i + 1]);
    return MAX(v->t->threads[thread].end_ns, begin);
}

/* Room for so many elements, to be released by free(). What is large is filled in no order: large pages are missed less. */
static void *room(uint64_t n, size_t size)
{
    enum { LARGE = 2 << 20 };

    size_t bytes = (n + 1) * size;
    if (bytes < 2 * LARGE)
        return calloc(1, bytes);
    bytes = (bytes + LARGE - 1) & ~(size_t)(LARGE - 1);
    void *p = aligned_alloc(LARGE, bytes);
    if (p)
        (void)madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

/* Room for the nodes that were counted, by thread, in first[thread + 2]. */
static int lanes_place(struct lanes *l, size_t n_threads)
{
    for (size_t i = 2; i < n_threads + 2; i++)
        l->first[i] += l->first[i - 1];
    uint64_t n = l->first[n_threads + 1];
    l->at = room(n, sizeof(*l->at));
    l->node = room(n, sizeof(*l->node));
    l->block = room(n / BLOCK, sizeof(*l->block));
    return l->at && l->node && l->block ? 0 : -ENOMEM;
}

static void lanes_index(struct lanes *l, size_t n_threads)
{
    for (uint64_t i = 0; i < l->first[n_threads]; i += BLOCK)
        l->block[i / BLOCK] = l->at[i];
}

static inline void lanes_add(struct lanes *l, const struct tl_node *node, uint32_t i)
{
    uint64_t to = l->first[node->thread + 1]++;
    l->at[to] = (uint64_t)node->time << 8 | node->kind;
    l->node[to] = i;
}

static void lanes_release(struct lanes *l)
{
    free(l->at);
    free(l->block);
    free(l->node);
    free(l->first);
}

static int sums_init(struct timeline_view *v, const uint64_t counts[STATES])
{
    uint64_t n = v->states.first[v->t->n_threads], sum[STATES] = {0};
    for (unsigned k = 0; k < STATES; k++) {
        v->column[k] = (uint8_t)v->n_columns;
        v->kind[v->n_columns] = (uint8_t)k;
        v->n_columns += counts[k] > 0;
    }
    v->sums = room((n / BLOCK + 2) * v->n_columns, sizeof(*v->sums));
    if (!v->sums)
        return -ENOMEM;
    for (uint32_t thread = 0; thread < v->t->n_threads; thread++) {
        for (uint64_t i = v->states.first[thread]; i < v->states.first[thread + 1]; i++) {
            if (i % BLOCK == 0)
                memcpy(v->sums + i / BLOCK * v->n_columns, sum, v->n_columns * sizeof(*sum));
            sum[v->column[kind_of(v->states.at[i])]] += end_of(v, thread, i) - time_of(v->states.at[i]);
        }
    }
    return 0;
}

/* A wake-up that an arrow is drawn for: of a state, by a node of another thread. */
static bool is_arrow(const struct timeline *t, const struct tl_node *n)
{
    return tl_is_state((enum tl_kind)n->kind) && n->waker < t->n_nodes && t->nodes[n->waker].thread != n->thread;
}

/* Two passes over the nodes: how many there are of each, and where they belong. */
static int lanes_init(struct timeline_view *v, uint64_t counts[STATES])
{
    const struct timeline *t = v->t;
    v->states.first = calloc(t->n_threads + 2, sizeof(*v->states.first));
    v->instants.first = calloc(t->n_threads + 2, sizeof(*v->instants.first));
    if (!v->states.first || !v->instants.first)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node *n = &t->nodes[i];
        struct lanes *l = tl_is_state((enum tl_kind)n->kind) ? &v->states : &v->instants;
        l->first[n->thread + 2]++;
        if (l == &v->states)
            counts[n->kind]++;
        v->n_arrows += is_arrow(t, n);
    }
    int r = lanes_place(&v->states, t->n_threads);
    if (r == 0)
        r = lanes_place(&v->instants, t->n_threads);
    v->arrows = room(v->n_arrows, sizeof(*v->arrows));
    if (r < 0 || !v->arrows)
        return -ENOMEM;
    struct arrow *a = v->arrows;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node *n = &t->nodes[i];
        lanes_add(tl_is_state((enum tl_kind)n->kind) ? &v->states : &v->instants, n, i);
        if (is_arrow(t, n))
            *a++ = (struct arrow){n->time, i, n->waker, n->thread, t->nodes[n->waker].thread};
    }
    lanes_index(&v->states, t->n_threads);
    lanes_index(&v->instants, t->n_threads);
    return 0;
}

int timeline_view_new(struct timeline_view **ret, const struct timeline *t)
{
    struct timeline_view *v = calloc(1, sizeof(*v));
    if (!v)
        return -ENOMEM;
    v->t = t;
    uint64_t counts[STATES] = {0};
    int r = lanes_init(v, counts);
    if (r == 0)
        r = sums_init(v, counts);
    if (r < 0)
        timeline_view_free(v);
    else
        *ret = v;
    return r;
}

void timeline_view_free(struct timeline_view *v)
{
    if (!v)
        return;
    lanes_release(&v->states);
    lanes_release(&v->instants);
    free(v->sums);
    free(v->arrows);
    free(v);
}

/* The first of places from..to - 1 whose time is beyond `time`; near `from` it is found at once. */
static uint64_t search(const uint64_t *at, uint64_t from, uint64_t to, uint64_t time)
{
    uint64_t step = 1, lo = from, hi = from;
    while (hi < to && time_of(at[hi]) <= time) {
        lo = hi + 1;
        hi += step;
        step *= 2;
    }
    hi = MIN(hi, to);
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (time_of(at[mid]) <= time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The same in a lane, whose blocks tell where to look. */
static uint64_t behind(const struct lanes *l, uint64_t from, uint64_t to, uint64_t time)
{
    uint64_t first = from / BLOCK + 1, last = (to + BLOCK - 1) / BLOCK;
    if (first >= last)
        return search(l->at, from, to, time);
    uint64_t block = search(l->block, first, last, time);
    return search(l->at, MAX(from, (block - 1) * BLOCK), MIN(to, block * BLOCK), time);
}

/* Adds the time by column of states i to j - 1 of a lane; short ones one by one, others by the sums of their blocks. */
static void add_states(const struct timeline_view *v, uint32_t thread, uint64_t i, uint64_t j, uint64_t sum[STATES])
{
    uint64_t first = (i + BLOCK - 1) / BLOCK, last = j / BLOCK;
    bool blocks = first < last && j < v->states.first[v->t->n_threads];
    uint64_t until = blocks ? first * BLOCK : j;
    for (; i < until; i++)
        sum[v->column[kind_of(v->states.at[i])]] += end_of(v, thread, i) - time_of(v->states.at[i]);
    if (!blocks)
        return;
    const uint64_t *from = v->sums + first * v->n_columns, *to = v->sums + last * v->n_columns;
    for (size_t k = 0; k < v->n_columns; k++)
        sum[k] += to[k] - from[k];
    for (i = last * BLOCK; i < j; i++)
        sum[v->column[kind_of(v->states.at[i])]] += end_of(v, thread, i) - time_of(v->states.at[i]);
}

/* LEB128 into a place that has room; behind it. */
static inline uint8_t *put(uint8_t *to, uint64_t v)
{
    for (; v > 127; v >>= 7)
        *to++ = (uint8_t)(v | 128);
    *to++ = (uint8_t)v;
    return to;
}

/* A pixel from t0 on with the states i to j - 1 in it, and the beginning of j when that begins before its end. */
static uint8_t *put_pixel(const struct timeline_view *v, uint32_t thread, uint64_t i, uint64_t j, uint64_t t0, uint64_t pixel,
                          uint8_t *to)
{
    uint64_t sum[STATES] = {0}, kinds = 0, end = t0 + pixel;
    add_states(v, thread, i, j, sum);
    if (i < j && time_of(v->states.at[i]) < t0)
        sum[v->column[kind_of(v->states.at[i])]] -= t0 - time_of(v->states.at[i]);
    bool more = j < v->states.first[thread + 1] && time_of(v->states.at[j]) < end;
    if (more)
        sum[v->column[kind_of(v->states.at[j])]] += end - MAX(time_of(v->states.at[j]), t0);
    for (size_t k = 0; k < v->n_columns; k++) {
        sum[k] = MIN(sum[k] * 255 / pixel, (uint64_t)255);
        kinds += sum[k] > 0;
    }
    to = put(to, (j - i + more) << 4 | kinds);
    for (size_t k = 0; k < v->n_columns; k++) {
        if (!sum[k])
            continue;
        *to++ = v->kind[k];
        *to++ = (uint8_t)sum[k];
    }
    return to;
}

static void put_states(const struct timeline_view *v, const struct view_range *r, uint32_t thread, uint64_t pixel,
                       struct buf *out)
{
    _cleanup_(buf_release) struct buf runs = BUF(out->limit);
    const struct lanes *l = &v->states;
    uint64_t last = l->first[thread + 1], i = behind(l, l->first[thread], last, r->from), n = 0, at = r->from;
    i -= i > l->first[thread];
    while (i < last && at < r->to) {
        uint64_t begin = MAX(time_of(l->at[i]), at), end = end_of(v, thread, i);
        if (begin >= r->to || (kind_of(l->at[i]) == TL_DEAD && time_of(l->at[i]) < r->from && end <= begin))
            break; /* the thread ended before */
        /* A thread's end lasts: it is a state without a length here. */
        if (kind_of(l->at[i]) == TL_DEAD && end <= begin) {
            end = begin;
        } else if (end <= begin) {
            i++;
            continue;
        }
        uint8_t *room = buf_add(&runs, RUN_MAX), *to = room;
        if (!room)
            break;
        n++;
        if (end - begin >= pixel || i + 1 == last || end == begin) {
            end = MIN(end, r->to);
            to = put(to, (begin - at) << 1);
            to = put(to, end - begin);
            to = put(to, l->node[i]);
            to = put(to, kind_of(l->at[i]));
            at = end;
            i++;
        } else {
            /* States that end within the pixel are those before the last one that begins in it. */
            uint64_t j = behind(l, i + 1, last, begin + pixel) - 1;
            to = put(to, (begin - at) << 1 | 1);
            to = put_pixel(v, thread, i, j, begin, pixel, to);
            at = begin + pixel;
            i = j;
        }
        runs.len -= RUN_MAX - (size_t)(to - room);
    }
    if (buf_error(&runs))
        out->failed = buf_error(&runs);
    buf_varint(out, n);
    buf_bytes(out, runs.data, runs.len);
}

static void put_instants(const struct timeline_view *v, const struct view_range *r, uint32_t thread, uint64_t pixel,
                         struct buf *out)
{
    _cleanup_(buf_release) struct buf list = BUF(out->limit);
    const struct lanes *l = &v->instants;
    uint64_t last = l->first[thread + 1], n = 0, at = r->from;
    uint64_t i = r->from ? behind(l, l->first[thread], last, r->from - 1) : l->first[thread];
    while (i < last && time_of(l->at[i]) < r->to) {
        uint64_t time = time_of(l->at[i]);
        buf_varint(&list, time - at);
        buf_varint(&list, kind_of(l->at[i]));
        buf_varint(&list, l->node[i]);
        n++;
        at = time;
        i = pixel > 1 ? behind(l, i + 1, last, time + 3 * pixel) : i + 1;
    }
    buf_varint(out, n);
    buf_bytes(out, list.data, list.len);
}

static uint64_t pixel_of(const struct view_range *r)
{
    uint64_t pixel = r->to > r->from && r->width ? (r->to - r->from) / r->width : 1;
    return MAX(pixel, (uint64_t)1);
}

int timeline_view_rows(const struct timeline_view *v, const struct view_range *r, struct buf *out)
{
    uint64_t pixel = pixel_of(r);
    buf_varint(out, pixel);
    for (size_t i = 0; i < r->n_threads; i++) {
        put_states(v, r, r->threads[i], pixel, out);
        put_instants(v, r, r->threads[i], pixel, out);
    }
    return buf_error(out);
}

static size_t first_arrow(const struct timeline_view *v, uint64_t time)
{
    size_t lo = 0, hi = v->n_arrows;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v->arrows[mid].time < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int timeline_view_arrows(const struct timeline_view *v, const struct view_range *r, struct buf *out)
{
    _cleanup_(buf_release) struct buf list = BUF(out->limit);
    size_t lo = first_arrow(v, r->from), hi = first_arrow(v, r->to), found = 0, n = 0;
    uint8_t *shown = calloc(v->t->n_threads + 1, 1);
    if (!shown)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_threads; i++)
        shown[r->threads[i]] = 1;
    /* First how many of those looked at belong to the rows, then one of every so many of them. */
    size_t stride = (hi - lo) / VIEW_LOOKED_AT + 1;
    for (size_t i = lo; i < hi; i += stride)
        found += shown[v->arrows[i].thread] || shown[v->arrows[i].from];
    size_t every = found / VIEW_ARROWS + 1, seen = 0;
    uint64_t at = r->from;
    for (size_t i = lo; i < hi; i += stride) {
        const struct arrow *a = &v->arrows[i];
        if ((!shown[a->thread] && !shown[a->from]) || seen++ % every)
            continue;
        const struct tl_node *node = &v->t->nodes[a->node];
        buf_varint(&list, a->time - at);
        buf_varint(&list, a->time - v->t->nodes[a->waker].time);
        buf_varint(&list, a->node);
        buf_varint(&list, a->waker);
        buf_varint(&list, a->thread);
        buf_varint(&list, a->from);
        buf_varint(&list, node->edge | (node->flags & TL_INFERRED ? 16u : 0));
        at = a->time;
        n++;
    }
    free(shown);
    buf_varint(out, hi - lo);
    buf_varint(out, stride * every);
    buf_varint(out, n);
    buf_bytes(out, list.data, list.len);
    return buf_error(&list) ? buf_error(&list) : buf_error(out);
}

uint32_t timeline_view_at(const struct timeline_view *v, uint32_t thread, uint64_t time)
{
    uint64_t first = v->states.first[thread], i = behind(&v->states, first, v->states.first[thread + 1], time);
    return i > first ? v->states.node[i - 1] : TL_NONE;
}

void timeline_view_around(const struct timeline_view *v, uint32_t node, uint32_t *ret_before, uint32_t *ret_after,
                          uint64_t *ret_end)
{
    const struct lanes *l = &v->states;
    uint32_t thread = v->t->nodes[node].thread;
    uint64_t lo = l->first[thread], hi = l->first[thread + 1];
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (l->node[mid] < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_before = lo > l->first[thread] ? l->node[lo - 1] : TL_NONE;
    if (lo < l->first[thread + 1] && l->node[lo] == node) {
        *ret_end = end_of(v, thread, lo);
        lo++;
    } else {
        *ret_end = v->t->nodes[node].time;
    }
    *ret_after = lo < l->first[thread + 1] ? l->node[lo] : TL_NONE;
}

size_t timeline_view_woken(const struct timeline_view *v, uint32_t node, uint32_t *ret, size_t n)
{
    size_t found = 0, i = first_arrow(v, v->t->nodes[node].time), end = MIN(v->n_arrows, i + (size_t)VIEW_LOOKED_AT * 40);
    for (; i < end && found < n; i++) {
        if (v->arrows[i].waker == node)
            ret[found++] = v->arrows[i].node;
    }
    return found;
}
