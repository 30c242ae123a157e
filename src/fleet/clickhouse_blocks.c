/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads blocks of samples from ClickHouse. In steps of 5 min and 1 h, a block has up to two
 * sources: a merged row, which lists its uploads, and rows of uploads that are not merged yet. The
 * latter are read first, so that rows that are merged and deleted meanwhile are read twice, which
 * the list reveals, and are never missed.
 */
#include "fleet/clickhouse_read.h"

#include <errno.h>
#include <inttypes.h>

/*
 * ENTRIES_AT_ONCE: entries that one statement reads, unless one bucket of time alone has more.
 * FIRST_STEPS: steps that the first statement reads for sums; few, because a visit may stop early.
 */
enum { ENTRIES_AT_ONCE = 4 << 20, FIRST_STEPS = 64 };

/* A row that an upload added. */
struct fresh {
    uint64_t of; /* series or program */
    int64_t start_s;
    uint64_t upload, samples, weight;
    struct str data; /* in block_visits.answer */
};

struct bucket_size {
    int64_t start_s;
    uint64_t entries;
};

struct block_visits {
    struct store_read *r;
    struct store_block b;
    int (*visit)(void *, const struct store_block *);
    void *context;
    bool entries;          /* the visit needs entries */
    bool data;             /* the blocks' data is read */
    bool programs;         /* blocks are those of programs, not of series */
    struct map program_of; /* by hash: the number of a series of it; only those that are chosen */
    /* The block that is being filled. Its entries have hashes of stacks. */
    uint64_t of;
    struct fleet_entries e;
    size_t parts;
    uint64_t last_upload; /* of the row before in a table without merged rows */
    /* What is not merged yet: of all spans, and of this one by time and series or program. */
    struct buf answer;
    VEC(struct fresh) fresh;
    VEC(struct fresh) now;
    size_t next;
    /*
     * The last merged row, and the uploads of all rows of its bucket: each server that has series
     * of a program has a row.
     */
    struct fresh merged;
    struct map covered;
    VEC(struct bucket_size) sizes;
};

static void visits_release(struct block_visits *v)
{
    map_release(&v->program_of);
    fleet_entries_release(&v->e);
    buf_release(&v->answer);
    vec_release(&v->fresh);
    vec_release(&v->now);
    map_release(&v->covered);
    vec_release(&v->sizes);
}

/* ---- one block */

/* Returns the number that a stack has in this view. */
static int64_t stack_number(struct store_read *r, uint64_t hash)
{
    bool added;
    const uint64_t *at = map_at(&r->stack_of, hash, r->stacks.len, &added);
    int e = !at     ? -ENOMEM
            : added ? vec_push(&r->stacks, ((struct fetched_stack){.hash = hash}))
                    : 0;
    return e < 0 ? e : (int64_t)*at;
}

/* Removes all entries but those of the chosen request, and replaces hashes of stacks by numbers. */
static int choose_entries(struct block_visits *v)
{
    size_t kept = 0;
    bool request = v->r->choice->request != NULL;
    if (v->parts > 1)
        fleet_entries_settle(&v->e);
    if (request)
        v->b.samples = v->b.weight = 0;
    for (size_t i = 0; i < v->e.list.len; i++) {
        struct fleet_entry entry = v->e.list.data[i];
        if (request && !map_get(&v->r->request_name_of, entry.request))
            continue;
        int64_t number = v->entries ? stack_number(v->r, entry.stack) : 0;
        if (number < 0)
            return (int)number;
        entry.stack = (uint64_t)number;
        v->b.samples += request ? entry.count : 0;
        v->b.weight += request ? entry.weight : 0;
        v->e.list.data[kept++] = entry;
    }
    v->e.list.len = kept;
    return 0;
}

static int end_block(struct block_visits *v)
{
    const struct map *chosen = v->programs ? &v->program_of : &v->r->series_of;
    const uint64_t *series = v->parts ? map_get(chosen, v->of) : NULL;
    /* A series that arrived while the question was being answered is not part of the answer. */
    int e = series && v->data ? choose_entries(v) : 0;
    if (e == 0 && series && (v->b.samples || v->b.weight)) {
        v->b.series = &v->r->series.data[*series];
        v->b.entries = v->entries ? &v->e : NULL;
        e = v->visit(v->context, &v->b);
    }
    vec_clear(&v->e.list);
    v->b.samples = v->b.weight = 0;
    v->parts = 0;
    return e;
}

