/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a store in SQLite: one consistent view, on a separate connection. */
#include "fleet/sqlite.h"

#include "base/cursor.h"

#include <errno.h>

struct store_read {
    struct sqlite_store *s;
    sqlite3 *db;
    const struct fleet_choice *choice;
    struct buf *why;
    struct arena arena; /* the texts of series */
    VEC(struct store_series) series;
    struct map series_of; /* id -> number in series; only the selected ones */
    struct store_span spans[STORE_SPANS];
    int n_spans;
    /* Frames and stacks that were requested. */
    sqlite3_stmt *find_stack, *find_frame;
    struct map stack_of, frame_of;
    VEC(struct store_frame) frames;
    VEC(uint32_t) path;
    struct strpool texts;
    struct strpool request_names;
    struct map request_name_of;
};

static int read_failed(struct store_read *r)
{
    return sqlite_failed(r->db, r->why);
}

static const char *copy_column(struct store_read *r, sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);
    return text ? arena_copy(&r->arena, text, (size_t)sqlite3_column_bytes(s, i)) : NULL;
}

static int read_labels(struct store_read *r, struct store_series *series, sqlite3_stmt *labels)
{
    VEC(struct fleet_label) list = {0};
    int e = 0;
    sqlite3_bind_int64(labels, 1, (sqlite3_int64)series->id);
    while (e == 0 && sqlite3_step(labels) == SQLITE_ROW) {
        struct fleet_label l = {copy_column(r, labels, 0), copy_column(r, labels, 1)};
        e = l.key && l.value ? vec_push(&list, l) : -ENOMEM;
    }
    sqlite3_reset(labels);
    series->labels = (void *)arena_copy(&r->arena, list.data, list.len * sizeof(*list.data));
    series->n_labels = list.len;
    if (!series->labels)
        e = -ENOMEM;
    vec_release(&list);
    return e;
}

static int add_series(struct store_read *r, sqlite3_stmt *s, sqlite3_stmt *labels)
{
    struct store_series one = {.id = (uint64_t)sqlite3_column_int64(s, 0),
                               .tenant = copy_column(r, s, 1),
                               .service = copy_column(r, s, 2),
                               .version = copy_column(r, s, 3),
                               .host = copy_column(r, s, 4),
                               .instance = copy_column(r, s, 5)};
    if (!one.tenant || !one.service || !one.version || !one.host || !one.instance)
        return -ENOMEM;
    int e = read_labels(r, &one, labels);
    if (e < 0 || !store_chooses(r->choice, &one))
        return e;
    e = map_put(&r->series_of, one.id, r->series.len);
    return e < 0 ? e : vec_push(&r->series, one);
}

static int read_series(struct store_read *r)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(r->db,
                       "SELECT series.id, tenant.name, service, version, host, instance FROM series"
                       " JOIN tenant ON tenant.id = tenant ORDER BY service, version, host,"
                       " instance, series.id",
                       r->why);
    _cleanup_(sqlite_finish) sqlite3_stmt *labels = sqlite_prepare(
        r->db, "SELECT key, value FROM label WHERE series = ?1 ORDER BY key", r->why);
    int e = s && labels ? 0 : read_failed(r);
    int step = SQLITE_DONE;
    while (e == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
        e = add_series(r, s, labels);
    return e == 0 && step != SQLITE_DONE ? read_failed(r) : e;
}

static int read_spans(struct store_read *r)
{
    int64_t gone[STORE_RESOLUTIONS] = {INT64_MIN / 4, INT64_MIN / 4, INT64_MIN / 4};
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(r->db, "SELECT resolution, up_to FROM gone", r->why);
    if (!s)
        return read_failed(r);
    while (sqlite3_step(s) == SQLITE_ROW) {
        int64_t i = sqlite3_column_int64(s, 0);
        if (i >= 0 && i < STORE_RESOLUTIONS)
            gone[i] = sqlite3_column_int64(s, 1);
    }
    r->n_spans = store_spans_kept(r->choice, gone, r->spans);
    return 0;
}

