/* SPDX-License-Identifier: Apache-2.0 */
#include "page/pyramid.h"

#include "base/cursor.h"
#include "page/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH_MAX = 2048, WIDTH_MIN = 16, LEVELS_MAX = 12 };

void page_path_picture(const struct critical_path *p, const struct view_range *r, struct buf *out)
{
    _cleanup_(buf_release) struct buf list = BUF(out->limit);
    uint64_t pixel = MAX((r->to - r->from) / r->width, (uint64_t)1), at = 0, n = 0;
    for (size_t i = critical_path_after(p, 0, r->from);
         i < p->segments.len && p->segments.data[i].start < r->to;) {
        const struct path_segment *s = &p->segments.data[i];
        buf_varint(&list, s->start - at);
        buf_varint(&list, s->end - s->start);
        buf_varint(&list, s->thread);
        buf_varint(&list, i);
        buf_varint(&list, s->edge | (s->inferred ? 16u : 0));
        at = s->start;
        n++;
        i = s->end - s->start >= pixel ? i + 1 : critical_path_after(p, i + 1, s->start + pixel);
    }
    buf_varint(out, n);
    buf_bytes(out, list.data, list.len);
}

struct pyramid {
    const struct timeline *t;
    const struct timeline_view *view;
    const struct critical_path *path;
    uint32_t width; /* width of a part in pixels */
    uint8_t *named; /* one bit for each node: it is described individually */
    size_t n_named;
};

static void name_node(struct pyramid *p, uint64_t node)
{
    if (node >= p->t->n_nodes || p->n_named >= PYRAMID_NODES || p->named[node / 8] >> node % 8 & 1)
        return;
    p->named[node / 8] |= (uint8_t)(1u << node % 8);
    p->n_named++;
}

static void skip(struct cursor *c, uint64_t n)
{
    while (n-- > 0)
        (void)cursor_varint(c);
}

/* Marks the states and instants in rows that timeline_view_rows wrote. */
static void name_rows(struct pyramid *p, const struct buf *rows, size_t n_rows)
{
    struct cursor c = cursor_of(rows->data, rows->len);
    while (n_rows-- > 0 && !c.failed) {
        for (uint64_t n = cursor_varint(&c); n > 0 && !c.failed; n--) {
            bool many = cursor_varint(&c) & 1;
            skip(&c, 1);
            if (many) {
                cursor_skip(&c, 2 * (cursor_varint(&c) & 15));
                continue;
            }
            name_node(p, cursor_varint(&c));
            skip(&c, 1);
        }
        for (uint64_t n = cursor_varint(&c); n > 0 && !c.failed; n--) {
            skip(&c, 2);
            name_node(p, cursor_varint(&c));
        }
    }
}

/* Marks the nodes of arrows together with their causes. */
static void name_arrows(struct pyramid *p, const struct buf *arrows)
{
    struct cursor c = cursor_of(arrows->data, arrows->len);
    skip(&c, 2);
    for (uint64_t n = cursor_varint(&c); n > 0 && !c.failed; n--) {
        skip(&c, 2);
        name_node(p, cursor_varint(&c));
        name_node(p, cursor_varint(&c));
        skip(&c, 3);
    }
}

/* Writes a part of time: the rows in groups, then the arrows and the path. */
static int part_json(struct json *j, struct pyramid *p, uint64_t from, uint64_t to, size_t *bytes)
{
    const struct timeline *t = p->t;
    _cleanup_free_ uint32_t *threads = malloc((t->n_threads + 1) * sizeof(*threads));
    _cleanup_(buf_release) struct buf rows = BUF(SIZE_MAX / 2);
    if (!threads)
        return -ENOMEM;
    struct view_range r = {.from = from, .to = to, .width = p->width, .threads = threads};
    json_begin_object(j);
    json_key_array(j, "rows");
    int e = 0;
    for (uint32_t first = 0; first < t->n_threads && e == 0; first += PYRAMID_GROUP) {
        for (r.n_threads = 0; r.n_threads < PYRAMID_GROUP && first + r.n_threads < t->n_threads;
             r.n_threads++)
            threads[r.n_threads] = first + (uint32_t)r.n_threads;
        buf_clear(&rows);
        e = timeline_view_rows(p->view, &r, &rows);
        name_rows(p, &rows, r.n_threads);
        page_json_base64(j, &rows);
        *bytes += rows.len;
    }
    json_end_array(j);
    for (r.n_threads = 0; r.n_threads < t->n_threads; r.n_threads++)
        threads[r.n_threads] = (uint32_t)r.n_threads;
    buf_clear(&rows);
    if (e == 0)
        e = timeline_view_arrows(p->view, &r, &rows);
    name_arrows(p, &rows);
    page_path_picture(p->path, &r, &rows);
    json_key(j, "across");
    page_json_base64(j, &rows);
    json_end_object(j);
    *bytes += rows.len;
    return e < 0 ? e : buf_error(&rows);
}

/* Writes a level of `parts` parts of equal time. */
static int level_json(struct json *j, struct pyramid *p, uint64_t parts, size_t *bytes)
{
    uint64_t span = p->t->end_ns / parts + 1;
    json_begin_object(j);
    json_key_u64(j, "span", span);
    json_key_array(j, "parts");
    int r = 0;
    for (uint64_t i = 0; i < parts && r == 0; i++)
        r = part_json(j, p, i * span, (i + 1) * span, bytes);
    json_end_array(j);
    json_end_object(j);
    return r;
}