static int add_part(struct block_visits *v, uint64_t of, int64_t start_s, uint64_t samples,
                    uint64_t weight, struct str data)
{
    int e = v->parts && (of != v->of || start_s != v->b.start_s) ? end_block(v) : 0;
    v->of = of;
    v->b.start_s = start_s;
    v->b.samples += samples;
    v->b.weight += weight;
    v->parts++;
    if (e == 0 && v->data && (e = fleet_block_read(&v->e, data.data, data.len)) == -EBADMSG)
        buf_string(v->r->why, "a block in ClickHouse is damaged");
    return e;
}

/* ---- statements */

static void put_text(struct buf *sql, const char *text)
{
    buf_u8(sql, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            buf_u8(sql, '\\');
        buf_u8(sql, (uint8_t)*text);
    }
    buf_u8(sql, '\'');
}

static enum clickhouse_table table_of(const struct block_visits *v, int resolution)
{
    static const enum clickhouse_table series[] = {CH_BLOCK_10S, CH_BLOCK_5M, CH_BLOCK_1H};

    static const enum clickhouse_table programs[] = {CH_BLOCK_10S, CH_PROGRAM_5M, CH_PROGRAM_1H};

    return v->programs ? programs[resolution] : series[resolution];
}

/* Writes " FROM ... WHERE", which selects the chosen rows of a type and a time. */
static void put_from(struct block_visits *v, enum clickhouse_table table, const char *final,
                     int64_t from_s, int64_t to_s, struct buf *sql)
{
    struct store_span span = {.from_s = from_s, .to_s = to_s};
    uint64_t program, series;
    size_t i = 0;
    const char *before = "";
    buf_printf(sql, " FROM %s%s WHERE type = ", clickhouse_table(v->r->s, table), final);
    put_text(sql, v->b.type);
    buf_string(sql, " AND unit = ");
    put_text(sql, v->b.unit);
    buf_string(sql, " AND");
    clickhouse_put_span(sql, &span);
    if (table == CH_BLOCK_10S) /* as the table is sorted */
        buf_printf(sql, " AND intDiv(start, 300) BETWEEN %" PRId64 " AND %" PRId64,
                   MAX(from_s, INT64_C(0)) / 300, MIN(to_s, (int64_t)UINT32_MAX) / 300);
    if (!v->programs || v->r->all_series || table == CH_BLOCK_10S) {
        clickhouse_put_series(v->r, sql);
        return;
    }
    buf_string(sql, " AND program IN (");
    while (map_next(&v->program_of, &i, &program, &series)) {
        buf_printf(sql, "%s%" PRIu64, before, program);
        before = ",";
    }
    buf_string(sql, ")");
}

/* ---- what is not merged yet */

static int take_fresh(struct block_visits *v)
{
    struct cursor c = cursor_of(v->answer.data, v->answer.len);
    uint64_t series_before = 0;
    int e = 0;
    while (e == 0 && cursor_left(&c) && !c.failed) {
        struct fresh f = {.start_s = cursor_le32(&c)};
        uint64_t series = cursor_le64(&c), program = cursor_le64(&c);
        f.of = v->programs ? program : series;
        f.upload = cursor_le64(&c);
        f.samples = cursor_le64(&c);
        f.weight = cursor_le64(&c);
        f.data = clickhouse_take_text(&c);
        const struct fresh *last = v->fresh.len ? vec_end(&v->fresh) - 1 : NULL;
        /* This row was inserted twice and has not been replaced yet. */
        if (last && series == series_before && last->start_s == f.start_s &&
            last->upload == f.upload)
            continue;
        series_before = series;
        e = vec_push(&v->fresh, f);
    }
    if (e == 0 && c.failed) {
        buf_string(v->r->why, "an answer of ClickHouse is damaged");
        e = -EBADMSG;
    }
    return e;
}

static int read_fresh(struct block_visits *v)
{
    struct store_read *r = v->r;
    int64_t from = INT64_MAX, to = INT64_MIN;
    for (int i = 0; i < r->n_spans; i++) {
        if (!r->spans[i].resolution)
            continue;
        from = MIN(from, r->spans[i].from_s);
        to = MAX(to, r->spans[i].to_s);
    }
    vec_clear(&v->fresh);
    buf_clear(&v->answer);
    if (from >= to)
        return 0;
    _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
    buf_printf(&sql, "SELECT start, series, program, upload, samples, weight, %s",
               v->data ? "data" : "''");
    put_from(v, CH_BLOCK_NEW, "", from, to, &sql);
    buf_string(&sql, " ORDER BY series, start, upload FORMAT RowBinary");
    int e = buf_error(&sql);
    if (e == 0)
        e = clickhouse_run(r->s, buf_str(&sql), NULL, &v->answer, r->why);
    return e < 0 ? e : take_fresh(v);
}