static int read_requests(struct store_read *r)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(r->db, "SELECT id, name FROM request WHERE kind = ?1", r->why);
    int e = s ? 0 : read_failed(r);
    if (e == 0)
        sqlite3_bind_int(s, 1, r->choice->names);
    while (e == 0 && sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 1);
        if (!name)
            return -ENOMEM;
        if (!store_matches(r->choice->request, name))
            continue;
        int64_t at = strpool_add(&r->request_names, name, strlen(name));
        e = at < 0
                ? (int)at
                : map_put(&r->request_name_of, (uint64_t)sqlite3_column_int64(s, 0), (uint64_t)at);
    }
    return e;
}

int sqlite_read_begin(struct store *store, const struct fleet_choice *choice,
                      struct store_read **ret, struct buf *why)
{
    struct store_read *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->s = (struct sqlite_store *)store;
    r->choice = choice;
    r->why = why;
    int e = sqlite_connect(&r->db, r->s->path, false, why);
    if (e == 0)
        e = sqlite_run(r->db, "BEGIN", why);
    if (e == 0)
        e = read_series(r);
    if (e == 0)
        e = read_spans(r);
    if (e == 0)
        e = read_requests(r);
    if (e == 0) {
        r->find_stack = sqlite_prepare(r->db, "SELECT frames FROM stack WHERE id = ?1", why);
        r->find_frame = sqlite_prepare(r->db, "SELECT kind, label FROM frame WHERE id = ?1", why);
        e = r->find_stack && r->find_frame ? 0 : read_failed(r);
    }
    if (e < 0)
        sqlite_read_end(r);
    else
        *ret = r;
    return e;
}

void sqlite_read_end(struct store_read *r)
{
    sqlite3_finalize(r->find_stack);
    sqlite3_finalize(r->find_frame);
    sqlite3_close(r->db);
    arena_release(&r->arena);
    vec_release(&r->series);
    map_release(&r->series_of);
    map_release(&r->stack_of);
    map_release(&r->frame_of);
    vec_release(&r->frames);
    vec_release(&r->path);
    strpool_release(&r->texts);
    strpool_release(&r->request_names);
    map_release(&r->request_name_of);
    free(r);
}

int sqlite_read_series(struct store_read *r, int (*visit)(void *, const struct store_series *),
                       void *context)
{
    int e = 0;
    for (size_t i = 0; i < r->series.len && e == 0; i++)
        e = visit(context, &r->series.data[i]);
    return e;
}

/* Keeps the entries of the selected request. */
static void keep_request(struct store_read *r, struct fleet_entries *e, struct store_block *b)
{
    size_t kept = 0;
    b->samples = b->weight = 0;
    for (size_t i = 0; i < e->list.len; i++) {
        const struct fleet_entry *at = &e->list.data[i];
        if (!at->request || !map_get(&r->request_name_of, at->request))
            continue;
        b->samples += at->count;
        b->weight += at->weight;
        e->list.data[kept++] = *at;
    }
    e->list.len = kept;
}

static int visit_block(struct store_read *r, sqlite3_stmt *s, struct store_block *b, bool entries,
                       struct fleet_entries *e, int (*visit)(void *, const struct store_block *),
                       void *context)
{
    b->start_s = sqlite3_column_int64(s, 0);
    b->samples = (uint64_t)sqlite3_column_int64(s, 1);
    b->weight = (uint64_t)sqlite3_column_int64(s, 2);
    b->entries = NULL;
    if (entries || r->choice->request) {
        vec_clear(&e->list);
        int error =
            fleet_block_read(e, sqlite3_column_blob(s, 3), (size_t)sqlite3_column_bytes(s, 3));
        if (error < 0) {
            if (error == -EBADMSG)
                buf_string(r->why, "a block of the store is damaged");
            return error;
        }
        if (r->choice->request)
            keep_request(r, e, b);
        if (!b->samples && !b->weight)
            return 0;
        b->entries = e;
    }
    return visit(context, b);
}

