/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts samples of versions 1 and 2 of a store in ClickHouse into blocks. In these versions a
 * row was a stack in one series, type, bucket and upload, in a table for each resolution. Their
 * uploads become new blocks and are merged: those in steps of 5 min, and where these are no longer
 * kept, those of 1 h.
 *
 * The tables are dropped at the end. If the process is killed, what it has copied is copied again,
 * and counts once, because blocks name their uploads.
 */
#include "fleet/clickhouse.h"

#include <errno.h>
#include <stdio.h>

enum { ANSWER_BYTES = 200 << 20, ROW_BYTES = 128 << 20 };

struct upgrade {
    struct clickhouse_store *s;
    const char *host;
    struct map program_of; /* by series */
    const char *from;
    enum clickhouse_table to;
    struct buf rows;
    struct clickhouse_bucket bucket; /* the bucket being filled */
    struct fleet_entries e;
    VEC(struct fleet_hash) traces;
};

/* ---- programs of series */

static int take_texts(struct cursor *c, struct fleet_label *labels, size_t n, bool values,
                      struct arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        struct str text = clickhouse_take_text(c);
        const char *copy = arena_copy(arena, text.data, text.len);
        if (!copy)
            return -ENOMEM;
        *(values ? &labels[i].value : &labels[i].key) = copy;
    }
    return 0;
}

static int on_series(struct upgrade *u, struct cursor *c, struct arena *arena)
{
    uint64_t series = cursor_le64(c);
    const char *own[3];
    VEC(struct fleet_label) labels = {0};
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        struct str text = clickhouse_take_text(c);
        own[i] = arena_copy(arena, text.data, text.len);
        if (!own[i])
            return -ENOMEM;
    }
    uint64_t n = cursor_varint(c);
    if (c->failed || n > cursor_left(c))
        return -EBADMSG;
    r = vec_extend(&labels, n);
    if (r == 0)
        r = take_texts(c, labels.data, n, false, arena);
    if (r == 0 && cursor_varint(c) != n)
        r = -EBADMSG;
    if (r == 0)
        r = take_texts(c, labels.data, n, true, arena);
    struct fleet_origin o = {own[0], own[1], own[2], "", "", labels.data, n};
    if (r == 0)
        r = map_put(&u->program_of, series, clickhouse_program(&o));
    vec_release(&labels);
    return r;
}

static int read_programs(struct upgrade *u, struct buf *why)
{
    _cleanup_(buf_release) struct buf answer = BUF(ANSWER_BYTES);
    struct arena arena = {0};
    int r = clickhouse_run_on(u->s, u->host,
                              "SELECT hash, any(tenant), any(service), any(version), any(keys),"
                              " any(values) FROM series GROUP BY hash FORMAT RowBinary",
                              NULL, &answer, why);
    struct cursor c = cursor_of(answer.data, answer.len);
    while (r == 0 && cursor_left(&c)) {
        r = on_series(u, &c, &arena);
        if (r == 0 && c.failed)
            r = -EBADMSG;
    }
    arena_release(&arena);
    return r;
}

/* ---- samples */

static int end_bucket(struct upgrade *u)
{
    const uint64_t *program = map_get(&u->program_of, u->bucket.series);
    if (!u->e.list.len)
        return 0;
    u->bucket.program = program ? *program : 0; /* no query finds a series that does not exist */
    u->bucket.traces = u->traces.data;
    clickhouse_row_bucket(&u->rows, u->to, &u->bucket, &u->e);
    vec_clear(&u->e.list);
    vec_clear(&u->traces);
    return buf_error(&u->rows);
}