static int compare_fresh(const void *left, const void *right)
{
    const struct fresh *a = left, *b = right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return (a->of > b->of) - (a->of < b->of);
}

/* Chooses the rows that belong to a span. */
static int choose_fresh(struct block_visits *v, const struct store_span *span)
{
    int e = 0;
    vec_clear(&v->now);
    v->next = 0;
    for (size_t i = 0; i < v->fresh.len && e == 0; i++) {
        struct fresh f = v->fresh.data[i];
        if (f.start_s < span->from_s || f.start_s >= span->to_s)
            continue;
        f.start_s = fleet_floor(f.start_s, v->b.length_s);
        e = vec_push(&v->now, f);
    }
    vec_sort(&v->now, compare_fresh);
    return e;
}

/* Adds the unmerged rows that come before a merged row; with_row: or belong to its bucket. */
static int add_fresh(struct block_visits *v, const struct fresh *row, bool with_row)
{
    int e = 0;
    for (; v->next < v->now.len && e == 0; v->next++) {
        const struct fresh *f = &v->now.data[v->next];
        int order = compare_fresh(f, row);
        if (order > 0 || (order == 0 && !with_row))
            break;
        if (order < 0 || !map_get(&v->covered, f->upload))
            e = add_part(v, f->of, f->start_s, f->samples, f->weight, f->data);
    }
    return e;
}

/* ---- merged rows */

static int on_merged_row(void *context, struct cursor *c)
{
    struct block_visits *v = context;
    struct fresh row = {.start_s = cursor_le32(c)};
    row.of = cursor_le64(c);
    uint64_t n = cursor_varint(c);
    if (c->failed || n > cursor_left(c) / sizeof(uint64_t))
        return -EBADMSG;
    int e = 0;
    if (compare_fresh(&v->merged, &row) != 0) {
        e = add_fresh(v, &v->merged, true);
        map_clear(&v->covered);
    }
    for (uint64_t i = 0; i < n && e == 0; i++)
        e = map_put(&v->covered, cursor_le64(c), 0);
    row.samples = cursor_le64(c);
    row.weight = cursor_le64(c);
    row.data = clickhouse_take_text(c);
    if (e == 0)
        e = add_fresh(v, &row, false);
    v->merged = row;
    return e < 0 ? e : add_part(v, row.of, row.start_s, row.samples, row.weight, row.data);
}

/* Reads merged rows. uploads: some rows of that time are not merged yet. */
static int read_merged(struct block_visits *v, enum clickhouse_table table, int64_t from_s,
                       int64_t to_s, bool uploads)
{
    _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
    const char *of = v->programs ? "program" : "series";
    buf_printf(&sql, "SELECT start, %s, %s, samples, weight, %s", of,
               uploads ? "uploads" : "emptyArrayUInt64()", v->data ? "data" : "''");
    put_from(v, table, " FINAL", from_s, to_s, &sql);
    buf_printf(&sql, " ORDER BY start, %s", of);
    map_clear(&v->covered);
    v->merged = (struct fresh){.start_s = INT64_MIN};
    int e = clickhouse_each_row(v->r, &sql, on_merged_row, v);
    struct fresh end = {.start_s = to_s};
    if (e == 0)
        e = add_fresh(v, &v->merged, true);
    return e < 0 ? e : add_fresh(v, &end, false);
}

static int on_size_row(void *context, struct cursor *c)
{
    struct block_visits *v = context;
    struct bucket_size size = {.start_s = cursor_le32(c)};
    size.entries = cursor_le64(c);
    return vec_push(&v->sizes, size);
}

/* Reads how much there is to be read, by time. */
static int read_sizes(struct block_visits *v, enum clickhouse_table table,
                      const struct store_span *span)
{
    _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
    vec_clear(&v->sizes);
    if (!v->data || span->to_s - span->from_s <= v->b.length_s)
        return 0;
    buf_string(&sql, "SELECT start, sum(entries)");
    put_from(v, table, "", span->from_s, span->to_s, &sql);
    buf_string(&sql, " GROUP BY start ORDER BY start");
    return clickhouse_each_row(v->r, &sql, on_size_row, v);
}

/* Returns the end of the part that begins at *i in sizes; *i becomes the bucket after it. */
static int64_t part_until(const struct block_visits *v, size_t *i, int64_t to_s)
{
    uint64_t entries = 0;
    for (size_t first = *i; *i < v->sizes.len && v->sizes.data[*i].start_s < to_s; ++*i) {
        entries += v->sizes.data[*i].entries;
        if (entries > ENTRIES_AT_ONCE && *i > first)
            return v->sizes.data[*i].start_s;
    }
    return to_s;
}

