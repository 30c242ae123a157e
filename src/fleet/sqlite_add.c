/* SPDX-License-Identifier: Apache-2.0 */
/* Adds uploads to a store in SQLite. */
#include "fleet/sqlite.h"

#include "base/clock.h"
#include "fleet/rollup.h"

#include <errno.h>

enum { DAY_S = 86400, DAY_BITS = 20 };

/* The largest number of ids of each kind that the writer remembers; each takes some 32 bytes. */
enum { REMEMBERED = 1 << 18 };

/* An upload on its way into the tables, with the numbers that its contents have in the store. */
struct adding {
    struct sqlite_store *s;
    const struct batch *b;
    struct buf *why;
    int64_t day, series;
    int64_t *types, *frames, *stacks, *requests, *traces; /* by number in the batch */
    int error;
};

void sqlite_forget(struct sqlite_store *s)
{
    map_release(&s->frames);
    map_release(&s->stacks);
    map_release(&s->requests);
    map_release(&s->traces);
}

static void failed(struct adding *a)
{
    if (a->error == 0)
        a->error = sqlite_failed(a->s->db, a->why);
}

static void remember(struct map *m, uint64_t key, int64_t id)
{
    if (m->len >= REMEMBERED)
        map_release(m);
    (void)!map_put(m, key, (uint64_t)id); /* if memory is exhausted, it is looked up again */
}

/*
 * Returns the id of a row. `find` searches for the values that are bound to ?1 and ?2; if there is
 * no such row, `insert` adds one with the same values.
 */
static int64_t id_of(struct adding *a, sqlite3_stmt *find, sqlite3_stmt *insert)
{
    int64_t id = 0;
    if (sqlite3_step(find) == SQLITE_ROW)
        id = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    if (id)
        return id;
    if (sqlite3_step(insert) == SQLITE_DONE)
        id = sqlite3_last_insert_rowid(a->s->db);
    else
        failed(a);
    sqlite3_reset(insert);
    return id;
}

static void bind_text(sqlite3_stmt *s, int i, const char *text)
{
    sqlite3_bind_text(s, i, text, -1, SQLITE_STATIC);
}

static void bind_string(sqlite3_stmt *s, int i, const struct batch *b, uint32_t string)
{
    struct str t = strpool_get(&b->strings, string);
    sqlite3_bind_text(s, i, t.data, (int)t.len, SQLITE_STATIC);
}

static void bind_hash(sqlite3_stmt *s, int i, const struct fleet_hash *h)
{
    sqlite3_bind_blob(s, i, h->bytes, FLEET_HASH_BYTES, SQLITE_STATIC);
}

static bool step_done(struct adding *a, sqlite3_stmt *s)
{
    bool done = sqlite3_step(s) == SQLITE_DONE;
    if (!done)
        failed(a);
    sqlite3_reset(s);
    return done;
}

/* Two statements that find and insert; both NULL-safe to release. */
struct pair {
    sqlite3_stmt *find, *insert;
};

static bool prepare_pair(struct adding *a, struct pair *p, const char *find, const char *insert)
{
    p->find = sqlite_prepare(a->s->db, find, a->why);
    p->insert = sqlite_prepare(a->s->db, insert, a->why);
    if (!p->find || !p->insert)
        failed(a);
    return p->find && p->insert;
}

static void pair_release(struct pair *p)
{
    sqlite3_finalize(p->find);
    sqlite3_finalize(p->insert);
}

static int64_t add_tenant(struct adding *a, const char *tenant)
{
    _cleanup_(pair_release) struct pair p = {0};
    if (!prepare_pair(a, &p, "SELECT id FROM tenant WHERE name = ?1",
                      "INSERT INTO tenant(name) VALUES(?1)"))
        return 0;
    bind_text(p.find, 1, tenant);
    bind_text(p.insert, 1, tenant);
    return id_of(a, p.find, p.insert);
}

static void add_labels(struct adding *a, const struct fleet_origin *o)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(a->s->db, "INSERT OR REPLACE INTO label VALUES(?1, ?2, ?3)", a->why);
    if (!s)
        failed(a);
    for (size_t i = 0; a->error == 0 && i < o->n_labels; i++) {
        sqlite3_bind_int64(s, 1, a->series);
        bind_text(s, 2, o->labels[i].key);
        bind_text(s, 3, o->labels[i].value);
        step_done(a, s);
    }
}

