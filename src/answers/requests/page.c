/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a recording as the page shows them. */
#include "answers/requests/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The limits of requests in the page, and of parts of each: of each name the slowest requests, and
 * others evenly spread.
 */
enum { TAKEN = 2000, PARTS = 60 };

static uint64_t latency(const struct request *q)
{
    return (uint64_t)(q->end_ns - q->start_ns);
}

/* Writes the counts of a name: column, row, count and so on. */
static int heat_json(const struct request_view *v, const struct request_name *n, struct json *j)
{
    enum { COLUMNS = REQUEST_COLUMNS, ROWS = REQUEST_ROWS };

    _cleanup_free_ uint32_t *cells = calloc((size_t)COLUMNS * ROWS, sizeof(*cells));
    if (!cells)
        return -ENOMEM;
    for (uint32_t i = 0; i < n->count; i++) {
        const struct request *q = &v->r.list.data[v->r.by_name.data[n->first + i]];
        cells[(size_t)request_column(&v->r, q) * ROWS + request_row(q)]++;
    }
    json_begin_array(j);
    for (uint32_t i = 0; i < COLUMNS * ROWS; i++) {
        if (!cells[i])
            continue;
        json_u64(j, i / ROWS);
        json_u64(j, i % ROWS);
        json_u64(j, cells[i]);
    }
    json_end_array(j);
    return 0;
}

static int64_t number_of(struct strpool *pool, const char *s)
{
    return s ? strpool_add(pool, s, strlen(s)) : -1;
}

/*
 * Writes start, length, cause, thread, object and method of each part; -1: none. Short parts are
 * merged.
 */
static int parts_json(struct request_view *v, const struct request *q, struct request_parts *p,
                      struct strpool *pool, struct json *j)
{
    int e = request_parts(v->l, q, p);
    json_begin_array(j);
    uint64_t least = p->rows.len > PARTS ? latency(q) / PARTS : 0;
    uint64_t short_ns = 0;
    for (size_t i = 0; e == 0 && i < p->rows.len; i++) {
        const struct request_part *part = &p->rows.data[i];
        if (part->end - part->start < least) {
            short_ns += part->end - part->start;
            continue;
        }
        json_i64(j, (int64_t)(part->start + v->t->origin_ns) - q->start_ns);
        json_u64(j, part->end - part->start);
        json_u64(j, part->cause);
        json_i64(j, part->thread == TL_NONE ? -1
                                            : number_of(pool, tl_thread_name(v->t, part->thread)));
        json_i64(j, number_of(pool, part->object));
        struct group_culprit own;
        e = request_part_own(v, part, &own);
        json_i64(j, number_of(pool, own.method));
    }
    json_end_array(j);
    json_key_u64(j, "short_ns", short_ns);
    return e;
}

static void work_json(const struct request_view *v, const struct request *q,
                      const struct request_work *w, struct strpool *pool, struct json *j)
{
    json_i64(j, w->start_ns - q->start_ns);
    json_i64(j, w->end_ns - w->start_ns);
    json_i64(j, w->queued_ns);
    json_i64(j, number_of(pool, requests_thread(&v->r, w->thread)));
    json_u64(j, w->thread);
}

/* Writes the works of a request: start, length, time in the queue, thread's name, thread's id. */
static void works_json(const struct request_view *v, const struct request *q, struct strpool *pool,
                       struct json *j)
{
    json_begin_array(j);
    const struct request_work whole = {
        .start_ns = q->start_ns, .end_ns = q->end_ns, .thread = q->thread};
    if (!q->works)
        work_json(v, q, &whole, pool, j);
    for (uint32_t i = 0; i < MIN(q->works, (uint32_t)PARTS); i++)
        work_json(v, q, &v->r.works.data[q->first_work + i], pool, j);
    json_end_array(j);
}

static void calls_json(const struct request_view *v, const struct request *q, struct json *j)
{
    json_begin_array(j);
    for (uint32_t i = 0; i < MIN(q->children, (uint32_t)PARTS); i++) {
        const struct request_child *c = &v->r.children.data[q->first_child + i];
        json_begin_object(j);
        json_key_string(j, "kind", requests_text(&v->r, c->kind));
        json_key_string(j, "name", requests_text(&v->r, c->name));
        json_key_i64(j, "at", c->start_ns - q->start_ns);
        json_key_i64(j, "ns", c->end_ns - c->start_ns);
        json_end_object(j);
    }
    json_end_array(j);
}

