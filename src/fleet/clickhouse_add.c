/* SPDX-License-Identifier: Apache-2.0 */
/* Adds uploads to a store in ClickHouse, and removes what is old. */
#include "fleet/clickhouse.h"

#include "base/clock.h"
#include "base/hash.h"
#include "fleet/rollup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { DAY_S = 86400, UPLOADS_KEPT_S = 40 * DAY_S, REMEMBERED = 1 << 20, ROWS_MAX = 1 << 28 };

static const char *const columns[CH_TABLES] = {
    [CH_TYPE] = "name, unit",
    [CH_REQUEST] = "hash, name, kind",
    [CH_FRAME] = "hash, kind, label",
    [CH_STACK] = "hash, seen, frames",
    [CH_SERIES] = "hash, seen, tenant, service, version, host, instance, keys, values",
    [CH_FINDING] = "series, start, upload, number, kind, text, count, weight_ns",
    [CH_UPLOAD] = "id, received",
    [CH_GONE] = "resolution, up_to",
};

static const char sample_columns[] =
    "type, unit, series, start, upload, stack, request, trace, samples, weight";
static const char latency_columns[] =
    "series, start, upload, request, requests, errors, total_ns, max_ns, buckets, counts";

/* An upload on its way into the tables. */
struct adding {
    struct clickhouse_store *s;
    const struct batch *b;
    const struct fleet_hash *upload;
    struct buf *why;
    uint64_t series;
    uint32_t now_s, day;
    uint64_t *requests; /* their hashes, by number in the batch */
    struct buf rows;    /* of the table that is being filled */
};

static const char *columns_of(enum clickhouse_table table)
{
    return columns[table] ? columns[table] : table < CH_LATENCY ? sample_columns : latency_columns;
}

/* Inserts the rows, at once, and empties them. */
static int insert(struct adding *a, enum clickhouse_table table)
{
    char sql[512];
    int r = buf_error(&a->rows);
    snprintf(sql, sizeof(sql), "INSERT INTO %s (%s) FORMAT RowBinary",
             clickhouse_table(a->s, table), columns_of(table));
    if (r == 0 && a->rows.len)
        r = clickhouse_run(a->s, sql, &a->rows, NULL, a->why);
    buf_clear(&a->rows);
    return r;
}

/* ---- what is the same in many uploads is inserted once a day by each process */

static bool is_known(const struct adding *a, enum clickhouse_table table, uint64_t key)
{
    const uint64_t *day = map_get(&a->s->known[table], key);
    return day && *day == a->day;
}

static void remember(struct adding *a, enum clickhouse_table table, uint64_t key)
{
    struct map *m = &a->s->known[table];
    if (m->len >= REMEMBERED)
        map_release(m);
    (void)!map_put(m, key, a->day); /* without memory it is inserted again */
}

static void row_string(struct adding *a, uint32_t string)
{
    struct str text = strpool_get(&a->b->strings, string);
    row_text(&a->rows, text.data, text.len);
}

static uint64_t hash_of_text(struct str text)
{
    struct fleet_sha sha;
    fleet_sha_begin(&sha);
    fleet_sha_add_text(&sha, text.data, text.len);
    struct fleet_hash h = fleet_sha_end(&sha);
    uint64_t key = fleet_hash_key(&h);
    return key ? key : 1; /* 0: no request */
}

/*
 * Returns the hash of a name. Requests have kind 0, which leaves their hashes as they were when
 * they were the only kind.
 */
static uint64_t hash_of_name(uint32_t kind, struct str text)
{
    uint64_t hash = hash_of_text(text);
    return kind ? hash_u64(hash + kind) | 1 : hash;
}

static int add_types(struct adding *a)
{
    for (size_t i = 0; i < a->b->types.len; i++) {
        const struct fleet_type *t = &a->b->types.data[i];
        row_string(a, t->name);
        row_string(a, t->unit);
    }
    /*
     * There are so few of these rows that they are not remembered one by one: one hash covers all
     * of them.
     */
    uint64_t key = hash_of_text((struct str){(char *)a->rows.data, a->rows.len});
    if (is_known(a, CH_TYPE, key))
        buf_clear(&a->rows);
    int r = insert(a, CH_TYPE);
    if (r == 0)
        remember(a, CH_TYPE, key);
    return r;
}