static void add_series(struct adding *a, const struct fleet_origin *o)
{
    _cleanup_(pair_release) struct pair p = {0};
    struct fleet_hash hash = store_hash_origin(o);
    int64_t tenant = add_tenant(a, o->tenant);
    if (a->error || !prepare_pair(a, &p, "UPDATE series SET seen = ?2 WHERE hash = ?1 RETURNING id",
                                  "INSERT INTO series VALUES(NULL, ?1, ?3, ?4, ?5, ?6, ?7, ?2)"))
        return;
    bind_hash(p.find, 1, &hash);
    sqlite3_bind_int64(p.find, 2, a->day);
    bind_hash(p.insert, 1, &hash);
    sqlite3_bind_int64(p.insert, 2, a->day);
    sqlite3_bind_int64(p.insert, 3, tenant);
    bind_text(p.insert, 4, o->service);
    bind_text(p.insert, 5, o->version);
    bind_text(p.insert, 6, o->host);
    bind_text(p.insert, 7, o->instance);
    if (sqlite3_step(p.find) == SQLITE_ROW) {
        a->series = sqlite3_column_int64(p.find, 0);
        if (!step_done(a, p.find))
            return;
    } else if (step_done(a, p.insert)) {
        a->series = sqlite3_last_insert_rowid(a->s->db);
        add_labels(a, o);
    }
}

static void add_types(struct adding *a)
{
    _cleanup_(pair_release) struct pair p = {0};
    if (!prepare_pair(a, &p, "SELECT id FROM type WHERE name = ?1 AND unit = ?2",
                      "INSERT INTO type(name, unit) VALUES(?1, ?2)"))
        return;
    for (size_t i = 0; a->error == 0 && i < a->b->types.len; i++) {
        for (int k = 0; k < 2; k++) {
            sqlite3_stmt *s = k ? p.insert : p.find;
            bind_string(s, 1, a->b, a->b->types.data[i].name);
            bind_string(s, 2, a->b, a->b->types.data[i].unit);
        }
        a->types[i] = id_of(a, p.find, p.insert);
    }
}

static int64_t add_frame(struct adding *a, struct pair *p, uint32_t frame)
{
    const struct fleet_frame *f = &a->b->frames.data[frame];
    uint64_t key = fleet_hash_key(&f->hash), *known = map_get(&a->s->frames, key);
    if (a->frames[frame] || a->error)
        return a->frames[frame];
    if (!known) {
        bind_hash(p->find, 1, &f->hash);
        bind_hash(p->insert, 1, &f->hash);
        sqlite3_bind_int(p->insert, 2, f->kind);
        bind_string(p->insert, 3, a->b, f->label);
        a->frames[frame] = id_of(a, p->find, p->insert);
        if (a->error == 0)
            remember(&a->s->frames, key, a->frames[frame]);
    } else {
        a->frames[frame] = (int64_t)*known;
    }
    return a->frames[frame];
}

static int64_t insert_stack(struct adding *a, const struct fleet_stack *st, sqlite3_stmt *insert,
                            struct pair *frames)
{
    _cleanup_(buf_release) struct buf path = BUF(1 << 24);
    for (uint32_t i = 0; i < st->depth; i++)
        buf_varint(&path, (uint64_t)add_frame(a, frames, a->b->path.data[st->first + i]));
    if (buf_error(&path) && a->error == 0)
        a->error = buf_error(&path);
    if (a->error)
        return 0;
    bind_hash(insert, 1, &st->hash);
    sqlite3_bind_int64(insert, 2, a->day);
    sqlite3_bind_blob(insert, 3, path.data ? path.data : (uint8_t *)"", (int)path.len,
                      SQLITE_STATIC);
    if (!step_done(a, insert))
        return 0;
    return sqlite3_last_insert_rowid(a->s->db);
}