static int request_json(struct request_view *v, uint32_t name, const struct request *q,
                        struct request_parts *p, struct strpool *pool, struct json *j)
{
    json_begin_object(j);
    json_key_u64(j, "id", q->id);
    json_key_u64(j, "name", name);
    json_key_i64(j, "at", q->start_ns - v->r.start_ns);
    json_key_u64(j, "ns", latency(q));
    json_key_i64(j, "status", q->status);
    json_key_string(j, "exception",
                    q->exception == REQUEST_NONE ? NULL : requests_text(&v->r, q->exception));
    json_key(j, "parts");
    int e = parts_json(v, q, p, pool, j);
    json_key(j, "works");
    works_json(v, q, pool, j);
    json_key(j, "calls");
    calls_json(v, q, j);
    if (q->works > PARTS)
        json_key_u64(j, "works_left", q->works - PARTS);
    if (q->children > PARTS)
        json_key_u64(j, "calls_left", q->children - PARTS);
    json_end_object(j);
    return e;
}

/* Writes the requests of a name that the page contains, half of them the slowest. */
static int some_json(struct request_view *v, uint32_t name, struct strpool *pool, struct json *j)
{
    const struct request_name *n = &v->r.names.data[name];
    struct request_parts p = {0};
    double share = (double)n->count / (double)MAX(v->r.list.len, (size_t)1);
    uint32_t room = MAX((uint32_t)(share * TAKEN), 20U), slowest = MIN(n->count, room / 2),
             others = n->count - slowest;
    uint32_t step = others > room / 2 ? (others + room / 2 - 1) / MAX(room / 2, 1U) : 1;
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < n->count; i++) {
        if (i < others && i % step != 0)
            continue;
        const struct request *q = &v->r.list.data[v->r.by_name.data[n->first + i]];
        e = request_json(v, name, q, &p, pool, j);
    }
    request_parts_release(&p);
    return e;
}

static int put_all(struct request_view *v, struct json *j)
{
    struct strpool pool = {0};
    json_begin_object(j);
    json_key_u64(j, "columns", REQUEST_COLUMNS);
    json_key_u64(j, "rows_of_ten", REQUEST_ROWS_OF_TEN);
    json_key_u64(j, "rows", REQUEST_ROWS);
    json_key_u64(j, "end_ns", (uint64_t)MAX(v->r.end_ns - v->r.start_ns, INT64_C(1)));
    json_key_i64(j, "timeline_ns", v->r.start_ns - (int64_t)v->t->origin_ns);
    json_key_u64(j, "total", v->r.list.len);
    json_key_array(j, "causes");
    for (int k = 0; k < REQUEST_CAUSES; k++)
        json_string(j, request_cause_name((enum request_cause)k));
    json_end_array(j);
    json_key(j, "names");
    int e = requests_names_json(v, j);
    request_cpu_note_json(v, j);
    json_key(j, "groups");
    e = e ? e : requests_groups_json(v, j);
    json_key_array(j, "heat");
    for (size_t i = 0; e == 0 && i < v->r.names.len; i++)
        e = heat_json(v, &v->r.names.data[i], j);
    json_end_array(j);
    json_key_array(j, "requests");
    for (uint32_t i = 0; e == 0 && i < v->r.names.len; i++)
        e = some_json(v, i, &pool, j);
    json_end_array(j);
    json_key_array(j, "texts");
    for (size_t i = 0; i < pool.strings.len; i++)
        json_string_n(j, pool.strings.data[i].data, pool.strings.data[i].len);
    json_end_array(j);
    json_end_object(j);
    strpool_release(&pool);
    return e;
}

int requests_page_json(const char *path, struct json *j, struct request_fields *ret_fields)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    const struct request_options all = {0};
    struct request_view v;
    int e = requests_any(path) ? request_view_load(&v, &all, path, &why) : -ENOENT;
    if (e < 0)
        return e;
    e = put_all(&v, j);
    if (e == 0 && ret_fields)
        e = request_fields_init(ret_fields, &v.r);
    request_view_free(&v);
    /* Without fields the page does not attribute samples to requests. */
    return e == -E2BIG ? 0 : e;
}