/* Visits the blocks of one series, type and span. All parameters but the series are bound. */
static int blocks_of_series(struct store_read *r, sqlite3_stmt *s, struct store_block *b,
                            bool entries, struct fleet_entries *e,
                            int (*visit)(void *, const struct store_block *), void *context)
{
    int error = 0, step = SQLITE_DONE;
    sqlite3_bind_int64(s, 3, (sqlite3_int64)b->series->id);
    while (error == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
        error = visit_block(r, s, b, entries, e, visit, context);
    if (error == 0 && step != SQLITE_DONE)
        error = read_failed(r);
    sqlite3_reset(s);
    return error;
}

/* Selects the blocks of a type; the parameters are resolution, type, series, from and to. */
static int blocks_of_type(struct store_read *r, const char *select, int64_t type,
                          struct store_block *b, bool entries,
                          int (*visit)(void *, const struct store_block *), void *context)
{
    struct fleet_entries e = {0};
    _cleanup_(sqlite_finish) sqlite3_stmt *s = sqlite_prepare(r->db, select, r->why);
    int error = s ? 0 : read_failed(r);
    for (size_t k = 0; k < r->series.len && error == 0; k++) {
        b->series = &r->series.data[k];
        for (int i = 0; i < r->n_spans && error == 0; i++) {
            b->length_s = store_resolution_s[r->spans[i].resolution];
            sqlite3_bind_int(s, 1, r->spans[i].resolution);
            sqlite3_bind_int64(s, 2, type);
            sqlite3_bind_int64(s, 4, r->spans[i].from_s);
            sqlite3_bind_int64(s, 5, r->spans[i].to_s);
            error = blocks_of_series(r, s, b, entries, &e, visit, context);
        }
    }
    fleet_entries_release(&e);
    return error;
}

#define OF_A_SPAN                                                                                  \
    " FROM block WHERE resolution = ?1 AND type = ?2 AND series = ?3 AND start >= ?4 AND start < " \
    "?5"

/* Visits the blocks that any of the statements selects. */
static int read_blocks(struct store_read *r, const char *const *selects, size_t n, bool entries,
                       int (*visit)(void *, const struct store_block *), void *context)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *types =
        sqlite_prepare(r->db, "SELECT id, name, unit FROM type ORDER BY name, unit, id", r->why);
    int e = types ? 0 : read_failed(r);
    int step = SQLITE_DONE;
    while (e == 0 && (step = sqlite3_step(types)) == SQLITE_ROW) {
        struct store_block b = {.type = (const char *)sqlite3_column_text(types, 1),
                                .unit = (const char *)sqlite3_column_text(types, 2)};
        bool chosen = b.type && b.unit && store_matches(r->choice->type, b.type);
        for (size_t i = 0; i < n && chosen && e == 0; i++)
            e = blocks_of_type(r, selects[i], sqlite3_column_int64(types, 0), &b, entries, visit,
                               context);
    }
    return e == 0 && step != SQLITE_DONE ? read_failed(r) : e;
}

int sqlite_read_blocks(struct store_read *r, bool entries,
                       int (*visit)(void *, const struct store_block *), void *context)
{
    static const char sums[] = "SELECT start, samples, weight" OF_A_SPAN " ORDER BY start",
                      data[] = "SELECT start, samples, weight, data" OF_A_SPAN " ORDER BY start";
    const char *select = entries || r->choice->request ? data : sums;
    return read_blocks(r, &select, 1, entries, visit, context);
}