/* Adds the stacks. A stack that is in use is marked with the current day, once a day. */
static void add_stacks(struct adding *a)
{
    _cleanup_(pair_release) struct pair p = {0}, frames = {0};
    _cleanup_(sqlite_finish) sqlite3_stmt *mark =
        sqlite_prepare(a->s->db, "UPDATE stack SET seen = ?2 WHERE id = ?1", a->why);
    if (!mark ||
        !prepare_pair(a, &frames, "SELECT id FROM frame WHERE hash = ?1",
                      "INSERT INTO frame(hash, kind, label) VALUES(?1, ?2, ?3)") ||
        !prepare_pair(a, &p, "SELECT id, seen FROM stack WHERE hash = ?1",
                      "INSERT INTO stack(hash, seen, frames) VALUES(?1, ?2, ?3)")) {
        failed(a);
        return;
    }
    for (size_t i = 0; a->error == 0 && i < a->b->stacks.len; i++) {
        const struct fleet_stack *st = &a->b->stacks.data[i];
        uint64_t key = fleet_hash_key(&st->hash), *known = map_get(&a->s->stacks, key);
        int64_t id = known ? (int64_t)(*known >> DAY_BITS) : 0;
        int64_t seen = known ? (int64_t)(*known & ((1 << DAY_BITS) - 1)) : 0;
        if (!id) {
            bind_hash(p.find, 1, &st->hash);
            if (sqlite3_step(p.find) == SQLITE_ROW) {
                id = sqlite3_column_int64(p.find, 0);
                seen = sqlite3_column_int64(p.find, 1);
            }
            sqlite3_reset(p.find);
        }
        if (!id) {
            id = insert_stack(a, st, p.insert, &frames);
        } else if (seen < a->day) {
            sqlite3_bind_int64(mark, 1, id);
            sqlite3_bind_int64(mark, 2, a->day);
            step_done(a, mark);
        }
        a->stacks[i] = id;
        if (a->error == 0 && (!known || seen < a->day))
            remember(&a->s->stacks, key, id << DAY_BITS | a->day);
    }
}

/* Adds the requests. The statement that finds a row also marks it as used today. */
static void add_requests(struct adding *a)
{
    _cleanup_(pair_release) struct pair p = {0};
    if (!prepare_pair(a, &p,
                      "UPDATE request SET seen = ?2 WHERE kind = ?3 AND name = ?1 RETURNING id",
                      "INSERT INTO request(kind, name, seen) VALUES(?3, ?1, ?2)"))
        return;
    sqlite3_bind_int64(p.find, 2, a->day);
    sqlite3_bind_int64(p.insert, 2, a->day);
    for (size_t i = 0; a->error == 0 && i < a->b->requests.len; i++) {
        for (int k = 0; k < 2; k++) {
            sqlite3_stmt *s = k ? p.insert : p.find;
            bind_string(s, 1, a->b, a->b->requests.data[i].text);
            sqlite3_bind_int64(s, 3, a->b->requests.data[i].kind);
        }
        a->requests[i] = id_of(a, p.find, p.insert);
    }
}

static void add_traces(struct adding *a)
{
    _cleanup_(pair_release) struct pair p = {0};
    if (!prepare_pair(a, &p, "UPDATE trace SET seen = ?2 WHERE trace = ?1 RETURNING id",
                      "INSERT INTO trace(trace, seen) VALUES(?1, ?2)"))
        return;
    sqlite3_bind_int64(p.find, 2, a->day);
    sqlite3_bind_int64(p.insert, 2, a->day);
    for (size_t i = 0; a->error == 0 && i < a->b->traces.len; i++) {
        bind_hash(p.find, 1, &a->b->traces.data[i]);
        bind_hash(p.insert, 1, &a->b->traces.data[i]);
        a->traces[i] = id_of(a, p.find, p.insert);
    }
}

/* Statements that read an existing block and write the changed one. */
struct block_writer {
    sqlite3_stmt *find, *put;
};

static void block_writer_release(struct block_writer *w)
{
    sqlite3_finalize(w->find);
    sqlite3_finalize(w->put);
}

static void read_block(struct adding *a, sqlite3_stmt *find, struct fleet_entries *e)
{
    if (sqlite3_step(find) == SQLITE_ROW) {
        int r = fleet_block_read(e, sqlite3_column_blob(find, 0),
                                 (size_t)sqlite3_column_bytes(find, 0));
        if (r < 0 && a->error == 0) {
            a->error = r;
            buf_string(a->why, "a block of the store is damaged");
        }
    }
    sqlite3_reset(find);
}

static void put_block(struct adding *a, struct block_writer *w, int resolution, uint32_t type,
                      int64_t start_s, struct fleet_entries *e)
{
    _cleanup_(buf_release) struct buf data = BUF(1 << 28);
    for (int k = 0; k < 2; k++) {
        sqlite3_stmt *s = k ? w->put : w->find;
        sqlite3_bind_int(s, 1, resolution);
        sqlite3_bind_int64(s, 2, a->types[type]);
        sqlite3_bind_int64(s, 3, start_s);
        sqlite3_bind_int64(s, 4, a->series);
    }
    read_block(a, w->find, e);
    fleet_entries_settle(e);
    fleet_block_write(e, &data);
    if (buf_error(&data) && a->error == 0)
        a->error = buf_error(&data);
    if (a->error)
        return;
    uint64_t samples = 0, weight = 0;
    for (size_t i = 0; i < e->list.len; i++) {
        samples += e->list.data[i].count;
        weight += e->list.data[i].weight;
    }
    sqlite3_bind_int64(w->put, 5, (int64_t)samples);
    sqlite3_bind_int64(w->put, 6, (int64_t)weight);
    sqlite3_bind_blob(w->put, 7, data.data, (int)data.len, SQLITE_STATIC);
    step_done(a, w->put);
}

