/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inserts uploads into a store in ClickHouse. Each INSERT makes a part on the server, whose cost
 * hardly depends on how many rows it has, so the uploads that arrive while others are being
 * inserted are inserted together: one INSERT per table for all of them.
 */
#include "fleet/clickhouse.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/*
 * TOGETHER_MAX: bytes of the rows that are inserted together, all tables counted. PAUSE_MS: how
 * long after the beginning of a group of several uploads the next group begins.
 */
enum { TOGETHER_MAX = 16 << 20, REMEMBERED = 1 << 20, PAUSE_MS = 500 };

#define MERGED_COLUMNS(of) \
    "type, unit, " of ", start, merged, uploads, samples, weight, entries, data"

#define LATENCY_COLUMNS \
    "series, start, upload, request, requests, errors, total_ns, max_ns, buckets, counts"

static const char *const columns[CH_TABLES] = {
    [CH_TYPE] = "name, unit",
    [CH_REQUEST] = "hash, name, kind",
    [CH_FRAME] = "hash, kind, label",
    [CH_STACK] = "hash, seen, frames",
    [CH_SERIES] = "hash, seen, tenant, service, version, host, instance, keys, values",
    [CH_BLOCK_10S] = "type, unit, series, start, upload, traces, samples, weight, entries, data",
    [CH_BLOCK_NEW] = "type, unit, series, program, start, upload, samples, weight, entries, data",
    [CH_BLOCK_5M] = MERGED_COLUMNS("series"),
    [CH_BLOCK_1H] = MERGED_COLUMNS("series"),
    [CH_PROGRAM_5M] = MERGED_COLUMNS("program"),
    [CH_PROGRAM_1H] = MERGED_COLUMNS("program"),
    [CH_LATENCY] = LATENCY_COLUMNS,
    [CH_LATENCY + 1] = LATENCY_COLUMNS,
    [CH_LATENCY + 2] = LATENCY_COLUMNS,
    [CH_FINDING] = "series, start, upload, number, kind, text, count, weight_ns",
    [CH_UPLOAD] = "id, received",
    [CH_GONE] = "resolution, up_to",
};

int clickhouse_insert(struct clickhouse_store *s, const char *host, enum clickhouse_table table,
                      const struct buf *rows, struct buf *why)
{
    char sql[512];
    int r = buf_error(rows);
    const char *name = host ? clickhouse_local_table(table) : clickhouse_table(s, table);
    snprintf(sql, sizeof(sql), "INSERT INTO %s (%s) FORMAT RowBinary", name, columns[table]);
    if (r < 0)
        return r;
    return host ? clickhouse_run_on(s, host, sql, rows, NULL, why)
                : clickhouse_run(s, sql, rows, NULL, why);
}

void clickhouse_remember(struct clickhouse_store *s, struct store_adding *a)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < a->keys.len; i++) {
        struct map *m = &s->known[a->keys.data[i].table];
        if (m->len >= REMEMBERED)
            map_release(m);
        /* if memory is exhausted, the row is inserted again later */
        (void)!map_put(m, a->keys.data[i].hash, a->day);
    }
    pthread_mutex_unlock(&s->lock);
    vec_clear(&a->keys);
}

void clickhouse_adding_free(struct store_adding *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(a->rows); i++)
        buf_release(&a->rows[i]);
    vec_release(&a->keys);
    buf_release(&a->why);
    free(a);
}

/* ---- one group */

static void put_id(struct buf *to, const struct fleet_hash *id)
{
    for (size_t i = 0; i < FLEET_HASH_BYTES; i++)
        buf_printf(to, "%02X", id->bytes[i]);
}

int clickhouse_find_uploads(struct clickhouse_store *s, struct store_adding *list, struct buf *why)
{
    _cleanup_(buf_release) struct buf sql = BUF(1 << 20), answer = BUF(1 << 20), id = BUF(64);
    buf_printf(&sql, "SELECT DISTINCT hex(id) FROM %s WHERE ", clickhouse_table(s, CH_UPLOAD));
    for (const struct store_adding *a = list; a; a = a->next) {
        buf_string(&sql, a == list ? "id = unhex('" : " OR id = unhex('");
        put_id(&sql, &a->upload);
        buf_string(&sql, "')");
    }
    int r = buf_error(&sql);
    if (r == 0)
        r = clickhouse_run(s, buf_str(&sql), NULL, &answer, why);
    for (struct store_adding *a = list; a && r == 0; a = a->next) {
        buf_clear(&id);
        put_id(&id, &a->upload);
        a->stored = strstr(buf_str(&answer), buf_str(&id)) != NULL;
    }
    return r;
}

/* Inserts the rows that the uploads of a list have for a table. */
static int insert_rows(struct clickhouse_store *s, enum clickhouse_table table,
                       const struct store_adding *list, struct buf *why)
{
    _cleanup_(buf_release) struct buf all = BUF(TOGETHER_MAX);
    for (const struct store_adding *a = list; a; a = a->next)
        if (!a->stored)
            buf_bytes(&all, a->rows[table].data, a->rows[table].len);
    if (buf_error(&all))
        return buf_error(&all);
    return all.len ? clickhouse_insert(s, NULL, table, &all, why) : 0;
}