int sqlite_read_ends(struct store_read *r, int (*visit)(void *, const struct store_block *),
                     void *context)
{
    /* An index has these columns, so the pages of the blocks, which have the sums, are not read. */
    static const char *const ends[] = {
        "SELECT start, 0, 0" OF_A_SPAN " AND samples > 0 ORDER BY start LIMIT 1",
        "SELECT start, 0, 0" OF_A_SPAN " AND samples > 0 ORDER BY start DESC LIMIT 1"};
    if (r->choice->request) /* only the data of blocks shows which of them have the request */
        return sqlite_read_blocks(r, false, visit, context);
    return read_blocks(r, ends, ARRAY_SIZE(ends), false, visit, context);
}

static int visit_latency(struct store_read *r, sqlite3_stmt *s, struct store_latency *l,
                         int (*visit)(void *, const struct store_latency *), void *context)
{
    const uint64_t *name = map_get(&r->request_name_of, (uint64_t)sqlite3_column_int64(s, 1));
    struct fleet_counts counts = {0};
    if (!name)
        return 0;
    int e =
        fleet_counts_read(&counts, sqlite3_column_blob(s, 6), (size_t)sqlite3_column_bytes(s, 6));
    l->request = strpool_get(&r->request_names, *name).data;
    l->start_s = sqlite3_column_int64(s, 0);
    l->count = (uint64_t)sqlite3_column_int64(s, 2);
    l->errors = (uint64_t)sqlite3_column_int64(s, 3);
    l->total_ns = (uint64_t)sqlite3_column_int64(s, 4);
    l->max_ns = (uint64_t)sqlite3_column_int64(s, 5);
    l->counts = counts.list.data;
    l->n_counts = counts.list.len;
    if (e == 0)
        e = visit(context, l);
    vec_release(&counts.list);
    return e;
}

/* Visits the latencies of one series in one span. */
static int latencies_of(struct store_read *r, sqlite3_stmt *s, const struct store_series *series,
                        const struct store_span *span,
                        int (*visit)(void *, const struct store_latency *), void *context)
{
    struct store_latency l = {.series = series, .length_s = store_resolution_s[span->resolution]};
    int e = 0, step = SQLITE_DONE;
    sqlite3_bind_int(s, 1, span->resolution);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)series->id);
    sqlite3_bind_int64(s, 3, span->from_s);
    sqlite3_bind_int64(s, 4, span->to_s);
    while (e == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
        e = visit_latency(r, s, &l, visit, context);
    if (e == 0 && step != SQLITE_DONE)
        e = read_failed(r);
    sqlite3_reset(s);
    return e;
}

int sqlite_read_latencies(struct store_read *r, int (*visit)(void *, const struct store_latency *),
                          void *context)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(r->db,
                       "SELECT start, request, requests, errors, total_ns, max_ns, data"
                       " FROM latency WHERE resolution = ?1 AND series = ?2 AND start >= ?3"
                       " AND start < ?4 ORDER BY start, request",
                       r->why);
    int e = s ? 0 : read_failed(r);
    for (size_t k = 0; k < r->series.len && e == 0; k++)
        for (int i = 0; i < r->n_spans && e == 0; i++)
            e = latencies_of(r, s, &r->series.data[k], &r->spans[i], visit, context);
    return e;
}

int sqlite_read_findings(struct store_read *r, int (*visit)(void *, const struct store_finding *),
                         void *context)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(r->db,
                       "SELECT start, series, kind, text, count, weight_ns FROM finding"
                       " WHERE start >= ?1 AND start < ?2 ORDER BY start, id",
                       r->why);
    int e = s ? 0 : read_failed(r);
    int step = SQLITE_DONE;
    if (e == 0) {
        sqlite3_bind_int64(s, 1, r->choice->from_s);
        sqlite3_bind_int64(s, 2, r->choice->to_s ? r->choice->to_s : INT64_MAX);
    }
    while (e == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
        const uint64_t *series = map_get(&r->series_of, (uint64_t)sqlite3_column_int64(s, 1));
        struct store_finding f = {.start_s = sqlite3_column_int64(s, 0),
                                  .kind = (const char *)sqlite3_column_text(s, 2),
                                  .text = (const char *)sqlite3_column_text(s, 3),
                                  .count = (uint64_t)sqlite3_column_int64(s, 4),
                                  .weight_ns = (uint64_t)sqlite3_column_int64(s, 5)};
        if (!series || !f.kind || !f.text)
            continue;
        f.series = &r->series.data[*series];
        e = visit(context, &f);
    }
    return e == 0 && step != SQLITE_DONE ? read_failed(r) : e;
}