/* Returns until when from from_s on everything is merged, or nothing (sets *ret_fresh). */
static int64_t same_until(const struct block_visits *v, int64_t from_s, int64_t to_s,
                          bool *ret_fresh)
{
    size_t i = v->next;
    *ret_fresh = i < v->now.len && v->now.data[i].start_s == from_s;
    if (!*ret_fresh)
        return i < v->now.len ? v->now.data[i].start_s : to_s;
    for (int64_t end = from_s;; end += v->b.length_s) {
        while (i < v->now.len && v->now.data[i].start_s == end)
            i++;
        if (i == v->now.len || v->now.data[i].start_s != end + v->b.length_s)
            return end + v->b.length_s;
    }
}

static int on_upload_row(void *context, struct cursor *c)
{
    struct block_visits *v = context;
    int64_t start_s = cursor_le32(c);
    uint64_t of = cursor_le64(c), upload = cursor_le64(c);
    uint64_t samples = cursor_le64(c), weight = cursor_le64(c);
    struct str data = clickhouse_take_text(c);
    bool again = v->parts && of == v->of && start_s == v->b.start_s && upload == v->last_upload;
    v->last_upload = upload;
    return again ? 0 : add_part(v, of, start_s, samples, weight, data);
}

static int read_uploads(struct block_visits *v, int64_t from_s, int64_t to_s)
{
    _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
    buf_printf(&sql, "SELECT start, series, upload, samples, weight, %s", v->data ? "data" : "''");
    put_from(v, CH_BLOCK_10S, "", from_s, to_s, &sql);
    buf_string(&sql, " ORDER BY start, series, upload");
    return clickhouse_each_row(v->r, &sql, on_upload_row, v);
}

static int blocks_of_span(struct block_visits *v, const struct store_span *span)
{
    enum clickhouse_table table = table_of(v, span->resolution);
    int64_t from = MAX(span->from_s, INT64_C(0)), to = MIN(span->to_s, (int64_t)UINT32_MAX);
    bool programs = v->programs, fresh = false;
    size_t size = 0;
    int64_t piece_s = FIRST_STEPS * store_resolution_s[span->resolution];
    if (from >= to)
        return 0;
    v->b.length_s = store_resolution_s[span->resolution];
    v->programs = programs && span->resolution;
    int e = span->resolution ? choose_fresh(v, span) : 0;
    if (e == 0)
        e = read_sizes(v, table, span);
    while (from < to && e == 0) {
        int64_t end = span->resolution ? same_until(v, from, to, &fresh) : to;
        end = part_until(v, &size, MIN(end, to));
        if (!v->data)
            end = MIN(end, from + piece_s);
        piece_s = MIN(8 * piece_s, (int64_t)UINT32_MAX);
        e = span->resolution ? read_merged(v, table, from, end, fresh) : read_uploads(v, from, end);
        from = end;
    }
    if (e == 0)
        e = end_block(v);
    v->programs = programs;
    return e;
}

/* ---- all types and spans */

struct type {
    char *name, *unit;
};

struct types {
    VEC(struct type) list;
};

static void types_release(struct types *t)
{
    for (size_t i = 0; i < t->list.len; i++) {
        free(t->list.data[i].name);
        free(t->list.data[i].unit);
    }
    vec_release(&t->list);
}

static int on_type_row(void *context, struct cursor *c)
{
    struct types *types = context;
    struct str name = clickhouse_take_text(c), unit = clickhouse_take_text(c);
    struct type t = {strndup(name.data, name.len), strndup(unit.data, unit.len)};
    int e = t.name && t.unit ? vec_push(&types->list, t) : -ENOMEM;
    if (e < 0) {
        free(t.name);
        free(t.unit);
    }
    return e;
}

/* Visits the blocks of each type in each span. */
static int each_span(struct block_visits *v,
                     int (*read)(struct block_visits *, const struct store_span *))
{
    struct store_read *r = v->r;
    _cleanup_(types_release) struct types types = {0};
    _cleanup_(buf_release) struct buf sql = BUF(4096);
    if (clickhouse_choice_is_empty(r))
        return 0;
    buf_printf(&sql, "SELECT DISTINCT name, unit FROM %s ORDER BY name, unit",
               clickhouse_table(r->s, CH_TYPE));
    int e = clickhouse_each_row(r, &sql, on_type_row, &types);
    for (size_t i = 0; i < types.list.len && e == 0; i++) {
        v->b.type = types.list.data[i].name;
        v->b.unit = types.list.data[i].unit;
        if (!store_matches(r->choice->type, v->b.type))
            continue;
        e = read_fresh(v);
        for (int k = 0; k < r->n_spans && e == 0; k++)
            e = read(v, &r->spans[k]);
    }
    return e;
}

