/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the blocks of uploads in a store in ClickHouse. An upload adds rows of its own to
 * CH_BLOCK_NEW, in steps of 5 min. From time to time each collector adds these to the rows of the
 * merged tables, which have one row for each type, series or program, and bucket, and deletes them.
 *
 * A merged row lists its uploads. A row of an upload that a merged row lists is ignored, whether it
 * has not been deleted yet or was inserted again, so a process may end at any moment. Of several
 * rows of one bucket, ClickHouse keeps the one with the most uploads (ReplacingMergeTree). That is
 * right when two collectors merge at the same time: each reads what is new before what is merged,
 * on one server, and the rows of a server become visible one after the other, so one of the two
 * rows lists all uploads of the other one.
 */
#include "fleet/clickhouse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    HOUR_S = 3600,
    PART_ENTRIES = 512 << 10,
    PART_BYTES = 48 << 20 /* of an answer or the rows of a table */
};

/* ---- parts */

static int on_share(struct cursor *c, struct clickhouse_share *ret)
{
    ret->hour_s = (int64_t)cursor_le32(c) * HOUR_S;
    ret->series = cursor_le64(c);
    ret->entries = cursor_le64(c);
    return c->failed ? -EBADMSG : 0;
}

/* Visits a part of an hour. list: the shares of that hour. */
static int visit_part(const struct clickhouse_share *list, size_t n, clickhouse_part *visit,
                      void *context, struct buf *why)
{
    uint64_t entries = 0;
    for (size_t i = 0; i < n; i++)
        entries += list[i].entries;
    int r = entries > PART_ENTRIES && n > 1 ? -E2BIG : visit(context, list, n, why);
    if (r != -E2BIG)
        return r;
    buf_clear(why);
    if (n == 1)
        return 0;
    r = visit_part(list, n / 2, visit, context, why);
    return r < 0 ? r : visit_part(list + n / 2, n - n / 2, visit, context, why);
}

int clickhouse_each_part(struct clickhouse_store *s, const char *host, const char *select,
                         clickhouse_part *visit, void *context, struct buf *why)
{
    _cleanup_(buf_release) struct buf answer = BUF(PART_BYTES);
    VEC(struct clickhouse_share) list = {0};
    int r = clickhouse_run_on(s, host, select, NULL, &answer, why);
    struct cursor c = cursor_of(answer.data, answer.len);
    while (r == 0 && cursor_left(&c)) {
        struct clickhouse_share share;
        r = on_share(&c, &share);
        if (r == 0)
            r = vec_push(&list, share);
    }
    for (size_t i = 0, end; i < list.len && r == 0; i = end) {
        for (end = i + 1; end < list.len && list.data[end].hour_s == list.data[i].hour_s;)
            end++;
        r = visit_part(list.data + i, end - i, visit, context, why);
    }
    vec_release(&list);
    return r;
}

void clickhouse_put_part(struct buf *sql, const struct clickhouse_share *list, size_t n)
{
    buf_printf(sql, " WHERE start >= %" PRId64 " AND start < %" PRId64 " AND series IN (",
               list->hour_s, list->hour_s + HOUR_S);
    for (size_t i = 0; i < n; i++)
        buf_printf(sql, "%s%" PRIu64, i ? "," : "", list[i].series);
    buf_string(sql, ")");
}

/* ---- merging */

/* A row of an answer: a new row, or an existing merged one. */
struct block_row {
    struct str type, unit;
    uint64_t of; /* in the table that is being merged into */
    int64_t start_s;
    uint64_t series, program, upload;
    int64_t upload_start_s;
    struct cursor uploads; /* of a merged one */
    uint64_t n_uploads;
    struct str data;
};

struct merging {
    struct clickhouse_store *s;
    const char *host;
    VEC(struct block_row) fresh;
    VEC(struct block_row) existing;
    struct map covered, added; /* uploads */
    struct fleet_entries e;
    struct buf rows;
};

static const struct {
    enum clickhouse_table table;
    bool programs;
    int64_t step_s;
} targets[] = {{CH_BLOCK_5M, false, 300},
               {CH_BLOCK_1H, false, HOUR_S},
               {CH_PROGRAM_5M, true, 300},
               {CH_PROGRAM_1H, true, HOUR_S}};

