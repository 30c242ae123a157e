/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a store in ClickHouse: sums are made by the servers, and texts are fetched in bulk. */
#include "fleet/clickhouse_read.h"

#include "base/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FETCH = 20000 };

/* ---- RowBinary */

static const char *copy_text(struct store_read *r, struct cursor *c)
{
    struct str text = clickhouse_take_text(c);
    return arena_copy(&r->arena, text.data, text.len);
}

int clickhouse_each_row(struct store_read *r, struct buf *sql,
                        int (*visit)(void *context, struct cursor *row), void *context)
{
    _cleanup_(buf_release) struct buf answer = BUF(ANSWER_MAX);
    buf_string(sql, " FORMAT RowBinary");
    int e = buf_error(sql);
    if (e == 0)
        e = clickhouse_run(r->s, buf_str(sql), NULL, &answer, r->why);
    struct cursor c = cursor_of(answer.data, answer.len);
    while (e == 0 && cursor_left(&c) && !c.failed)
        e = visit(context, &c);
    if (e == 0 && c.failed) {
        buf_string(r->why, "an answer of ClickHouse is damaged");
        e = -EBADMSG;
    }
    return e;
}

/* ---- the view */

static int on_series_row(void *context, struct cursor *c)
{
    struct store_read *r = context;
    struct store_series one = {.id = cursor_le64(c)};
    const char **own[] = {&one.tenant, &one.service, &one.version, &one.host, &one.instance};
    int e = 0;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        *own[i] = copy_text(r, c);
        e = *own[i] ? e : -ENOMEM;
    }
    uint64_t n = cursor_varint(c);
    if (c->failed || n > cursor_left(c))
        return -EBADMSG;
    VEC(struct fleet_label) labels = {0};
    if (e == 0)
        e = vec_extend(&labels, n);
    for (uint64_t i = 0; i < n && e == 0; i++) {
        labels.data[i].key = copy_text(r, c);
        e = labels.data[i].key ? 0 : -ENOMEM;
    }
    if (e == 0 && cursor_varint(c) != n)
        e = -EBADMSG;
    for (uint64_t i = 0; i < n && e == 0; i++) {
        labels.data[i].value = copy_text(r, c);
        e = labels.data[i].value ? 0 : -ENOMEM;
    }
    one.labels =
        e == 0 ? (void *)arena_copy(&r->arena, labels.data, n * sizeof(*labels.data)) : NULL;
    one.n_labels = n;
    vec_release(&labels);
    if (e < 0 || c->failed || !one.labels)
        return e < 0 ? e : c->failed ? -EBADMSG : -ENOMEM;
    if (!store_chooses(r->choice, &one)) {
        r->all_series = false;
        return 0;
    }
    bool added;
    if (!map_at(&r->series_of, one.id, r->series.len, &added))
        return -ENOMEM;
    return added ? vec_push(&r->series, one) : 0;
}

static int read_series(struct store_read *r)
{
    _cleanup_(buf_release) struct buf sql = BUF(4096);
    r->all_series = true;
    buf_printf(&sql,
               "SELECT hash, any(tenant), any(service) AS s, any(version) AS v, any(host) AS h,"
               " any(instance) AS i, any(keys), any(values) FROM %s GROUP BY hash"
               " ORDER BY s, v, h, i, hash",
               clickhouse_table(r->s, CH_SERIES));
    return clickhouse_each_row(r, &sql, on_series_row, r);
}

static int on_removed_row(void *context, struct cursor *c)
{
    int64_t *gone = context;
    uint8_t i = cursor_u8(c);
    int64_t up_to = (int64_t)cursor_le64(c);
    if (i < STORE_RESOLUTIONS)
        gone[i] = up_to;
    return 0;
}

static int read_spans(struct store_read *r)
{
    int64_t gone[STORE_RESOLUTIONS] = {INT64_MIN / 4, INT64_MIN / 4, INT64_MIN / 4};
    _cleanup_(buf_release) struct buf sql = BUF(4096);
    buf_printf(&sql, "SELECT resolution, max(up_to) FROM %s GROUP BY resolution",
               clickhouse_table(r->s, CH_GONE));
    int e = clickhouse_each_row(r, &sql, on_removed_row, gone);
    if (e == 0)
        r->n_spans = store_spans_kept(r->choice, gone, r->spans);
    return e;
}