/* Returns the number of a frame in this view, or a negative errno. */
static int64_t frame_number(struct store_read *r, uint64_t id)
{
    const uint64_t *known = map_get(&r->frame_of, id);
    if (known)
        return (int64_t)*known;
    struct store_frame f = {"?", FLEET_MARK};
    int64_t text = -ENOMEM;
    sqlite3_bind_int64(r->find_frame, 1, (sqlite3_int64)id);
    if (sqlite3_step(r->find_frame) == SQLITE_ROW) {
        const char *label = (const char *)sqlite3_column_text(r->find_frame, 1);
        int kind = sqlite3_column_int(r->find_frame, 0);
        if (label)
            text = strpool_add(&r->texts, label, (size_t)sqlite3_column_bytes(r->find_frame, 1));
        f.kind = kind >= 0 && kind < FLEET_KINDS ? (enum fleet_kind)kind : FLEET_MARK;
    } else {
        text = strpool_add(&r->texts, "[unknown]", 9);
    }
    sqlite3_reset(r->find_frame);
    if (text < 0)
        return text;
    f.label = strpool_get(&r->texts, (uint64_t)text).data;
    int e = vec_push(&r->frames, f);
    if (e == 0)
        e = map_put(&r->frame_of, id, r->frames.len - 1);
    return e < 0 ? e : (int64_t)r->frames.len - 1;
}

static int load_stack(struct store_read *r, uint64_t stack, uint64_t *ret)
{
    size_t start = r->path.len;
    int e = 0;
    sqlite3_bind_int64(r->find_stack, 1, (sqlite3_int64)stack);
    if (sqlite3_step(r->find_stack) == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(r->find_stack, 0);
        struct cursor c =
            cursor_of(bytes ? bytes : "", (size_t)sqlite3_column_bytes(r->find_stack, 0));
        while (e == 0 && cursor_left(&c) && !c.failed) {
            int64_t frame = frame_number(r, cursor_varint(&c));
            e = frame < 0 ? (int)frame : vec_push(&r->path, (uint32_t)frame);
        }
    }
    sqlite3_reset(r->find_stack);
    if (e == 0 && (start > UINT32_MAX || r->path.len - start > UINT32_MAX))
        e = -E2BIG;
    *ret = (uint64_t)start << 32 | (r->path.len - start);
    return e < 0 ? e : map_put(&r->stack_of, stack, *ret);
}

int sqlite_read_stack(struct store_read *r, uint64_t stack, struct store_stack *ret)
{
    const uint64_t *known = map_get(&r->stack_of, stack);
    uint64_t at = known ? *known : 0;
    int e = known ? 0 : load_stack(r, stack, &at);
    if (e == 0)
        *ret = (struct store_stack){vec_at(&r->path, at >> 32), (size_t)(at & UINT32_MAX)};
    return e;
}

int sqlite_read_frame(struct store_read *r, uint32_t frame, struct store_frame *ret)
{
    if (frame >= r->frames.len)
        return -ENOENT;
    *ret = r->frames.data[frame];
    return 0;
}

const char *sqlite_read_request(struct store_read *r, uint64_t request)
{
    const uint64_t *at = map_get(&r->request_name_of, request);
    return at ? strpool_get(&r->request_names, *at).data : NULL;
}