/* The samples of one resolution on their way into the tables. */
struct adding_blocks {
    struct adding *a;
    struct block_writer *w;
    int resolution;
};

static int add_block(void *context, uint32_t type, int64_t start_s, struct fleet_entries *e)
{
    struct adding_blocks *x = context;
    for (size_t i = 0; i < e->list.len; i++) {
        struct fleet_entry *at = &e->list.data[i];
        at->stack = (uint64_t)x->a->stacks[at->stack];
        at->request = at->request ? (uint64_t)x->a->requests[at->request - 1] : 0;
        at->trace = at->trace ? (uint64_t)x->a->traces[at->trace - 1] : 0;
    }
    put_block(x->a, x->w, x->resolution, type, start_s, e);
    return x->a->error;
}

static void add_samples(struct adding *a)
{
    _cleanup_(block_writer_release) struct block_writer w = {
        sqlite_prepare(a->s->db,
                       "SELECT data FROM block WHERE resolution = ?1 AND type = ?2 AND start = ?3"
                       " AND series = ?4",
                       a->why),
        sqlite_prepare(a->s->db,
                       "INSERT INTO block(resolution, type, start, series, samples, weight, data)"
                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                       " ON CONFLICT(resolution, type, series, start) DO UPDATE SET"
                       " samples = ?5, weight = ?6, data = ?7",
                       a->why)};
    if (!w.find || !w.put)
        failed(a);
    for (int i = 0; i < STORE_RESOLUTIONS && a->error == 0; i++) {
        struct adding_blocks x = {a, &w, i};
        /*
         * A query for a trace includes its time, so traces are kept in the finest resolution only.
         */
        int r = rollup_batch(a->b, store_resolution_s[i], i == 0, add_block, &x);
        a->error = a->error ? a->error : r;
    }
}

static void put_latency(struct adding *a, struct block_writer *w, int resolution,
                        const struct fleet_latency *l)
{
    _cleanup_(buf_release) struct buf data = BUF(1 << 24);
    struct fleet_counts counts = {0};
    for (int k = 0; k < 2; k++) {
        sqlite3_stmt *s = k ? w->put : w->find;
        sqlite3_bind_int(s, 1, resolution);
        sqlite3_bind_int64(s, 2, fleet_floor(l->start_s, store_resolution_s[resolution]));
        sqlite3_bind_int64(s, 3, a->series);
        sqlite3_bind_int64(s, 4, a->requests[l->request]);
    }
    int r = 0;
    if (sqlite3_step(w->find) == SQLITE_ROW)
        r = fleet_counts_read(&counts, sqlite3_column_blob(w->find, 0),
                              (size_t)sqlite3_column_bytes(w->find, 0));
    sqlite3_reset(w->find);
    if (r == 0)
        r = fleet_counts_add_latency(&counts, a->b, l);
    if (r == 0) {
        fleet_counts_write(&counts, &data);
        r = buf_error(&data);
    }
    vec_release(&counts.list);
    if (r < 0) {
        a->error = r;
        return;
    }
    sqlite3_bind_int64(w->put, 5, (int64_t)l->count);
    sqlite3_bind_int64(w->put, 6, (int64_t)l->errors);
    sqlite3_bind_int64(w->put, 7, (int64_t)l->total_ns);
    sqlite3_bind_int64(w->put, 8, (int64_t)l->max_ns);
    sqlite3_bind_blob(w->put, 9, data.data ? data.data : (uint8_t *)"", (int)data.len,
                      SQLITE_STATIC);
    step_done(a, w->put);
}

static void add_latencies(struct adding *a)
{
    if (!a->b->latencies.len)
        return;
    _cleanup_(block_writer_release) struct block_writer w = {
        sqlite_prepare(a->s->db,
                       "SELECT data FROM latency WHERE resolution = ?1 AND start = ?2"
                       " AND series = ?3 AND request = ?4",
                       a->why),
        sqlite_prepare(a->s->db,
                       "INSERT INTO latency(resolution, start, series, request, requests, errors,"
                       " total_ns, max_ns, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                       " ON CONFLICT(resolution, series, start, request) DO UPDATE SET"
                       " requests = requests + ?5, errors = errors + ?6,"
                       " total_ns = total_ns + ?7, max_ns = max(max_ns, ?8), data = ?9",
                       a->why)};
    if (!w.find || !w.put)
        failed(a);
    for (int r = 0; r < STORE_RESOLUTIONS; r++)
        for (size_t i = 0; i < a->b->latencies.len && a->error == 0; i++)
            put_latency(a, &w, r, &a->b->latencies.data[i]);
}