/*
 * Chooses the number of columns of the first level so that it needs at most a third of the space:
 * the more threads, the fewer columns.
 */
static int choose_width(struct pyramid *p)
{
    p->width = WIDTH_MAX;
    while (p->width > WIDTH_MIN && (uint64_t)p->width * p->t->n_threads > PYRAMID_BYTES)
        p->width /= 2;
    for (;; p->width /= 2) {
        _cleanup_(buf_release) struct buf text = BUF(SIZE_MAX / 2);
        struct json trial = {&text, false};
        size_t bytes = 0, named = p->n_named;
        p->n_named = PYRAMID_NODES; /* a trial marks no nodes */
        json_begin_array(&trial);
        int r = level_json(&trial, p, 1, &bytes);
        p->n_named = named;
        if (r < 0 || bytes <= PYRAMID_BYTES / 3 || p->width <= WIDTH_MIN)
            return r;
    }
}

/* Writes levels, each with twice the resolution of the previous one, as long as they fit. */
static int levels_json(struct json *j, struct pyramid *p)
{
    size_t used = 0, bytes = 0;
    int r = choose_width(p);
    json_key_u64(j, "width", p->width);
    json_key_array(j, "levels");
    for (uint64_t parts = 1;
         r == 0 && parts < 1 << LEVELS_MAX && (parts == 1 || used + 2 * bytes <= PYRAMID_BYTES);
         parts *= 2) {
        bytes = 0;
        r = level_json(j, p, parts, &bytes);
        used += bytes;
        if (p->t->end_ns / parts / p->width <= 1)
            break; /* a column is already a nanosecond */
    }
    json_end_array(j);
    return r;
}

/* Returns the number of a context in the file, which contains only the contexts in use. */
static int context_number(uint32_t *number, uint32_t *list, size_t *n, uint32_t context)
{
    if (number[context] == TL_NONE) {
        number[context] = (uint32_t)*n;
        list[(*n)++] = context;
    }
    return (int)number[context];
}

/*
 * Writes what is known about the marked states: the number relative to the previous one, time,
 * length, kind, edge and flags, thread, distance back to the waker (0: none), context, and the
 * thread's previous state (distance + 1) and next state, 0 for none. A waker's thread is in the
 * waker's own entry.
 */
static int nodes_json(struct json *j, struct pyramid *p)
{
    const struct timeline *t = p->t;
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    _cleanup_free_ uint32_t *number = malloc((t->n_contexts + 1) * sizeof(*number));
    _cleanup_free_ uint32_t *list = malloc((t->n_contexts + 1) * sizeof(*list));
    size_t n_contexts = 0;
    if (!number || !list)
        return -ENOMEM;
    memset(number, 0xff, (t->n_contexts + 1) * sizeof(*number));
    /* Also mark the causes of marked nodes while there is room. */
    for (size_t i = t->n_nodes; i-- > 0;) {
        if (p->named[i / 8] >> i % 8 & 1 && tl_is_state((enum tl_kind)tl_node(t, i).kind) &&
            tl_node(t, i).waker != TL_NONE)
            name_node(p, tl_node(t, i).waker);
    }
    size_t last = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        if (!(p->named[i / 8] >> i % 8 & 1))
            continue;
        const struct tl_node n = tl_node(t, i);
        uint32_t before, after;
        uint64_t end;
        timeline_view_around(p->view, i, &before, &after, &end);
        buf_varint(&bytes, i - last);
        buf_varint(&bytes, n.time);
        buf_varint(&bytes, end - n.time);
        buf_u8(&bytes, (uint8_t)n.kind);
        buf_varint(&bytes, n.edge | (uint64_t)n.flags << 4);
        buf_varint(&bytes, n.thread);
        buf_varint(&bytes,
                   tl_is_state((enum tl_kind)n.kind) && n.waker != TL_NONE ? i - n.waker : 0);
        buf_varint(&bytes, (uint64_t)context_number(number, list, &n_contexts, n.context));
        buf_varint(&bytes, before == TL_NONE ? 0 : i - before);
        buf_varint(&bytes, after == TL_NONE ? 0 : after - i);
        last = i;
    }
    json_key(j, "nodes");
    page_json_base64(j, &bytes);
    json_end_object(j);
    return buf_error(&bytes) < 0 ? buf_error(&bytes) : page_contexts_json(j, t, list, n_contexts);
}

int page_pyramid_json(struct json *j, const struct timeline *t, const struct critical_path *path)
{
    _cleanup_(timeline_view_freep) struct timeline_view *view = NULL;
    struct pyramid p = {.t = t, .path = path, .named = calloc(t->n_nodes / 8 + 1, 1)};
    int r = p.named ? timeline_view_new(&view, t) : -ENOMEM;
    if (r == 0) {
        p.view = view;
        json_key_object(j, "pyramid");
        json_key_u64(j, "group", PYRAMID_GROUP);
        r = levels_json(j, &p);
    }
    if (r == 0)
        r = nodes_json(j, &p); /* ends the object */
    free(p.named);
    return r;
}