static int on_request_row(void *context, struct cursor *c)
{
    struct store_read *r = context;
    uint64_t hash = cursor_le64(c);
    struct str text = clickhouse_take_text(c);
    int64_t at = c->failed ? -EBADMSG : strpool_add(&r->request_names, text.data, text.len);
    if (at < 0)
        return (int)at;
    if (!store_matches(r->choice->request, strpool_get(&r->request_names, (uint64_t)at).data))
        return 0;
    return map_put(&r->request_name_of, hash, (uint64_t)at);
}

static int read_requests(struct store_read *r)
{
    _cleanup_(buf_release) struct buf sql = BUF(4096);
    buf_printf(&sql, "SELECT hash, name FROM %s WHERE kind = %d",
               clickhouse_table(r->s, CH_REQUEST), (int)r->choice->names);
    return clickhouse_each_row(r, &sql, on_request_row, r);
}

int clickhouse_read_begin(struct store *store, const struct fleet_choice *choice,
                          struct store_read **ret, struct buf *why)
{
    struct store_read *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->s = (struct clickhouse_store *)store;
    r->choice = choice;
    r->why = why;
    int e = read_series(r);
    if (e == 0)
        e = read_spans(r);
    if (e == 0)
        e = read_requests(r);
    if (e < 0)
        clickhouse_read_end(r);
    else
        *ret = r;
    return e;
}

void clickhouse_read_end(struct store_read *r)
{
    arena_release(&r->arena);
    vec_release(&r->series);
    map_release(&r->series_of);
    strpool_release(&r->request_names);
    map_release(&r->request_name_of);
    vec_release(&r->stacks);
    map_release(&r->stack_of);
    vec_release(&r->frames);
    map_release(&r->frame_of);
    vec_release(&r->path);
    strpool_release(&r->texts);
    free(r);
}

int clickhouse_read_series(struct store_read *r, int (*visit)(void *, const struct store_series *),
                           void *context)
{
    int e = 0;
    for (size_t i = 0; i < r->series.len && e == 0; i++)
        e = visit(context, &r->series.data[i]);
    return e;
}

/* ---- conditions */

void clickhouse_put_series(struct store_read *r, struct buf *sql)
{
    if (r->all_series)
        return;
    buf_string(sql, " AND series IN (");
    for (size_t i = 0; i < r->series.len; i++)
        buf_printf(sql, "%s%" PRIu64, i ? "," : "", r->series.data[i].id);
    buf_string(sql, ")");
}

/*
 * Writes " AND request IN (...)" when a request is selected; samples without a request have number
 * 0.
 */
static void put_requests(struct store_read *r, struct buf *sql)
{
    uint64_t hash, at;
    size_t i = 0;
    const char *before = "";
    if (!r->choice->request)
        return;
    buf_string(sql, " AND request IN (");
    while (map_next(&r->request_name_of, &i, &hash, &at)) {
        buf_printf(sql, "%s%" PRIu64, before, hash);
        before = ",";
    }
    buf_string(sql, ")");
}

bool clickhouse_choice_is_empty(const struct store_read *r)
{
    return !r->series.len || (r->choice->request && !r->request_name_of.len);
}

void clickhouse_put_span(struct buf *sql, const struct store_span *span)
{
    buf_printf(sql, " start >= %" PRId64 " AND start < %" PRId64,
               MIN(MAX(span->from_s, INT64_C(0)), (int64_t)UINT32_MAX),
               MIN(MAX(span->to_s, INT64_C(0)), (int64_t)UINT32_MAX));
}

/* ---- latencies and findings */

struct latency_visits {
    struct store_read *r;
    struct store_latency l;
    int (*visit)(void *, const struct store_latency *);
    void *context;
};

