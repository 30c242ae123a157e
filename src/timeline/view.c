/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/view_private.h"

#include "base/varint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_MAX = 4 * VARINT_MAX + 2 * STATES };

/*
 * Returns the first of the places from..to - 1, which are `stride` numbers apart, whose time is
 * after `time`. Takes constant time near `from`.
 */
static uint64_t search(const uint64_t *at, size_t stride, uint64_t from, uint64_t to, uint64_t time)
{
    uint64_t step = 1, lo = from, hi = from;
    while (hi < to && view_time(at[hi * stride]) <= time) {
        lo = hi + 1;
        hi += step;
        step *= 2;
    }
    hi = MIN(hi, to);
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (view_time(at[mid * stride]) <= time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/*
 * Returns the last mark of a level in at + 1 .. to - 1 that is not after a time, as a place in the
 * lane, or `at` when there is none.
 */
static uint64_t last_mark(const struct lanes *l, int level, uint64_t at, uint64_t to, uint64_t time)
{
    unsigned shift = view_shift(level);
    uint64_t first = (at >> shift) + 1,
             m = search(l->mark[level], l->stride, first, ((to - 1) >> shift) + 1, time);
    return m > first ? (m - 1) << shift : at;
}

/* Returns the first of the places from..to - 1 of a lane whose time is after `time`. */
static uint64_t behind(const struct lanes *l, uint64_t from, uint64_t to, uint64_t time)
{
    if (from >= to)
        return to;
    uint64_t at = from;
    for (int k = LEVELS; k-- > 0;)
        at = last_mark(l, k, at, to, time);
    return search(l->at, 1, at, MIN(to, at + (2 << FIRST_SHIFT)), time);
}

/*
 * Finds a mark of this or a lower level that follows i and lies between two times. Returns its
 * place, and its time in *ret. If there is none, returns 0, and *ret is the last marked place that
 * is not after them, or i.
 */
static uint64_t mark_within(const struct lanes *l, int level, uint64_t i, uint64_t last,
                            uint64_t from, uint64_t to, uint64_t *ret)
{
    uint64_t at = i;
    for (int k = level; k >= 0; k--) {
        at = last_mark(l, k, at, last, to);
        uint64_t time = at > i ? view_time(l->mark[k][(at >> view_shift(k)) * l->stride]) : 0;
        if (at > i && time >= from) {
            *ret = time;
            return at;
        }
    }
    *ret = at;
    return 0;
}

/*
 * Returns the last of the places i + 1 .. last - 1 that is not after a time, or i + 1 when all are;
 * there is no mark between `near` and it.
 */
static uint64_t last_until(const struct lanes *l, uint64_t i, uint64_t near, uint64_t last,
                           uint64_t time)
{
    uint64_t at = search(l->at, 1, near + 1, MIN(last, near + (2 << FIRST_SHIFT)), time) - 1;
    return MAX(at, i + 1);
}

/* Returns the level of marks of which several lie in each pixel of a part of a lane. */
static int level_of(uint64_t n, uint32_t width)
{
    enum { SEVERAL = 6 };

    int k = 0;
    while (k + 1 < LEVELS && n / width >> view_shift(k + 1) >= SEVERAL)
        k++;
    return k;
}

/* Adds the time of the states i to j - 1 of a lane to the columns, one state at a time. */
static void add_each(const struct timeline_view *v, uint32_t thread, uint64_t i, uint64_t j,
                     uint64_t sum[STATES])
{
    for (; i < j; i++)
        sum[v->column[view_kind(v->states.at[i])]] +=
            view_end(v, thread, i) - view_time(v->states.at[i]);
}

/* Adds the time of the states i to j - 1, using marks as far as possible. */
static void add_states(const struct timeline_view *v, uint32_t thread, uint64_t i, uint64_t j,
                       uint64_t sum[STATES])
{
    const struct lanes *l = &v->states;
    uint64_t mask = (1 << FIRST_SHIFT) - 1, first = (i + mask) & ~mask, last = j & ~mask;
    if (first >= last) {
        add_each(v, thread, i, j, sum);
        return;
    }
    int k = 0;
    while (k + 1 < LEVELS && ((first | last) & ((1u << view_shift(k + 1)) - 1)) == 0)
        k++;
    add_each(v, thread, i, first, sum);
    const uint64_t *from = l->mark[k] + (first >> view_shift(k)) * l->stride,
                   *to = l->mark[k] + (last >> view_shift(k)) * l->stride;
    for (size_t c = 0; c < v->n_columns; c++)
        sum[c] += to[1 + c] - from[1 + c];
    add_each(v, thread, last, j, sum);
}

/* A run that is being built: the states from i to j - 1, and the time when the j-th begins. */
struct run {
    uint64_t i, j, begin, end;
};

/*
 * Writes how many states a run has and the share of each kind. `whole` is set if the run begins
 * where its first state does.
 */
static uint8_t *put_many(const struct timeline_view *v, uint32_t thread, const struct run *r,
                         bool whole, uint8_t *to)
{
    uint64_t sum[STATES] = {0}, kinds = 0;
    add_states(v, thread, r->i, r->j, sum);
    uint64_t first = whole ? 0 : v->states.at[r->i];
    if (!whole && view_time(first) < r->begin)
        sum[v->column[view_kind(first)]] -= r->begin - view_time(first);
    for (size_t k = 0; k < v->n_columns; k++) {
        sum[k] = MIN(sum[k] * 255 / (r->end - r->begin), (uint64_t)255);
        kinds += sum[k] > 0;
    }
    to = varint_put(to, (r->j - r->i) << 4 | kinds);
    for (size_t k = 0; k < v->n_columns; k++) {
        if (!sum[k])
            continue;
        *to++ = v->kind[k];
        *to++ = (uint8_t)sum[k];
    }
    return to;
}

/*
 * Finds the end of a run that begins within state r->i: at a mark about a pixel later, found
 * without reading the states themselves; otherwise at the last state that begins in the pixel, or
 * with the state itself. Returns false when there is nothing more.
 */
static bool end_run(const struct timeline_view *v, uint32_t thread, const struct view_range *range,
                    uint64_t pixel, int level, struct run *r)
{
    const struct lanes *l = &v->states;
    uint64_t last = l->first[thread + 1], near;
    for (; r->i < last; r->i++) {
        r->j = mark_within(l, level, r->i, last, r->begin + pixel - pixel / 4, r->begin + pixel,
                           &near);
        if (r->j) {
            r->end = near;
            return true;
        }
        r->j = r->i + 1;
        r->end = view_end(v, thread, r->i);
        if (view_kind(l->at[r->i]) == TL_DEAD && r->end <= r->begin) {
            /* the end of a thread lasts until the end of the recording; here it has no length */
            r->end = r->begin;
            return view_time(l->at[r->i]) >= range->from;
        }
        if (r->end > r->begin)
            break;
    }
    if (r->i < last && r->j < last && r->end - r->begin < pixel) {
        uint64_t j = last_until(l, r->i, near, last, r->begin + pixel);
        if (view_time(l->at[j]) > r->begin) { /* otherwise the file is not in order */
            r->j = j;
            r->end = view_time(l->at[j]);
        }
    }
    return r->i < last;
}

/* Appends the runs of a lane from its i-th state on and returns their number. */
static uint64_t put_runs(const struct timeline_view *v, const struct view_range *range,
                         uint32_t thread, uint64_t pixel, uint64_t i, struct buf *runs)
{
    const struct lanes *l = &v->states;
    uint64_t last = l->first[thread + 1], n = 0, at = range->from;
    int level = level_of(behind(l, i, last, range->to) - i, range->width);
    struct run r = {.i = i, .begin = i < last ? MAX(view_time(l->at[i]), at) : 0};
    while (r.i < last && r.begin < range->to && end_run(v, thread, range, pixel, level, &r)) {
        bool many = r.j > r.i + 1;
        uint8_t *room = buf_add(runs, RUN_MAX), *to = room;
        if (!room)
            break;
        n++;
        r.end = many ? r.end : MIN(r.end, range->to);
        to = varint_put(to, (r.begin - at) << 1 | many);
        to = varint_put(to, r.end - r.begin);
        if (many) {
            to = put_many(v, thread, &r, at == r.begin && n > 1, to);
        } else {
            to = varint_put(to, l->node[r.i]);
            to = varint_put(to, view_kind(l->at[r.i]));
        }
        at = r.begin = r.end;
        r.i = r.j;
        runs->len -= RUN_MAX - (size_t)(to - room);
    }
    return n;
}

static void put_states(const struct timeline_view *v, const struct view_range *r, uint32_t thread,
                       uint64_t pixel, struct buf *out)
{
    _cleanup_(buf_release) struct buf runs = BUF(out->limit);
    const struct lanes *l = &v->states;
    uint64_t first = l->first[thread], i = behind(l, first, l->first[thread + 1], r->from);
    uint64_t n = put_runs(v, r, thread, pixel, i - (i > first), &runs);
    if (buf_error(&runs))
        out->failed = buf_error(&runs);
    buf_varint(out, n);
    buf_bytes(out, runs.data, runs.len);
}

static void put_instants(const struct timeline_view *v, const struct view_range *r, uint32_t thread,
                         uint64_t pixel, struct buf *out)
{
    _cleanup_(buf_release) struct buf list = BUF(out->limit);
    const struct lanes *l = &v->instants;
    uint64_t last = l->first[thread + 1], n = 0, at = r->from;
    uint64_t i = r->from ? behind(l, l->first[thread], last, r->from - 1) : l->first[thread];
    int level = level_of(behind(l, i, last, r->to) - i, r->width / 3 + 1);
    while (i < last && view_time(l->at[i]) < r->to) {
        uint64_t time = MAX(view_time(l->at[i]), at);
        buf_varint(&list, time - at);
        buf_varint(&list, view_kind(l->at[i]));
        buf_varint(&list, l->node[i]);
        n++;
        at = time;
        i++;
        uint64_t near, from = time + 3 * pixel, found;
        if (pixel > 1 && i < last && view_time(l->at[i]) < from) {
            found = mark_within(l, level, i, last, from, from + pixel, &near);
            i = found ? found
                      : search(l->at, 1, near, MIN(last, near + (2 << FIRST_SHIFT)), from - 1);
        }
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
        struct arrow a = {0};
        (void)view_arrow_of(v->t, v->arrows[mid], &a);
        if (a.time < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/*
 * A selection of the arrows lo to hi - 1, `stride` apart, taken from a level of samples if the
 * stride permits that.
 */
struct looking {
    const struct timeline_view *v;
    const struct arrow *sample; /* NULL: each arrow itself is examined */
    size_t i, end, step, stride;
};

static struct looking select_arrows(const struct timeline_view *v, size_t lo, size_t hi)
{
    size_t least = (hi - lo) / VIEW_LOOKED_AT + 1;
    int k = 0;
    while (k < LEVELS && least >> FAN_SHIFT * (k + 1))
        k++;
    unsigned shift = FAN_SHIFT * (unsigned)k;
    size_t unit = (size_t)1 << shift, step = (least + unit - 1) >> shift;
    return (struct looking){v,
                            k ? v->sample[k - 1] : NULL,
                            (lo + unit - 1) >> shift,
                            (hi + unit - 1) >> shift,
                            step,
                            step << shift};
}

/* Finds the next arrow that leads to or from a visible row; returns false at the end. */
static bool next_arrow(struct looking *l, const uint8_t *shown, struct arrow *ret)
{
    size_t n_threads = l->v->t->n_threads;
    for (; l->i < l->end; l->i += l->step) {
        if (l->sample)
            *ret = l->sample[l->i];
        else if (!view_arrow_of(l->v->t, l->v->arrows[l->i], ret))
            continue;
        if (MAX(ret->thread, ret->from) < n_threads && (shown[ret->thread] || shown[ret->from])) {
            l->i += l->step;
            return true;
        }
    }
    return false;
}

int timeline_view_arrows(const struct timeline_view *v, const struct view_range *r, struct buf *out)
{
    _cleanup_(buf_release) struct buf list = BUF(out->limit);
    _cleanup_free_ uint8_t *shown = calloc(v->t->n_threads + 1, 1);
    size_t lo = first_arrow(v, r->from), hi = first_arrow(v, r->to), found = 0, n = 0, seen = 0;
    if (!shown)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_threads; i++)
        shown[r->threads[i]] = 1;
    /*
     * First counts how many of the examined arrows belong to the rows, then takes one of every so
     * many of them.
     */
    struct arrow a;
    const struct looking all = select_arrows(v, lo, MAX(hi, lo));
    for (struct looking l = all; next_arrow(&l, shown, &a);)
        found++;
    size_t every = found / VIEW_ARROWS + 1;
    uint64_t at = r->from;
    for (struct looking l = all; next_arrow(&l, shown, &a);) {
        if (seen++ % every)
            continue;
        a.time = MAX(a.time, at);
        buf_varint(&list, a.time - at);
        buf_varint(&list, a.since);
        buf_varint(&list, a.node);
        buf_varint(&list, a.waker);
        buf_varint(&list, a.thread);
        buf_varint(&list, a.from);
        buf_varint(&list, a.edge);
        at = a.time;
        n++;
    }
    buf_varint(out, hi - lo);
    buf_varint(out, all.stride * every);
    buf_varint(out, n);
    buf_bytes(out, list.data, list.len);
    return buf_error(&list) ? buf_error(&list) : buf_error(out);
}

uint32_t timeline_view_at(const struct timeline_view *v, uint32_t thread, uint64_t time)
{
    if (thread >= v->t->n_threads)
        return TL_NONE;
    uint64_t first = v->states.first[thread],
             i = behind(&v->states, first, v->states.first[thread + 1], time);
    return i > first ? v->states.node[i - 1] : TL_NONE;
}

void timeline_view_around(const struct timeline_view *v, uint32_t node, uint32_t *ret_before,
                          uint32_t *ret_after, uint64_t *ret_end)
{
    const struct lanes *l = &v->states;
    uint32_t thread = tl_node(v->t, node).thread;
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
        *ret_end = view_end(v, thread, lo);
        lo++;
    } else {
        *ret_end = tl_node(v->t, node).time;
    }
    *ret_after = lo < l->first[thread + 1] ? l->node[lo] : TL_NONE;
}

size_t timeline_view_woken(const struct timeline_view *v, uint32_t node, uint32_t *ret, size_t n)
{
    size_t found = 0, i = first_arrow(v, tl_node(v->t, node).time),
           end = MIN(v->n_arrows, i + (size_t)VIEW_LOOKED_AT * 40);
    struct arrow a;
    for (; i < end && found < n; i++) {
        if (view_arrow_of(v->t, v->arrows[i], &a) && a.waker == node)
            ret[found++] = a.node;
    }
    return found;
}