static int compare_text(struct str a, struct str b)
{
    int order = memcmp(a.data, b.data, MIN(a.len, b.len));
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Orders rows as ClickHouse does. */
static int compare_rows(const void *left, const void *right)
{
    const struct block_row *a = left, *b = right;
    int order = compare_text(a->type, b->type);
    if (!order)
        order = compare_text(a->unit, b->unit);
    if (order)
        return order;
    if (a->of != b->of)
        return a->of < b->of ? -1 : 1;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

static bool is_same_row(const struct block_row *a, const struct block_row *b)
{
    return a->series == b->series && a->upload == b->upload &&
           a->upload_start_s == b->upload_start_s && compare_text(a->type, b->type) == 0 &&
           compare_text(a->unit, b->unit) == 0;
}

static int read_fresh(struct merging *m, const struct clickhouse_share *list, size_t n,
                      struct buf *answer, struct buf *why)
{
    _cleanup_(buf_release) struct buf sql = BUF(PART_BYTES);
    buf_printf(&sql, "SELECT type, unit, series, program, start, upload, data FROM %s",
               clickhouse_local_table(CH_BLOCK_NEW));
    clickhouse_put_part(&sql, list, n);
    buf_string(&sql, " ORDER BY type, unit, series, start, upload FORMAT RowBinary");
    int r = buf_error(&sql);
    if (r == 0)
        r = clickhouse_run_on(m->s, m->host, buf_str(&sql), NULL, answer, why);
    struct cursor c = cursor_of(answer->data, answer->len);
    vec_clear(&m->fresh);
    while (r == 0 && cursor_left(&c)) {
        struct block_row row = {.type = clickhouse_take_text(&c), .unit = clickhouse_take_text(&c)};
        row.series = cursor_le64(&c);
        row.program = cursor_le64(&c);
        row.upload_start_s = cursor_le32(&c);
        row.upload = cursor_le64(&c);
        row.data = clickhouse_take_text(&c);
        if (c.failed)
            r = -EBADMSG;
        /* This row was inserted twice and has not been replaced yet. */
        else if (!m->fresh.len || !is_same_row(vec_end(&m->fresh) - 1, &row))
            r = vec_push(&m->fresh, row);
    }
    return r;
}

/* Reads the rows that a table has in the buckets of the new rows, and perhaps others. */
static int read_existing(struct merging *m, size_t target, struct buf *answer, struct buf *why)
{
    _cleanup_(buf_release) struct buf sql = BUF(PART_BYTES);
    const char *of = targets[target].programs ? "program" : "series";
    int64_t hour = fleet_floor(m->fresh.data[0].start_s, HOUR_S);
    struct map ofs = {0};
    const char *before = "";
    buf_printf(&sql,
               "SELECT type, unit, %s, start, uploads, data FROM %s FINAL WHERE start >= %" PRId64
               " AND start < %" PRId64 " AND %s IN (",
               of, clickhouse_local_table(targets[target].table), hour, hour + HOUR_S, of);
    int r = 0;
    for (size_t i = 0; i < m->fresh.len && r == 0; i++) {
        bool added = false;
        r = map_at(&ofs, m->fresh.data[i].of, 0, &added) ? 0 : -ENOMEM;
        if (added)
            buf_printf(&sql, "%s%" PRIu64, before, m->fresh.data[i].of);
        before = ",";
    }
    map_release(&ofs);
    buf_printf(&sql, ") ORDER BY type, unit, %s, start FORMAT RowBinary", of);
    if (r == 0)
        r = buf_error(&sql);
    if (r == 0)
        r = clickhouse_run_on(m->s, m->host, buf_str(&sql), NULL, answer, why);
    struct cursor c = cursor_of(answer->data, answer->len);
    vec_clear(&m->existing);
    while (r == 0 && cursor_left(&c)) {
        struct block_row row = {.type = clickhouse_take_text(&c), .unit = clickhouse_take_text(&c)};
        row.of = cursor_le64(&c);
        row.start_s = cursor_le32(&c);
        row.n_uploads = cursor_varint(&c);
        if (c.failed || row.n_uploads > cursor_left(&c) / sizeof(uint64_t))
            return -EBADMSG;
        row.uploads = cursor_sub(&c, row.n_uploads * sizeof(uint64_t));
        row.data = clickhouse_take_text(&c);
        r = c.failed ? -EBADMSG : vec_push(&m->existing, row);
    }
    return r;
}

/*
 * Appends the row of a bucket, which contains the existing row, if there is one, and the new rows.
 */
static int merge_bucket(struct merging *m, const struct block_row *existing,
                        const struct block_row *fresh, size_t n)
{
    struct cursor uploads = existing ? existing->uploads : (struct cursor){0};
    uint64_t n_existing = existing ? existing->n_uploads : 0;
    uint64_t upload, unused;
    size_t parts = 0;
    int r = 0;
    map_clear(&m->covered);
    map_clear(&m->added);
    vec_clear(&m->e.list);
    for (uint64_t i = 0; i < n_existing && r == 0; i++)
        r = map_put(&m->covered, cursor_le64(&uploads), 0);
    for (size_t i = 0; i < n && r == 0; i++) {
        if (map_get(&m->covered, fresh[i].upload))
            continue;
        parts++;
        r = map_put(&m->added, fresh[i].upload, 0);
        if (r == 0)
            r = fleet_block_read(&m->e, fresh[i].data.data, fresh[i].data.len);
    }
    if (r == 0 && parts && existing)
        r = fleet_block_read(&m->e, existing->data.data, existing->data.len);
    if (r < 0 || !parts)
        return r;
    fleet_entries_settle(&m->e);
    clickhouse_row_text(&m->rows, fresh->type.data, fresh->type.len);
    clickhouse_row_text(&m->rows, fresh->unit.data, fresh->unit.len);
    clickhouse_row_u64(&m->rows, fresh->of);
    clickhouse_row_u32(&m->rows, (uint32_t)fresh->start_s);
    clickhouse_row_u32(&m->rows, (uint32_t)(n_existing + m->added.len));
    buf_varint(&m->rows, n_existing + m->added.len);
    if (n_existing)
        buf_bytes(&m->rows, existing->uploads.at, n_existing * sizeof(uint64_t));
    for (size_t i = 0; map_next(&m->added, &i, &upload, &unused);)
        clickhouse_row_u64(&m->rows, upload);
    clickhouse_row_block(&m->rows, &m->e);
    return buf_error(&m->rows);
}

static int merge_into(struct merging *m, size_t target, struct buf *why)
{
    _cleanup_(buf_release) struct buf answer = BUF(PART_BYTES);
    for (size_t i = 0; i < m->fresh.len; i++) {
        struct block_row *row = &m->fresh.data[i];
        row->of = targets[target].programs ? row->program : row->series;
        row->start_s = fleet_floor(row->upload_start_s, targets[target].step_s);
    }
    vec_sort(&m->fresh, compare_rows);
    buf_clear(&m->rows);
    int r = read_existing(m, target, &answer, why);
    size_t at = 0;
    for (size_t i = 0, end; i < m->fresh.len && r == 0; i = end) {
        const struct block_row *row = &m->fresh.data[i];
        for (end = i + 1; end < m->fresh.len && !compare_rows(row, &m->fresh.data[end]);)
            end++;
        while (at < m->existing.len && compare_rows(&m->existing.data[at], row) < 0)
            at++;
        bool exists = at < m->existing.len && !compare_rows(&m->existing.data[at], row);
        r = merge_bucket(m, exists ? &m->existing.data[at] : NULL, row, end - i);
    }
    if (r == 0 && m->rows.len)
        r = clickhouse_insert(m->s, m->host, targets[target].table, &m->rows, why);
    return r;
}

/*
 * Deletes the new rows that all merged tables contain now. An hour contains all rows of an upload
 * or none.
 */
static int delete_fresh(struct merging *m, int64_t hour_s, struct buf *why)
{
    _cleanup_(buf_release) struct buf sql = BUF(PART_BYTES);
    const char *before = "";
    int r = 0;
    map_clear(&m->added);
    buf_printf(&sql,
               "ALTER TABLE %s DELETE WHERE start >= %" PRId64 " AND start < %" PRId64
               " AND upload IN (",
               clickhouse_local_table(CH_BLOCK_NEW), hour_s, hour_s + HOUR_S);
    for (size_t i = 0; i < m->fresh.len && r == 0; i++) {
        bool added = false;
        r = map_at(&m->added, m->fresh.data[i].upload, 0, &added) ? 0 : -ENOMEM;
        if (added)
            buf_printf(&sql, "%s%" PRIu64, before, m->fresh.data[i].upload);
        before = ",";
    }
    buf_string(&sql, ")");
    if (r == 0)
        r = buf_error(&sql);
    return r < 0 ? r : clickhouse_run_on(m->s, m->host, buf_str(&sql), NULL, NULL, why);
}

static int merge_part(void *context, const struct clickhouse_share *list, size_t n, struct buf *why)
{
    struct merging *m = context;
    _cleanup_(buf_release) struct buf answer = BUF(PART_BYTES);
    int r = read_fresh(m, list, n, &answer, why);
    if (r < 0 || !m->fresh.len)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(targets) && r == 0; i++)
        r = merge_into(m, i, why);
    return r < 0 ? r : delete_fresh(m, list->hour_s, why);
}

int clickhouse_merge_on(struct clickhouse_store *s, const char *host, struct buf *why)
{
    struct merging m = {.s = s, .host = host, .rows = BUF(PART_BYTES)};
    char sql[256];
    /* Series of one program are merged together. */
    snprintf(sql, sizeof(sql),
             "SELECT toUInt32(intDiv(start, %d)) AS hour, series, sum(entries) FROM %s"
             " GROUP BY hour, program, series ORDER BY hour, program, series FORMAT RowBinary",
             HOUR_S, clickhouse_local_table(CH_BLOCK_NEW));
    int r = clickhouse_each_part(s, host, sql, merge_part, &m, why);
    vec_release(&m.fresh);
    vec_release(&m.existing);
    map_release(&m.covered);
    map_release(&m.added);
    fleet_entries_release(&m.e);
    buf_release(&m.rows);
    return r;
}

/* Servers that are down do not prevent merging on the others. */
int clickhouse_merge(struct store *store, struct buf *why)
{
    struct clickhouse_store *s = (struct clickhouse_store *)store;
    int r = 0;
    for (size_t i = 0; i < s->hosts.len; i++) {
        _cleanup_(buf_release) struct buf one = BUF(4096);
        int e = clickhouse_merge_on(s, s->hosts.data[i].url, &one);
        if (e < 0 && r == 0) {
            r = e;
            buf_bytes(why, one.data, one.len);
        }
    }
    return r;
}