static int add_requests(struct adding *a)
{
    size_t n = a->b->requests.len;
    a->requests = calloc(n + 1, sizeof(*a->requests));
    if (!a->requests)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct fleet_name *name = &a->b->requests.data[i];
        a->requests[i] = hash_of_name(name->kind, strpool_get(&a->b->strings, name->text));
        if (is_known(a, CH_REQUEST, a->requests[i]))
            continue;
        row_u64(&a->rows, a->requests[i]);
        row_string(a, name->text);
        buf_u8(&a->rows, (uint8_t)name->kind);
    }
    int r = insert(a, CH_REQUEST);
    for (size_t i = 0; i < n && r == 0; i++)
        remember(a, CH_REQUEST, a->requests[i]);
    return r;
}

static int add_frames(struct adding *a)
{
    for (size_t i = 0; i < a->b->frames.len; i++) {
        const struct fleet_frame *f = &a->b->frames.data[i];
        if (is_known(a, CH_FRAME, fleet_hash_key(&f->hash)))
            continue;
        row_u64(&a->rows, fleet_hash_key(&f->hash));
        buf_u8(&a->rows, f->kind);
        row_string(a, f->label);
    }
    int r = insert(a, CH_FRAME);
    for (size_t i = 0; i < a->b->frames.len && r == 0; i++)
        remember(a, CH_FRAME, fleet_hash_key(&a->b->frames.data[i].hash));
    return r;
}

static int add_stacks(struct adding *a)
{
    for (size_t i = 0; i < a->b->stacks.len; i++) {
        const struct fleet_stack *s = &a->b->stacks.data[i];
        if (is_known(a, CH_STACK, fleet_hash_key(&s->hash)))
            continue;
        row_u64(&a->rows, fleet_hash_key(&s->hash));
        row_u32(&a->rows, a->day);
        buf_varint(&a->rows, s->depth);
        for (size_t k = 0; k < s->depth; k++) {
            uint32_t frame = a->b->path.data[s->first + k];
            row_u64(&a->rows, fleet_hash_key(&a->b->frames.data[frame].hash));
        }
    }
    int r = insert(a, CH_STACK);
    for (size_t i = 0; i < a->b->stacks.len && r == 0; i++)
        remember(a, CH_STACK, fleet_hash_key(&a->b->stacks.data[i].hash));
    return r;
}

static void row_z(struct adding *a, const char *text)
{
    row_text(&a->rows, text, strlen(text));
}

static int add_series(struct adding *a, const struct fleet_origin *o)
{
    struct fleet_hash hash = store_hash_origin(o);
    a->series = fleet_hash_key(&hash);
    if (is_known(a, CH_SERIES, a->series))
        return 0;
    row_u64(&a->rows, a->series);
    row_u32(&a->rows, a->day);
    const char *const own[] = {o->tenant, o->service, o->version, o->host, o->instance};
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        row_z(a, own[i]);
    buf_varint(&a->rows, o->n_labels);
    for (size_t i = 0; i < o->n_labels; i++)
        row_z(a, o->labels[i].key);
    buf_varint(&a->rows, o->n_labels);
    for (size_t i = 0; i < o->n_labels; i++)
        row_z(a, o->labels[i].value);
    int r = insert(a, CH_SERIES);
    if (r == 0)
        remember(a, CH_SERIES, a->series);
    return r;
}

/* ---- samples */

static int add_bucket(void *context, uint32_t type, int64_t start_s, struct fleet_entries *e)
{
    static const uint8_t none[FLEET_HASH_BYTES];
    struct adding *a = context;
    if (start_s < 0 || start_s > UINT32_MAX)
        return 0; /* no time that a table has */
    for (size_t i = 0; i < e->list.len; i++) {
        const struct fleet_entry *at = &e->list.data[i];
        row_string(a, a->b->types.data[type].name);
        row_string(a, a->b->types.data[type].unit);
        row_u64(&a->rows, a->series);
        row_u32(&a->rows, (uint32_t)start_s);
        row_u64(&a->rows, fleet_hash_key(a->upload));
        row_u64(&a->rows, fleet_hash_key(&a->b->stacks.data[at->stack].hash));
        row_u64(&a->rows, at->request ? a->requests[at->request - 1] : 0);
        buf_bytes(&a->rows, at->trace ? a->b->traces.data[at->trace - 1].bytes : none,
                  FLEET_HASH_BYTES);
        row_u64(&a->rows, at->count);
        row_u64(&a->rows, at->weight);
    }
    return buf_error(&a->rows);
}

static int add_samples(struct adding *a)
{
    int r = 0;
    for (int i = 0; i < STORE_RESOLUTIONS && r == 0; i++) {
        r = batch_rollup(a->b, store_resolution_s[i], i == 0, add_bucket, a);
        if (r == 0)
            r = insert(a, CH_SAMPLE + (enum clickhouse_table)i);
    }
    return r;
}

/* ---- requests' latencies; those of one name and bucket are one row */

struct latency_at {
    int64_t start_s;
    const struct fleet_latency *l;
};

