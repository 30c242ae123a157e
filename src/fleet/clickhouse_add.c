/* SPDX-License-Identifier: Apache-2.0 */
/* Makes rows of a store in ClickHouse from uploads. */
#include "fleet/clickhouse.h"

#include "base/clock.h"
#include "base/hash.h"
#include "fleet/rollup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    DAY_S = 86400,
    ROWS_MAX = 1 << 28,   /* bytes of one table's rows */
    WAITING_MAX = 4 << 20 /* bytes of an upload's rows that may wait for others */
};

/* An upload whose rows are being made. */
struct making {
    struct clickhouse_store *s;
    const struct batch *b;
    struct store_adding *to;
    /* Of samples and latencies: the table and the rows of the resolution that is being added. */
    enum clickhouse_table table;
    struct buf *rows;
    struct buf *why;
    bool at_once; /* rows are inserted, table by table, as soon as they are made */
    size_t bytes; /* of complete tables */
    uint64_t series, program;
    uint64_t *requests; /* their hashes, by number in the batch */
};

/* ---- rows that many uploads have in common; each process inserts them once a day */

static bool is_known(const struct making *m, enum clickhouse_table table, uint64_t key)
{
    pthread_mutex_lock(&m->s->lock);
    const uint64_t *day = map_get(&m->s->known[table], key);
    bool known = day && *day == m->to->day;
    pthread_mutex_unlock(&m->s->lock);
    return known;
}

/* Returns whether a row has to be inserted; its key is then added to those that become known. */
static bool is_needed(struct making *m, enum clickhouse_table table, uint64_t key)
{
    if (is_known(m, table, key))
        return false;
    /* If there is no memory for the key, the row is inserted again later. */
    (void)!vec_push(&m->to->keys, ((struct clickhouse_key){table, key}));
    return true;
}

/*
 * Called when the rows of a table are complete. Returns -E2BIG if there are too many to wait for
 * others.
 */
static int complete(struct making *m, enum clickhouse_table table)
{
    struct buf *rows = &m->to->rows[table];
    int r = buf_error(rows);
    if (r < 0)
        return r;
    if (!m->at_once) {
        m->bytes += rows->len;
        return m->bytes > WAITING_MAX ? -E2BIG : 0;
    }
    if (rows->len)
        r = clickhouse_insert(m->s, NULL, table, rows, m->why);
    if (r == 0)
        clickhouse_remember(m->s, m->to);
    buf_clear(rows);
    return r;
}

static void row_string(struct buf *rows, const struct batch *b, uint32_t string)
{
    struct str text = strpool_get(&b->strings, string);
    clickhouse_row_text(rows, text.data, text.len);
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
 * Returns the hash of a name. Requests have kind 0, so their hashes are the same as when they were
 * the only kind.
 */
static uint64_t hash_of_name(uint32_t kind, struct str text)
{
    uint64_t hash = hash_of_text(text);
    return kind ? hash_u64(hash + kind) | 1 : hash;
}

static int add_types(struct making *m)
{
    struct buf *rows = &m->to->rows[CH_TYPE];
    for (size_t i = 0; i < m->b->types.len; i++) {
        const struct fleet_type *t = &m->b->types.data[i];
        row_string(rows, m->b, t->name);
        row_string(rows, m->b, t->unit);
    }
    /* There are so few of these rows that a single hash stands for all of them. */
    if (!is_needed(m, CH_TYPE, hash_of_text((struct str){(char *)rows->data, rows->len})))
        buf_clear(rows);
    return complete(m, CH_TYPE);
}

static int add_requests(struct making *m)
{
    struct buf *rows = &m->to->rows[CH_REQUEST];
    size_t n = m->b->requests.len;
    m->requests = calloc(n + 1, sizeof(*m->requests));
    if (!m->requests)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct fleet_name *name = &m->b->requests.data[i];
        m->requests[i] = hash_of_name(name->kind, strpool_get(&m->b->strings, name->text));
        if (!is_needed(m, CH_REQUEST, m->requests[i]))
            continue;
        clickhouse_row_u64(rows, m->requests[i]);
        row_string(rows, m->b, name->text);
        buf_u8(rows, (uint8_t)name->kind);
    }
    return complete(m, CH_REQUEST);
}