static void add_findings(struct adding *a)
{
    if (!a->b->findings.len)
        return;
    _cleanup_(sqlite_finish) sqlite3_stmt *s = sqlite_prepare(
        a->s->db, "INSERT INTO finding VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6)", a->why);
    if (!s)
        failed(a);
    for (size_t i = 0; i < a->b->findings.len && a->error == 0; i++) {
        const struct fleet_finding *f = &a->b->findings.data[i];
        sqlite3_bind_int64(s, 1, f->start_s);
        sqlite3_bind_int64(s, 2, a->series);
        bind_string(s, 3, a->b, f->kind);
        bind_string(s, 4, a->b, f->text);
        sqlite3_bind_int64(s, 5, (int64_t)f->count);
        sqlite3_bind_int64(s, 6, (int64_t)f->weight_ns);
        step_done(a, s);
    }
}

/* Adds an upload to the known ones. Returns whether it is new. */
static bool add_upload(struct adding *a, const struct fleet_hash *upload, int64_t now_s)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(a->s->db, "INSERT OR IGNORE INTO upload VALUES(?1, ?2)", a->why);
    if (!s) {
        failed(a);
        return false;
    }
    bind_hash(s, 1, upload);
    sqlite3_bind_int64(s, 2, now_s);
    return step_done(a, s) && sqlite3_changes(a->s->db) == 1;
}

/* Forgets the remembered ids if another process has removed old stacks. */
static void check_memory(struct adding *a)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(a->s->db, "PRAGMA data_version", a->why);
    if (!s || sqlite3_step(s) != SQLITE_ROW) {
        failed(a);
        return;
    }
    int64_t version = sqlite3_column_int64(s, 0);
    if (version != a->s->data_version)
        sqlite_forget(a->s);
    a->s->data_version = version;
}

static void add_all(struct adding *a, const struct fleet_origin *origin)
{
    static void (*const parts[])(struct adding *) = {
        add_types, add_stacks, add_requests, add_traces, add_samples, add_latencies, add_findings};
    add_series(a, origin);
    for (size_t i = 0; i < ARRAY_SIZE(parts) && a->error == 0; i++)
        parts[i](a);
}

static int allocate(struct adding *a)
{
    const size_t n[] = {a->b->types.len, a->b->frames.len, a->b->stacks.len, a->b->requests.len,
                        a->b->traces.len};
    int64_t **to[] = {&a->types, &a->frames, &a->stacks, &a->requests, &a->traces};
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(n); i++) {
        *to[i] = calloc(n[i] + 1, sizeof(int64_t));
        r = *to[i] ? r : -ENOMEM;
    }
    return r;
}

static int add_in_transaction(struct adding *a, const struct fleet_origin *origin,
                              const struct fleet_hash *upload, bool *ret_new)
{
    int64_t now_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    int r = sqlite_run(a->s->db, "BEGIN IMMEDIATE", a->why);
    if (r < 0)
        return r;
    a->day = now_s / DAY_S;
    check_memory(a);
    bool is_new = a->error == 0 && add_upload(a, upload, now_s);
    if (is_new && a->error == 0)
        add_all(a, origin);
    if (a->error == 0)
        a->error = sqlite_run(a->s->db, "COMMIT", a->why);
    if (a->error) {
        sqlite3_exec(a->s->db, "ROLLBACK", NULL, NULL, NULL);
        sqlite_forget(a->s); /* these rows were rolled back */
        return a->error;
    }
    *ret_new = is_new;
    return 0;
}

int sqlite_store_add(struct store *store, const struct fleet_origin *origin,
                     const struct fleet_hash *upload, const struct batch *b,
                     struct store_adding **ret, bool *ret_new, struct buf *why)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    (void)ret; /* everything has been done already */
    struct adding a = {.s = s, .b = b, .why = why};
    int r = allocate(&a);
    pthread_mutex_lock(&s->writing);
    if (r == 0)
        r = add_in_transaction(&a, origin, upload, ret_new);
    pthread_mutex_unlock(&s->writing);
    free(a.types);
    free(a.frames);
    free(a.stacks);
    free(a.requests);
    free(a.traces);
    return r;
}