static int on_latency_row(void *context, struct cursor *c)
{
    struct latency_visits *v = context;
    struct store_latency *l = &v->l;
    const uint64_t *series, *name;
    VEC(struct fleet_count) counts = {0};
    l->start_s = cursor_le32(c);
    series = map_get(&v->r->series_of, cursor_le64(c));
    name = map_get(&v->r->request_name_of, cursor_le64(c));
    l->count = cursor_le64(c);
    l->errors = cursor_le64(c);
    l->total_ns = cursor_le64(c);
    l->max_ns = cursor_le64(c);
    uint64_t n = cursor_varint(c);
    int e = c->failed || n > cursor_left(c) ? -EBADMSG : vec_extend(&counts, n);
    for (uint64_t i = 0; i < n && e == 0; i++)
        counts.data[i].bucket = cursor_le32(c);
    if (e == 0 && cursor_varint(c) != n)
        e = -EBADMSG;
    for (uint64_t i = 0; i < n && e == 0; i++)
        counts.data[i].count = cursor_le64(c);
    if (e == 0 && series && name && !c->failed) {
        l->series = &v->r->series.data[*series];
        l->request = strpool_get(&v->r->request_names, *name).data;
        l->counts = counts.data;
        l->n_counts = n;
        e = v->visit(v->context, l);
    }
    vec_release(&counts);
    return e;
}

int clickhouse_read_latencies(struct store_read *r,
                              int (*visit)(void *, const struct store_latency *), void *context)
{
    struct latency_visits v = {.r = r, .visit = visit, .context = context};
    int e = 0;
    for (int i = 0; i < r->n_spans && e == 0 && !clickhouse_choice_is_empty(r); i++) {
        _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
        int resolution = r->spans[i].resolution;
        v.l.length_s = store_resolution_s[resolution];
        buf_printf(&sql,
                   "SELECT start, series, request, requests, errors, total_ns, max_ns, buckets,"
                   " counts FROM %s FINAL WHERE",
                   clickhouse_table(r->s, CH_LATENCY + (enum clickhouse_table)resolution));
        clickhouse_put_span(&sql, &r->spans[i]);
        clickhouse_put_series(r, &sql);
        put_requests(r, &sql);
        buf_string(&sql, " ORDER BY start, series, request, upload");
        e = clickhouse_each_row(r, &sql, on_latency_row, &v);
    }
    return e;
}

struct finding_visits {
    struct store_read *r;
    int (*visit)(void *, const struct store_finding *);
    void *context;
};

static int on_finding_row(void *context, struct cursor *c)
{
    struct finding_visits *v = context;
    struct strpool texts = {0};
    struct store_finding f = {.start_s = cursor_le32(c)};
    const uint64_t *series = map_get(&v->r->series_of, cursor_le64(c));
    struct str kind = clickhouse_take_text(c), text = clickhouse_take_text(c);
    f.count = cursor_le64(c);
    f.weight_ns = cursor_le64(c);
    int64_t k = strpool_add(&texts, kind.data, kind.len);
    int64_t t = strpool_add(&texts, text.data, text.len);
    int e = k < 0 || t < 0 ? -ENOMEM : 0;
    if (e == 0 && series && !c->failed) {
        f.series = &v->r->series.data[*series];
        f.kind = strpool_get(&texts, (uint64_t)k).data;
        f.text = strpool_get(&texts, (uint64_t)t).data;
        e = v->visit(v->context, &f);
    }
    strpool_release(&texts);
    return e;
}

int clickhouse_read_findings(struct store_read *r,
                             int (*visit)(void *, const struct store_finding *), void *context)
{
    struct finding_visits v = {r, visit, context};
    struct store_span span = {.from_s = r->choice->from_s,
                              .to_s = r->choice->to_s ? r->choice->to_s : UINT32_MAX};
    _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
    if (!r->series.len)
        return 0;
    buf_printf(&sql, "SELECT start, series, kind, text, count, weight_ns FROM %s FINAL WHERE",
               clickhouse_table(r->s, CH_FINDING));
    clickhouse_put_span(&sql, &span);
    clickhouse_put_series(r, &sql);
    buf_string(&sql, " ORDER BY start, series, upload, number");
    return clickhouse_each_row(r, &sql, on_finding_row, &v);
}

/* ---- stacks and frames */

/* A server reads a text of many numbers several times faster than a list of them. */
static const char hash_in[] = "hash IN (SELECT toUInt64(arrayJoin(splitByChar(',', '";
static const char hash_in_end[] = "'))))";