static int add_frames(struct making *m)
{
    struct buf *rows = &m->to->rows[CH_FRAME];
    for (size_t i = 0; i < m->b->frames.len; i++) {
        const struct fleet_frame *f = &m->b->frames.data[i];
        if (!is_needed(m, CH_FRAME, fleet_hash_key(&f->hash)))
            continue;
        clickhouse_row_u64(rows, fleet_hash_key(&f->hash));
        buf_u8(rows, f->kind);
        row_string(rows, m->b, f->label);
    }
    return complete(m, CH_FRAME);
}

static int add_stacks(struct making *m)
{
    struct buf *rows = &m->to->rows[CH_STACK];
    for (size_t i = 0; i < m->b->stacks.len; i++) {
        const struct fleet_stack *s = &m->b->stacks.data[i];
        if (!is_needed(m, CH_STACK, fleet_hash_key(&s->hash)))
            continue;
        clickhouse_row_u64(rows, fleet_hash_key(&s->hash));
        clickhouse_row_u32(rows, m->to->day);
        buf_varint(rows, s->depth);
        for (size_t k = 0; k < s->depth; k++) {
            uint32_t frame = m->b->path.data[s->first + k];
            clickhouse_row_u64(rows, fleet_hash_key(&m->b->frames.data[frame].hash));
        }
    }
    return complete(m, CH_STACK);
}

static void row_z(struct buf *rows, const char *text)
{
    clickhouse_row_text(rows, text, strlen(text));
}

uint64_t clickhouse_program(const struct fleet_origin *o)
{
    struct fleet_origin program = *o;
    program.host = program.instance = "";
    struct fleet_hash hash = store_hash_origin(&program);
    return fleet_hash_key(&hash);
}

static int add_series(struct making *m, const struct fleet_origin *o)
{
    struct buf *rows = &m->to->rows[CH_SERIES];
    struct fleet_hash hash = store_hash_origin(o);
    m->series = fleet_hash_key(&hash);
    m->program = clickhouse_program(o);
    if (!is_needed(m, CH_SERIES, m->series))
        return 0;
    clickhouse_row_u64(rows, m->series);
    clickhouse_row_u32(rows, m->to->day);
    const char *const own[] = {o->tenant, o->service, o->version, o->host, o->instance};
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        row_z(rows, own[i]);
    buf_varint(rows, o->n_labels);
    for (size_t i = 0; i < o->n_labels; i++)
        row_z(rows, o->labels[i].key);
    buf_varint(rows, o->n_labels);
    for (size_t i = 0; i < o->n_labels; i++)
        row_z(rows, o->labels[i].value);
    return complete(m, CH_SERIES);
}

/* ---- samples */

void clickhouse_row_block(struct buf *rows, const struct fleet_entries *e)
{
    _cleanup_(buf_release) struct buf data = BUF(rows->limit);
    uint64_t samples = 0, weight = 0;
    for (size_t i = 0; i < e->list.len; i++) {
        samples += e->list.data[i].count;
        weight += e->list.data[i].weight;
    }
    clickhouse_row_u64(rows, samples);
    clickhouse_row_u64(rows, weight);
    clickhouse_row_u32(rows, (uint32_t)e->list.len);
    fleet_block_write_hashes(e, &data);
    if (buf_error(&data))
        rows->failed = buf_error(&data);
    clickhouse_row_text(rows, (const char *)data.data, data.len);
}

/* Writes the trace of each entry, or nothing if no entry has a trace. */
static void row_traces(struct buf *rows, const struct fleet_hash *traces, struct fleet_entries *e)
{
    static const struct fleet_hash none;
    bool any = false;
    for (size_t i = 0; i < e->list.len; i++)
        any = any || e->list.data[i].trace;
    buf_varint(rows, any ? e->list.len : 0);
    for (size_t i = 0; i < e->list.len && any; i++) {
        uint64_t trace = e->list.data[i].trace;
        buf_bytes(rows, trace ? traces[trace - 1].bytes : none.bytes, FLEET_HASH_BYTES);
        e->list.data[i].trace = 0;
    }
}