static int compare_latencies(const void *left, const void *right)
{
    const struct latency_at *a = left, *b = right;
    if (a->l->request != b->l->request)
        return a->l->request < b->l->request ? -1 : 1;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/* Appends the row of the latencies in [from, to), which are of one name and bucket. */
static int row_latency(struct adding *a, const struct latency_at *from, const struct latency_at *to)
{
    struct fleet_counts counts = {0};
    struct fleet_latency sum = {.start_s = from->start_s};
    int r = 0;
    for (const struct latency_at *at = from; at < to && r == 0; at++) {
        sum.count += at->l->count;
        sum.errors += at->l->errors;
        sum.total_ns += at->l->total_ns;
        sum.max_ns = MAX(sum.max_ns, at->l->max_ns);
        r = fleet_counts_add_latency(&counts, a->b, at->l);
    }
    row_u64(&a->rows, a->series);
    row_u32(&a->rows, (uint32_t)sum.start_s);
    row_u64(&a->rows, fleet_hash_key(a->upload));
    row_u64(&a->rows, a->requests[from->l->request]);
    const uint64_t own[] = {sum.count, sum.errors, sum.total_ns, sum.max_ns};
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        row_u64(&a->rows, own[i]);
    buf_varint(&a->rows, counts.list.len);
    for (size_t i = 0; i < counts.list.len; i++)
        row_u32(&a->rows, counts.list.data[i].bucket);
    buf_varint(&a->rows, counts.list.len);
    for (size_t i = 0; i < counts.list.len; i++)
        row_u64(&a->rows, counts.list.data[i].count);
    vec_release(&counts.list);
    return r;
}

static int add_latencies_of(struct adding *a, int resolution)
{
    VEC(struct latency_at) list = {0};
    int r = 0;
    for (size_t i = 0; i < a->b->latencies.len && r == 0; i++) {
        const struct fleet_latency *l = &a->b->latencies.data[i];
        int64_t start = fleet_floor(l->start_s, store_resolution_s[resolution]);
        if (start >= 0 && start <= UINT32_MAX)
            r = vec_push(&list, ((struct latency_at){start, l}));
    }
    vec_sort(&list, compare_latencies);
    for (size_t i = 0, end; i < list.len && r == 0; i = end) {
        for (end = i + 1; end < list.len && !compare_latencies(&list.data[i], &list.data[end]);)
            end++;
        r = row_latency(a, list.data + i, list.data + end);
    }
    vec_release(&list);
    return r < 0 ? r : insert(a, CH_LATENCY + (enum clickhouse_table)resolution);
}

static int add_latencies(struct adding *a)
{
    int r = 0;
    for (int i = 0; i < STORE_RESOLUTIONS && r == 0; i++)
        r = add_latencies_of(a, i);
    return r;
}

static int add_findings(struct adding *a)
{
    for (size_t i = 0; i < a->b->findings.len; i++) {
        const struct fleet_finding *f = &a->b->findings.data[i];
        if (f->start_s < 0 || f->start_s > UINT32_MAX)
            continue;
        row_u64(&a->rows, a->series);
        row_u32(&a->rows, (uint32_t)f->start_s);
        row_u64(&a->rows, fleet_hash_key(a->upload));
        row_u32(&a->rows, (uint32_t)i);
        row_string(a, f->kind);
        row_string(a, f->text);
        row_u64(&a->rows, f->count);
        row_u64(&a->rows, f->weight_ns);
    }
    return insert(a, CH_FINDING);
}

/* ---- uploads */

static int is_there(struct adding *a, bool *ret)
{
    _cleanup_(buf_release) struct buf sql = BUF(4096), answer = BUF(4096);
    buf_printf(&sql, "SELECT count() FROM %s WHERE id = unhex('",
               clickhouse_table(a->s, CH_UPLOAD));
    for (size_t i = 0; i < FLEET_HASH_BYTES; i++)
        buf_printf(&sql, "%02X", a->upload->bytes[i]);
    buf_string(&sql, "')");
    int r = clickhouse_run(a->s, buf_str(&sql), NULL, &answer, a->why);
    if (r == 0)
        *ret = strtoull(buf_str(&answer), NULL, 10) > 0;
    return r;
}

static int add_upload(struct adding *a)
{
    buf_bytes(&a->rows, a->upload->bytes, FLEET_HASH_BYTES);
    row_u32(&a->rows, a->now_s);
    return insert(a, CH_UPLOAD);
}

static int add_all(struct adding *a, const struct fleet_origin *origin)
{
    static int (*const parts[])(struct adding *) = {add_types,    add_requests, add_frames,
                                                    add_stacks,   add_samples,  add_latencies,
                                                    add_findings, add_upload};
    int r = add_series(a, origin);
    for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0; i++)
        r = parts[i](a);
    return r;
}