static int on_frame_row(void *context, struct cursor *c)
{
    struct store_read *r = context;
    const uint64_t *at = map_get(&r->frame_of, cursor_le64(c));
    uint8_t kind = cursor_u8(c);
    struct str label = clickhouse_take_text(c);
    int64_t text = c->failed ? -EBADMSG : strpool_add(&r->texts, label.data, label.len);
    if (text < 0 || !at)
        return text < 0 ? (int)text : 0;
    r->frames.data[*at] =
        (struct store_frame){strpool_get(&r->texts, (uint64_t)text).data,
                             kind < FLEET_KINDS ? (enum fleet_kind)kind : FLEET_MARK};
    return 0;
}

static int on_stack_row(void *context, struct cursor *c)
{
    struct store_read *r = context;
    const uint64_t *at = map_get(&r->stack_of, cursor_le64(c));
    uint64_t n = cursor_varint(c), first = r->path.len;
    if (c->failed || n > cursor_left(c) / sizeof(uint64_t))
        return -EBADMSG;
    int e = 0;
    for (uint64_t i = 0; i < n && e == 0; i++) {
        bool added;
        const uint64_t *frame = map_at(&r->frame_of, cursor_le64(c), r->frames.len, &added);
        e = frame ? vec_push(&r->path, (uint32_t)*frame) : -ENOMEM;
        if (e == 0 && added)
            e = vec_push(&r->frames, ((struct store_frame){"[unknown]", FLEET_MARK}));
    }
    /* A stack whose rows have not been merged yet is returned more than once. */
    if (e == 0 && at && !r->stacks.data[*at].known) {
        struct fetched_stack *s = &r->stacks.data[*at];
        *s = (struct fetched_stack){s->hash, first, (uint32_t)n, true};
    } else {
        r->path.len = first;
    }
    return e;
}

/* Fetches the texts of the frames from number `from` on. */
static int fetch_frames(struct store_read *r, size_t from)
{
    VEC(uint64_t) hashes = {0};
    uint64_t hash, at;
    size_t i = 0;
    int e = 0;
    while (e == 0 && map_next(&r->frame_of, &i, &hash, &at))
        if (at >= from)
            e = vec_push(&hashes, hash);
    for (i = 0; i < hashes.len && e == 0; i += FETCH) {
        _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
        buf_printf(&sql, "SELECT hash, kind, label FROM %s WHERE ",
                   clickhouse_table(r->s, CH_FRAME));
        buf_string(&sql, hash_in);
        for (size_t k = i; k < MIN(hashes.len, i + FETCH); k++)
            buf_printf(&sql, "%s%" PRIu64, k > i ? "," : "", hashes.data[k]);
        buf_string(&sql, hash_in_end);
        e = clickhouse_each_row(r, &sql, on_frame_row, r);
    }
    vec_release(&hashes);
    return e;
}

/* Fetches all stacks that were visited since the last time. */
static int fetch_stacks(struct store_read *r)
{
    size_t frames = r->frames.len, n = r->stacks.len;
    int e = 0;
    for (size_t i = r->n_fetched; i < n && e == 0; i += FETCH) {
        _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
        buf_printf(&sql, "SELECT hash, frames FROM %s WHERE ", clickhouse_table(r->s, CH_STACK));
        buf_string(&sql, hash_in);
        for (size_t k = i; k < MIN(n, i + FETCH); k++)
            buf_printf(&sql, "%s%" PRIu64, k > i ? "," : "", r->stacks.data[k].hash);
        buf_string(&sql, hash_in_end);
        e = clickhouse_each_row(r, &sql, on_stack_row, r);
    }
    if (e == 0)
        e = fetch_frames(r, frames);
    if (e == 0)
        r->n_fetched = n;
    return e;
}

int clickhouse_read_stack(struct store_read *r, uint64_t stack, struct store_stack *ret)
{
    if (stack >= r->stacks.len)
        return -ENOENT;
    int e = stack >= r->n_fetched ? fetch_stacks(r) : 0;
    if (e < 0)
        return e;
    const struct fetched_stack *s = &r->stacks.data[stack];
    *ret = (struct store_stack){vec_at(&r->path, s->first), s->depth};
    return 0;
}

int clickhouse_read_frame(struct store_read *r, uint32_t frame, struct store_frame *ret)
{
    if (frame >= r->frames.len)
        return -ENOENT;
    *ret = r->frames.data[frame];
    return 0;
}

const char *clickhouse_read_request(struct store_read *r, uint64_t request)
{
    const uint64_t *at = map_get(&r->request_name_of, request);
    return at ? strpool_get(&r->request_names, *at).data : NULL;
}