void clickhouse_row_bucket(struct buf *rows, enum clickhouse_table table,
                           const struct clickhouse_bucket *b, struct fleet_entries *e)
{
    fleet_entries_settle(e);
    clickhouse_row_text(rows, b->type.data, b->type.len);
    clickhouse_row_text(rows, b->unit.data, b->unit.len);
    clickhouse_row_u64(rows, b->series);
    if (table == CH_BLOCK_NEW)
        clickhouse_row_u64(rows, b->program);
    clickhouse_row_u32(rows, (uint32_t)b->start_s);
    clickhouse_row_u64(rows, b->upload);
    if (table == CH_BLOCK_10S)
        row_traces(rows, b->traces, e);
    clickhouse_row_block(rows, e);
}

static int add_bucket(void *context, uint32_t type, int64_t start_s, struct fleet_entries *e)
{
    struct making *m = context;
    struct clickhouse_bucket b = {
        .type = strpool_get(&m->b->strings, m->b->types.data[type].name),
        .unit = strpool_get(&m->b->strings, m->b->types.data[type].unit),
        .series = m->series,
        .program = m->program,
        .start_s = start_s,
        .upload = fleet_hash_key(&m->to->upload),
        .traces = m->b->traces.data,
    };
    if (start_s < 0 || start_s > UINT32_MAX)
        return 0; /* the table cannot store such a time */
    for (size_t i = 0; i < e->list.len; i++) {
        struct fleet_entry *at = &e->list.data[i];
        at->stack = fleet_hash_key(&m->b->stacks.data[at->stack].hash);
        at->request = at->request ? m->requests[at->request - 1] : 0;
    }
    clickhouse_row_bucket(m->rows, m->table, &b, e);
    return buf_error(m->rows);
}

static int add_blocks(struct making *m, enum clickhouse_table table, int resolution)
{
    m->table = table;
    m->rows = &m->to->rows[table];
    int r = rollup_batch(m->b, store_resolution_s[resolution], resolution == 0, add_bucket, m);
    return r < 0 ? r : complete(m, table);
}

static int add_samples(struct making *m)
{
    int r = add_blocks(m, CH_BLOCK_10S, 0);
    return r < 0 ? r : add_blocks(m, CH_BLOCK_NEW, 1);
}

/* ---- latencies of requests; those of one name and bucket are one row */

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
static int row_latency(struct making *m, const struct latency_at *from, const struct latency_at *to)
{
    struct buf *rows = m->rows;
    struct fleet_counts counts = {0};
    struct fleet_latency sum = {.start_s = from->start_s};
    int r = 0;
    for (const struct latency_at *at = from; at < to && r == 0; at++) {
        sum.count += at->l->count;
        sum.errors += at->l->errors;
        sum.total_ns += at->l->total_ns;
        sum.max_ns = MAX(sum.max_ns, at->l->max_ns);
        r = fleet_counts_add_latency(&counts, m->b, at->l);
    }
    clickhouse_row_u64(rows, m->series);
    clickhouse_row_u32(rows, (uint32_t)sum.start_s);
    clickhouse_row_u64(rows, fleet_hash_key(&m->to->upload));
    clickhouse_row_u64(rows, m->requests[from->l->request]);
    const uint64_t own[] = {sum.count, sum.errors, sum.total_ns, sum.max_ns};
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        clickhouse_row_u64(rows, own[i]);
    buf_varint(rows, counts.list.len);
    for (size_t i = 0; i < counts.list.len; i++)
        clickhouse_row_u32(rows, counts.list.data[i].bucket);
    buf_varint(rows, counts.list.len);
    for (size_t i = 0; i < counts.list.len; i++)
        clickhouse_row_u64(rows, counts.list.data[i].count);
    vec_release(&counts.list);
    return r;
}