static int choose_programs(struct block_visits *v)
{
    const struct store_read *r = v->r;
    int e = 0;
    for (size_t i = 0; i < r->series.len && e == 0; i++) {
        const struct store_series *s = &r->series.data[i];
        struct fleet_origin o = {s->tenant,   s->service, s->version, s->host,
                                 s->instance, s->labels,  s->n_labels};
        e = map_put(&v->program_of, clickhouse_program(&o), i);
    }
    return e;
}

int clickhouse_read_blocks(struct store_read *r, bool entries,
                           int (*visit)(void *, const struct store_block *), void *context)
{
    const struct fleet_choice *choice = r->choice;
    _cleanup_(visits_release) struct block_visits v = {.r = r,
                                                       .entries = entries,
                                                       .data = entries || choice->request,
                                                       .answer = BUF(ANSWER_MAX),
                                                       .visit = visit,
                                                       .context = context};
    v.programs = (choice->merged || choice->by_program) && !choice->host && !choice->instance;
    int e = v.programs ? choose_programs(&v) : 0;
    return e < 0 ? e : each_span(&v, blocks_of_span);
}

/* ---- the first and the last block of each series */

struct series_ends {
    uint64_t series;
    int64_t first_s, last_s;
};

struct ends {
    struct map at; /* by series: the number in list */
    VEC(struct series_ends) list;
};

static int add_end(struct ends *ends, uint64_t series, int64_t start_s)
{
    bool added;
    const uint64_t *at = map_at(&ends->at, series, ends->list.len, &added);
    if (!at)
        return -ENOMEM;
    if (added)
        return vec_push(&ends->list, ((struct series_ends){series, start_s, start_s}));
    struct series_ends *x = &ends->list.data[*at];
    x->first_s = MIN(x->first_s, start_s);
    x->last_s = MAX(x->last_s, start_s);
    return 0;
}

static int on_ends_row(void *context, struct cursor *c)
{
    uint64_t series = cursor_le64(c);
    int64_t first = cursor_le32(c), last = cursor_le32(c);
    int e = add_end(context, series, first);
    return e < 0 ? e : add_end(context, series, last);
}

static int visit_ends(struct block_visits *v, const struct ends *ends)
{
    int e = 0;
    for (size_t i = 0; i < ends->list.len && e == 0; i++) {
        const struct series_ends *x = &ends->list.data[i];
        const uint64_t *series = map_get(&v->r->series_of, x->series);
        if (!series)
            continue;
        v->b.series = &v->r->series.data[*series];
        v->b.start_s = x->first_s;
        e = v->visit(v->context, &v->b);
        v->b.start_s = x->last_s;
        if (e == 0)
            e = v->visit(v->context, &v->b);
    }
    return e;
}

static int ends_of_span(struct block_visits *v, const struct store_span *span)
{
    _cleanup_(buf_release) struct buf sql = BUF(STATEMENT_MAX);
    struct ends ends = {0};
    int e = 0;
    v->b.length_s = store_resolution_s[span->resolution];
    if (span->resolution)
        e = choose_fresh(v, span);
    for (size_t i = 0; span->resolution && i < v->now.len && e == 0; i++)
        if (v->now.data[i].samples)
            e = add_end(&ends, v->now.data[i].of, v->now.data[i].start_s);
    buf_string(&sql, "SELECT series, min(start), max(start)");
    put_from(v, table_of(v, span->resolution), "", span->from_s, span->to_s, &sql);
    buf_string(&sql, " AND samples > 0 GROUP BY series");
    if (e == 0)
        e = clickhouse_each_row(v->r, &sql, on_ends_row, &ends);
    if (e == 0)
        e = visit_ends(v, &ends);
    map_release(&ends.at);
    vec_release(&ends.list);
    return e;
}

int clickhouse_read_ends(struct store_read *r, int (*visit)(void *, const struct store_block *),
                         void *context)
{
    if (r->choice->request) /* which blocks have it is in their data */
        return clickhouse_read_blocks(r, false, visit, context);
    _cleanup_(visits_release) struct block_visits v = {
        .r = r, .answer = BUF(ANSWER_MAX), .visit = visit, .context = context};
    return each_span(&v, ends_of_span);
}