static bool is_same(struct str a, struct str b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static int on_sample(struct upgrade *u, struct cursor *c)
{
    static const struct fleet_hash none;
    struct clickhouse_bucket b = {.type = clickhouse_take_text(c), .unit = clickhouse_take_text(c)};
    b.series = cursor_le64(c);
    b.start_s = cursor_le32(c);
    b.upload = cursor_le64(c);
    struct fleet_entry entry = {.stack = cursor_le64(c), .request = cursor_le64(c)};
    const uint8_t *trace = cursor_take(c, FLEET_HASH_BYTES);
    entry.count = cursor_le64(c);
    entry.weight = cursor_le64(c);
    if (c->failed)
        return -EBADMSG;
    const struct clickhouse_bucket *now = &u->bucket;
    int r = 0;
    if (now->series != b.series || now->start_s != b.start_s || now->upload != b.upload ||
        !is_same(now->type, b.type) || !is_same(now->unit, b.unit))
        r = end_bucket(u);
    u->bucket = b;
    if (r == 0 && u->to == CH_BLOCK_10S && memcmp(trace, none.bytes, FLEET_HASH_BYTES) != 0) {
        struct fleet_hash hash;
        memcpy(hash.bytes, trace, FLEET_HASH_BYTES);
        r = vec_push(&u->traces, hash);
        entry.trace = u->traces.len;
    }
    return r < 0 ? r : vec_push(&u->e.list, entry);
}

static int copy_part(void *context, const struct clickhouse_share *list, size_t n, struct buf *why)
{
    struct upgrade *u = context;
    _cleanup_(buf_release) struct buf sql = BUF(1 << 20), answer = BUF(ANSWER_BYTES);
    buf_printf(&sql,
               "SELECT type, unit, series, start, upload, stack, request, trace, samples, weight"
               " FROM %s FINAL",
               u->from);
    clickhouse_put_part(&sql, list, n);
    buf_string(&sql, " ORDER BY type, unit, series, start, upload FORMAT RowBinary");
    int r = buf_error(&sql);
    if (r == 0)
        r = clickhouse_run_on(u->s, u->host, buf_str(&sql), NULL, &answer, why);
    struct cursor c = cursor_of(answer.data, answer.len);
    buf_clear(&u->rows);
    while (r == 0 && cursor_left(&c))
        r = on_sample(u, &c);
    if (r == 0)
        r = end_bucket(u);
    vec_clear(&u->e.list);
    vec_clear(&u->traces);
    u->bucket = (struct clickhouse_bucket){0};
    return r < 0 || !u->rows.len ? r : clickhouse_insert(u->s, u->host, u->to, &u->rows, why);
}

static int copy(struct upgrade *u, const char *from, enum clickhouse_table to, const char *where,
                struct buf *why)
{
    char sql[512];
    u->from = from;
    u->to = to;
    snprintf(sql, sizeof(sql),
             "SELECT toUInt32(intDiv(start, 3600)) AS hour, series, count() FROM %s%s"
             " GROUP BY hour, series ORDER BY hour, series FORMAT RowBinary",
             from, where);
    return clickhouse_each_part(u->s, u->host, sql, copy_part, u, why);
}

static int has_table(struct upgrade *u, const char *name, bool *ret, struct buf *why)
{
    _cleanup_(buf_release) struct buf answer = BUF(4096);
    char sql[256];
    snprintf(sql, sizeof(sql),
             "SELECT count() FROM system.tables WHERE database = currentDatabase()"
             " AND name = '%s'",
             name);
    int r = clickhouse_run_on(u->s, u->host, sql, NULL, &answer, why);
    *ret = r == 0 && buf_str(&answer)[0] != '0';
    return r;
}

static int copy_all(struct upgrade *u, struct buf *why)
{
    static const struct {
        const char *from;
        enum clickhouse_table to;
        const char *where;
    } steps[] = {{"sample_10s", CH_BLOCK_10S, ""},
                 {"sample_5m", CH_BLOCK_NEW, ""},
                 {"sample_1h", CH_BLOCK_NEW,
                  " WHERE intDiv(start, 3600) NOT IN"
                  " (SELECT DISTINCT intDiv(start, 3600) FROM sample_5m)"}};

    int r = read_programs(u, why);
    for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++) {
        /*
         * A process that was killed while it dropped the tables has dropped the last ones; it drops
         * them from the last one to the first one.
         */
        bool exists;
        r = has_table(u, steps[i].from, &exists, why);
        if (r == 0 && exists)
            r = copy(u, steps[i].from, steps[i].to, steps[i].where, why);
    }
    if (r == 0)
        r = clickhouse_merge_on(u->s, u->host, why);
    for (size_t i = ARRAY_SIZE(steps); i-- > 0 && r == 0;) {
        char sql[128];
        snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS all_%s", steps[i].from);
        r = clickhouse_run_on(u->s, u->host, sql, NULL, NULL, why);
        snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS %s", steps[i].from);
        if (r == 0)
            r = clickhouse_run_on(u->s, u->host, sql, NULL, NULL, why);
    }
    return r;
}

int clickhouse_upgrade_samples(struct clickhouse_store *s, const char *host, struct buf *why)
{
    struct upgrade u = {.s = s, .host = host, .rows = BUF(ROW_BYTES)};
    int r = copy_all(&u, why);
    map_release(&u.program_of);
    buf_release(&u.rows);
    fleet_entries_release(&u.e);
    vec_release(&u.traces);
    return r;
}