int clickhouse_add(struct store *store, const struct fleet_origin *origin,
                   const struct fleet_hash *upload, const struct batch *b, bool *ret_new,
                   struct buf *why)
{
    struct clickhouse_store *s = (struct clickhouse_store *)store;
    uint32_t now_s = (uint32_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    struct adding a = {.s = s,
                       .b = b,
                       .upload = upload,
                       .why = why,
                       .now_s = now_s,
                       .day = now_s / DAY_S,
                       .rows = BUF(ROWS_MAX)};
    bool there = false;
    /* One at a time: two with one id must not both find that it is missing. */
    pthread_mutex_lock(&s->writing);
    int r = is_there(&a, &there);
    if (r == 0 && !there)
        r = add_all(&a, origin);
    pthread_mutex_unlock(&s->writing);
    if (r == 0)
        *ret_new = !there;
    buf_release(&a.rows);
    free(a.requests);
    return r;
}

/* ---- what is old */

/*
 * First records that the data is gone, so that no question expects data that is only partly
 * removed.
 */
static int record_removed(struct adding *a, int resolution, int64_t up_to)
{
    buf_u8(&a->rows, (uint8_t)resolution);
    row_u64(&a->rows, (uint64_t)up_to);
    return insert(a, CH_GONE);
}

/* Removes the parts of a table, days or months, that end before a time. */
static int drop_partitions(struct adding *a, enum clickhouse_table table, bool months,
                           int64_t up_to)
{
    _cleanup_(buf_release) struct buf sql = BUF(4096);
    const char *name = clickhouse_table(a->s, table) + (a->s->cluster ? strlen("all_") : 0);
    time_t t = (time_t)up_to;
    struct tm utc;
    if (up_to <= 0 || !gmtime_r(&t, &utc))
        return 0;
    long limit = months ? (utc.tm_year + 1900L) * 100 + utc.tm_mon + 1
                        : ((utc.tm_year + 1900L) * 100 + utc.tm_mon + 1) * 100 + utc.tm_mday;
    buf_printf(&sql,
               "SELECT DISTINCT partition FROM system.parts WHERE database = currentDatabase()"
               " AND table = '%s' AND active AND toUInt32OrZero(partition) < %ld",
               name, limit);
    return clickhouse_drop_partitions(a->s, buf_str(&sql), name, a->why);
}

/* Stacks, series and uploads; as in SQLite, stacks stay a day more for what was on its way. */
static int delete_rows(struct clickhouse_store *s, int64_t oldest_s, int64_t now_s, struct buf *why)
{
    const struct {
        const char *table, *column;
        int64_t before;
    } rows[] = {{"stack", "seen", oldest_s / DAY_S - 1},
                {"series", "seen", oldest_s / DAY_S - 1},
                {"upload", "received", now_s - UPLOADS_KEPT_S}};

    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++) {
        char sql[256];
        snprintf(sql, sizeof(sql), "ALTER TABLE %s DELETE WHERE %s < %" PRId64, rows[i].table,
                 rows[i].column, MAX(rows[i].before, INT64_C(0)));
        r = clickhouse_run_everywhere(s, sql, why);
    }
    return r;
}

int clickhouse_tidy(struct store *store, const struct store_keep *keep, int64_t now_s,
                    struct buf *why)
{
    struct clickhouse_store *s = (struct clickhouse_store *)store;
    struct adding a = {.s = s, .why = why, .rows = BUF(4096)};
    int64_t up_to = 0;
    int r = 0;
    pthread_mutex_lock(&s->writing);
    for (int i = 0; i < STORE_RESOLUTIONS && r == 0; i++) {
        bool months = i == STORE_RESOLUTIONS - 1;
        up_to = fleet_floor(now_s - keep->seconds[i], store_resolution_s[STORE_RESOLUTIONS - 1]);
        r = record_removed(&a, i, up_to);
        if (r == 0)
            r = drop_partitions(&a, CH_SAMPLE + (enum clickhouse_table)i, months, up_to);
        if (r == 0)
            r = drop_partitions(&a, CH_LATENCY + (enum clickhouse_table)i, months, up_to);
        if (r == 0 && months)
            r = drop_partitions(&a, CH_FINDING, months, up_to);
    }
    if (r == 0 && s->tidied_day != now_s / DAY_S)
        r = delete_rows(s, up_to, now_s, why);
    if (r == 0)
        s->tidied_day = now_s / DAY_S;
    pthread_mutex_unlock(&s->writing);
    buf_release(&a.rows);
    return r;
}