/*
 * The rows of the table of uploads are inserted last: as long as that table has no row for an
 * upload, the upload is not known and is sent again.
 */
static int insert_group(struct clickhouse_store *s, struct store_adding *list, struct buf *why)
{
    int r = clickhouse_find_uploads(s, list, why);
    for (struct store_adding *a = list; a && r == 0; a = a->next)
        a->tried = a->tried || !a->stored;
    for (int table = 0; table < CH_TABLES && r == 0; table++)
        r = insert_rows(s, (enum clickhouse_table)table, list, why);
    for (struct store_adding *a = list; a && r == 0; a = a->next)
        clickhouse_remember(s, a);
    return r;
}

/* ---- which thread inserts */

static void begin_inserting(struct clickhouse_store *s)
{
    while (s->inserting)
        pthread_cond_wait(&s->inserted, &s->lock);
    s->inserting = true;
}

void clickhouse_begin_inserting(struct clickhouse_store *s)
{
    pthread_mutex_lock(&s->lock);
    begin_inserting(s);
    pthread_mutex_unlock(&s->lock);
}

void clickhouse_end_inserting(struct clickhouse_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->inserting = false;
    pthread_cond_broadcast(&s->inserted);
    pthread_mutex_unlock(&s->lock);
}

static void enqueue(struct clickhouse_store *s, struct store_adding *a)
{
    a->next = NULL;
    *s->last = a;
    s->last = &a->next;
}

void clickhouse_enqueue(struct clickhouse_store *s, struct store_adding *a)
{
    pthread_mutex_lock(&s->lock);
    enqueue(s, a);
    pthread_mutex_unlock(&s->lock);
}

static bool has_upload(const struct store_adding *list, const struct fleet_hash *upload)
{
    for (; list; list = list->next)
        if (memcmp(&list->upload, upload, sizeof(*upload)) == 0)
            return true;
    return false;
}

static size_t size_of(const struct store_adding *a)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(a->rows); i++)
        n += a->rows[i].len;
    return n;
}

/*
 * Takes the oldest upload that waits, and those that can be inserted together with it. Of two
 * uploads with one id only the first is taken, because both would find that it is missing.
 */
static struct store_adding *take_group(struct clickhouse_store *s)
{
    struct store_adding *list = s->waiting, **end = &list->next, **at = &s->waiting;
    size_t bytes = size_of(list);
    *at = list->next;
    *end = NULL;
    while (*at && !list->alone) {
        struct store_adding *a = *at;
        if (a->alone || bytes + size_of(a) > TOGETHER_MAX || has_upload(list, &a->upload)) {
            at = &a->next;
            continue;
        }
        bytes += size_of(a);
        *at = a->next;
        a->next = NULL;
        *end = a;
        end = &a->next;
    }
    for (s->last = &s->waiting; *s->last;)
        s->last = &(*s->last)->next;
    return list;
}

/*
 * Stores the result. A group fails as a whole, even if only one of its uploads needs a server that
 * is down, or has rows that the server refuses. After a failure each upload is therefore tried
 * alone.
 */
static void settle(struct clickhouse_store *s, struct store_adding *list, int error,
                   const struct buf *why)
{
    bool several = list->next != NULL;
    for (struct store_adding *a = list, *next; a; a = next) {
        next = a->next;
        if (error && several) {
            a->alone = true;
            enqueue(s, a);
            continue;
        }
        a->why = BUF(4096);
        buf_bytes(&a->why, why->data, why->len);
        a->error = error;
        a->done = true;
    }
}

/*
 * If the last group shows that there are other senders, lets their uploads arrive. A single sender
 * that waits for each answer is not delayed.
 */
static void pause_before_group(struct clickhouse_store *s)
{
    uint64_t begin_ns = s->group_ns + PAUSE_MS * NS_PER_MS, now = now_ns();
    if (!s->grouped || now >= begin_ns)
        return;
    struct timespec pause = {0, (long)(begin_ns - now)};
    pthread_mutex_unlock(&s->lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&s->lock);
}

int clickhouse_add_end(struct store *store, struct store_adding *a, bool *ret_new, struct buf *why)
{
    struct clickhouse_store *s = (struct clickhouse_store *)store;
    pthread_mutex_lock(&s->lock);
    while (!a->done) {
        if (s->inserting) {
            pthread_cond_wait(&s->inserted, &s->lock);
            continue;
        }
        _cleanup_(buf_release) struct buf reason = BUF(4096);
        s->inserting = true;
        pause_before_group(s);
        struct store_adding *list = take_group(s);
        s->grouped = list->next != NULL;
        s->group_ns = now_ns();
        pthread_mutex_unlock(&s->lock);
        int r = insert_group(s, list, &reason);
        pthread_mutex_lock(&s->lock);
        settle(s, list, r, &reason);
        s->inserting = false;
        pthread_cond_broadcast(&s->inserted);
    }
    pthread_mutex_unlock(&s->lock);
    int r = a->error;
    if (r == 0)
        *ret_new = a->tried;
    else
        buf_bytes(why, a->why.data, a->why.len);
    clickhouse_adding_free(a);
    return r;
}