static int add_latencies_of(struct making *m, int resolution)
{
    enum clickhouse_table table = CH_LATENCY + (enum clickhouse_table)resolution;
    VEC(struct latency_at) list = {0};
    int r = 0;
    m->rows = &m->to->rows[table];
    for (size_t i = 0; i < m->b->latencies.len && r == 0; i++) {
        const struct fleet_latency *l = &m->b->latencies.data[i];
        int64_t start = fleet_floor(l->start_s, store_resolution_s[resolution]);
        if (start >= 0 && start <= UINT32_MAX)
            r = vec_push(&list, ((struct latency_at){start, l}));
    }
    vec_sort(&list, compare_latencies);
    for (size_t i = 0, end; i < list.len && r == 0; i = end) {
        for (end = i + 1; end < list.len && !compare_latencies(&list.data[i], &list.data[end]);)
            end++;
        r = row_latency(m, list.data + i, list.data + end);
    }
    vec_release(&list);
    return r < 0 ? r : complete(m, table);
}

static int add_latencies(struct making *m)
{
    int r = 0;
    for (int i = 0; i < STORE_RESOLUTIONS && r == 0; i++)
        r = add_latencies_of(m, i);
    return r;
}

static int add_findings(struct making *m)
{
    struct buf *rows = &m->to->rows[CH_FINDING];
    for (size_t i = 0; i < m->b->findings.len; i++) {
        const struct fleet_finding *f = &m->b->findings.data[i];
        if (f->start_s < 0 || f->start_s > UINT32_MAX)
            continue;
        clickhouse_row_u64(rows, m->series);
        clickhouse_row_u32(rows, (uint32_t)f->start_s);
        clickhouse_row_u64(rows, fleet_hash_key(&m->to->upload));
        clickhouse_row_u32(rows, (uint32_t)i);
        row_string(rows, m->b, f->kind);
        row_string(rows, m->b, f->text);
        clickhouse_row_u64(rows, f->count);
        clickhouse_row_u64(rows, f->weight_ns);
    }
    return complete(m, CH_FINDING);
}

/* ---- uploads */

static int add_upload(struct making *m)
{
    struct buf *rows = &m->to->rows[CH_UPLOAD];
    buf_bytes(rows, m->to->upload.bytes, FLEET_HASH_BYTES);
    clickhouse_row_u32(rows, m->to->now_s);
    return complete(m, CH_UPLOAD);
}

static int add_all(struct making *m, const struct fleet_origin *origin)
{
    static int (*const parts[])(struct making *) = {add_types,    add_requests, add_frames,
                                                    add_stacks,   add_samples,  add_latencies,
                                                    add_findings, add_upload};
    int r = add_series(m, origin);
    for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0; i++)
        r = parts[i](m);
    free(m->requests);
    m->requests = NULL;
    return r;
}

static struct store_adding *new_adding(const struct fleet_hash *upload, size_t rows_max)
{
    struct store_adding *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->upload = *upload;
    a->now_s = (uint32_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    a->day = a->now_s / DAY_S;
    for (size_t i = 0; i < ARRAY_SIZE(a->rows); i++)
        a->rows[i] = BUF(rows_max);
    return a;
}

/*
 * Adds an upload whose rows are too many to wait for others: only one table's rows are in memory at
 * a time.
 */
static int add_large(struct making *m, const struct fleet_origin *origin, bool *ret_new)
{
    bool stored = false;
    m->at_once = true;
    clickhouse_begin_inserting(m->s);
    int r = clickhouse_find_uploads(m->s, m->to, m->why);
    stored = m->to->stored;
    if (r == 0 && !stored)
        r = add_all(m, origin);
    clickhouse_end_inserting(m->s);
    if (r == 0)
        *ret_new = !stored;
    return r;
}

int clickhouse_add_begin(struct store *store, const struct fleet_origin *origin,
                         const struct fleet_hash *upload, const struct batch *b,
                         struct store_adding **ret, bool *ret_new, struct buf *why)
{
    struct making m = {.s = (struct clickhouse_store *)store, .b = b, .why = why};
    m.to = new_adding(upload, WAITING_MAX);
    int r = m.to ? add_all(&m, origin) : -ENOMEM;
    if (r == 0) {
        *ret = m.to;
        clickhouse_enqueue(m.s, m.to);
        return 0;
    }
    clickhouse_adding_free(m.to);
    m.to = r == -E2BIG ? new_adding(upload, ROWS_MAX) : NULL;
    if (m.to)
        r = add_large(&m, origin, ret_new);
    clickhouse_adding_free(m.to);
    return r;
}
