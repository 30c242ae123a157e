/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a store in ClickHouse, makes its tables, and sends statements. */
#include "fleet/clickhouse.h"

#include "wire/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENT_MS = 120000, NAME_LEN_MAX = 64 };

/*
 * The tables of one server. All rows of one upload have the same sharding key. They are therefore
 * inserted together into one server, and if they are sent again, into the same server.
 */
static const struct {
    const char *name, *columns, *engine, *shard;
} tables[CH_TABLES] = {
    [CH_TYPE] = {"type", "name String, unit String", "ReplacingMergeTree ORDER BY (name, unit)",
                 "sipHash64(name)"},
    [CH_REQUEST] = {"request", "hash UInt64, name String, kind UInt8",
                    "ReplacingMergeTree ORDER BY hash", "hash"},
    [CH_FRAME] = {"frame", "hash UInt64, kind UInt8, label String",
                  "ReplacingMergeTree ORDER BY hash", "hash"},
    [CH_STACK] = {"stack", "hash UInt64, seen UInt32, frames Array(UInt64)",
                  "ReplacingMergeTree(seen) ORDER BY hash", "hash"},
    [CH_SERIES] = {"series",
                   "hash UInt64, seen UInt32, tenant String, service String, version String,"
                   " host String, instance String, keys Array(String), values Array(String)",
                   "ReplacingMergeTree(seen) ORDER BY hash", "hash"},

/*
 * In steps of 10 s queries are for short times, so the rows of each 5 min are stored together.
 *
 * Blocks are as in SQLite, but with hashes of stacks and requests. Their rows are long, and a
 * granule has few of them, so that a query reads little more than it needs.
 */
#define BLOCK_OF "samples UInt64, weight UInt64, entries UInt32, data String"
#define BY_DAY   " PARTITION BY toYYYYMMDD(toDateTime(start, 'UTC'))"
    [CH_BLOCK_10S] = {"block_10s",
                      "type String, unit String, series UInt64, start UInt32, upload UInt64,"
                      " traces Array(FixedString(16)), " BLOCK_OF,
                      "ReplacingMergeTree" BY_DAY
                      " ORDER BY (type, unit, intDiv(start, 300), series, start, upload)"
                      " SETTINGS index_granularity = 64",
                      "series"},
    [CH_BLOCK_NEW] = {"block_new",
                      "type String, unit String, series UInt64, program UInt64, start UInt32,"
                      " upload UInt64, " BLOCK_OF,
                      "ReplacingMergeTree" BY_DAY " ORDER BY (type, unit, series, start, upload)"
                      " SETTINGS index_granularity = 64",
                      "series"},
#define MERGED(name, of)                                                            \
    {                                                                               \
        name,                                                                       \
            "type String, unit String, " of " UInt64, start UInt32, merged UInt32," \
            " uploads Array(UInt64), " BLOCK_OF,                                    \
            "ReplacingMergeTree(merged)" BY_DAY " ORDER BY (type, unit, " of        \
            ", start) SETTINGS index_granularity = 16",                             \
            of                                                                      \
    }
    [CH_BLOCK_5M] = MERGED("block_5m", "series"),
    [CH_BLOCK_1H] = MERGED("block_1h", "series"),
    [CH_PROGRAM_5M] = MERGED("program_5m", "program"),
    [CH_PROGRAM_1H] = MERGED("program_1h", "program"),
#define LATENCY(name, partition)                                                           \
    {                                                                                      \
        name,                                                                              \
            "series UInt64, start UInt32, upload UInt64, request UInt64, requests UInt64," \
            " errors UInt64, total_ns UInt64, max_ns UInt64, buckets Array(UInt32),"       \
            " counts Array(UInt64)",                                                       \
            "ReplacingMergeTree PARTITION BY " partition                                   \
            "(toDateTime(start, 'UTC')) ORDER BY (series, start, upload, request)",        \
            "series"                                                                       \
    }
    [CH_LATENCY] = LATENCY("latency_10s", "toYYYYMMDD"),
    [CH_LATENCY + 1] = LATENCY("latency_5m", "toYYYYMMDD"),
    [CH_LATENCY + 2] = LATENCY("latency_1h", "toYYYYMM"),
    [CH_FINDING] = {"finding",
                    "series UInt64, start UInt32, upload UInt64, number UInt32, kind String,"
                    " text String, count UInt64, weight_ns UInt64",
                    "ReplacingMergeTree PARTITION BY toYYYYMM(toDateTime(start, 'UTC'))"
                    " ORDER BY (start, series, upload, number)",
                    "series"},
    [CH_UPLOAD] = {"upload", "id FixedString(16), received UInt32",
                   "ReplacingMergeTree ORDER BY id", "sipHash64(id)"},
    [CH_GONE] = {"gone", "resolution UInt8, up_to Int64",
                 "ReplacingMergeTree ORDER BY (resolution, up_to)", "resolution"},
};

/* 2: requests have a kind. 3: samples are in blocks, and those of 5 min and 1 h are merged. */
enum { SCHEMA_VERSION = 3 };

/* The names of the distributed tables, which cover the whole cluster. */
static const char *const all_tables[CH_TABLES] = {
    "all_type",       "all_request",     "all_frame",      "all_stack",      "all_series",
    "all_block_10s",  "all_block_new",   "all_block_5m",   "all_block_1h",   "all_program_5m",
    "all_program_1h", "all_latency_10s", "all_latency_5m", "all_latency_1h", "all_finding",
    "all_upload",     "all_gone",
};

const char *clickhouse_table(const struct clickhouse_store *s, enum clickhouse_table table)
{
    return s->cluster ? all_tables[table] : tables[table].name;
}

const char *clickhouse_local_table(enum clickhouse_table table)
{
    return tables[table].name;
}

/* ---- statements */

static void put_encoded(struct buf *to, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    for (; *text; text++) {
        if (strchr(plain, *text))
            buf_u8(to, (uint8_t)*text);
        else
            buf_printf(to, "%%%02X", (unsigned char)*text);
    }
}

/*
 * Returns the negative errno for an error's text, such as "Code: 243, e.displayText() = ...". From
 * version 20 on a header contains the code as well.
 */
static int error_of(const char *text)
{
    static const int later[] = {159, 164, 202, 209, 210, 241, 242, 252, 279, 319, 425};
    const char *at = strstr(text, "Code: ");
    int code = at ? atoi(at + 6) : 0;
    char full[16];
    /* 243: no disk has enough room. A file that could not be written is any system error. */
    snprintf(full, sizeof(full), "errno: %d,", ENOSPC);
    if (code == 243 || strstr(text, full))
        return -ENOSPC;
    for (size_t i = 0; i < ARRAY_SIZE(later); i++)
        if (code == later[i])
            return -EBUSY;
    return -EIO;
}

static int run_on(struct clickhouse_store *s, const char *host, const char *database,
                  const char *sql, const struct buf *data, struct buf *ret, struct buf *why)
{
    _cleanup_(buf_release) struct buf url = BUF(1 << 20);
    struct http_answer answer = {.body = BUF(0)};
    const char *headers[3] = {s->user_header, s->key_header, NULL};
    /* With wait_end_of_query an error in the middle of an answer is an error. */
    buf_printf(&url, "%s/?wait_end_of_query=1&max_query_size=268435456&insert_distributed_sync=1",
               host);
    if (database) {
        buf_string(&url, "&database=");
        put_encoded(&url, database);
    }
    if (data) {
        buf_string(&url, "&query=");
        put_encoded(&url, sql);
    }
    struct http_request request = {.url = buf_str(&url),
                                   .headers = headers,
                                   .body = data ? data->data : (const uint8_t *)sql,
                                   .len = data ? data->len : strlen(sql),
                                   .total_ms = STATEMENT_MS,
                                   .answer_max = ret ? ret->limit : 0};
    int r = http_send(&request, &answer, why);
    if (r < 0) {
        r = r == -EIO || r == -ETIMEDOUT ? -EHOSTUNREACH : r;
    } else if (answer.status != 200) {
        const char *text = buf_str(&answer.body);
        r = error_of(text);
        buf_printf(why, "%s%.*s", r == -ENOSPC ? "the disk of a server is full: " : "",
                   (int)MIN(strcspn(text, "\n"), (size_t)300), text);
    } else if (ret && answer.body.len >= ret->limit) {
        buf_string(why, "the answer of ClickHouse is too large");
        r = -E2BIG;
    } else if (ret) {
        buf_bytes(ret, answer.body.data, answer.body.len);
        r = buf_error(ret);
    }
    buf_release(&answer.body);
    return r;
}

int clickhouse_run(struct clickhouse_store *s, const char *sql, const struct buf *data,
                   struct buf *ret, struct buf *why)
{
    int r = -EHOSTUNREACH;
    for (size_t i = 0; i < s->hosts.len && r == -EHOSTUNREACH; i++) {
        buf_clear(why);
        r = run_on(s, s->hosts.data[i].url, s->database, sql, data, ret, why);
    }
    return r == -EHOSTUNREACH ? -EBUSY : r;
}

int clickhouse_run_everywhere(struct clickhouse_store *s, const char *sql, struct buf *why)
{
    int r = 0;
    for (size_t i = 0; i < s->hosts.len && r == 0; i++)
        r = run_on(s, s->hosts.data[i].url, s->database, sql, NULL, NULL, why);
    return r == -EHOSTUNREACH ? -EBUSY : r;
}

int clickhouse_run_on(struct clickhouse_store *s, const char *host, const char *sql,
                      const struct buf *data, struct buf *ret, struct buf *why)
{
    int r = run_on(s, host, s->database, sql, data, ret, why);
    return r == -EHOSTUNREACH ? -EBUSY : r;
}

/* Removes the partitions that the statement lists, one per line. */
static int drop_listed(struct clickhouse_store *s, const char *host, const char *select,
                       const char *table, struct buf *why)
{
    _cleanup_(buf_release) struct buf list = BUF(1 << 20), sql = BUF(4096);
    int r = run_on(s, host, s->database, select, NULL, &list, why);
    char *rest = r == 0 && list.len ? (char *)(uintptr_t)buf_str(&list) : NULL;
    char *line;
    while (r == 0 && (line = strsep(&rest, "\n"))) {
        if (!*line || line[strspn(line, "0123456789")])
            continue;
        buf_clear(&sql);
        buf_printf(&sql, "ALTER TABLE %s DROP PARTITION %s", table, line);
        r = run_on(s, host, s->database, buf_str(&sql), NULL, NULL, why);
    }
    return r;
}

int clickhouse_drop_partitions(struct clickhouse_store *s, const char *select, const char *table,
                               struct buf *why)
{
    int r = 0;
    for (size_t i = 0; i < s->hosts.len && r == 0; i++)
        r = drop_listed(s, s->hosts.data[i].url, select, table, why);
    return r == -EHOSTUNREACH ? -EBUSY : r;
}

/* ---- tables */

/* Runs a query whose answer is one number. */
static int ask_number(struct clickhouse_store *s, const char *host, const char *sql, uint64_t *ret,
                      struct buf *why)
{
    _cleanup_(buf_release) struct buf answer = BUF(4096);
    int r = run_on(s, host, s->database, sql, NULL, &answer, why);
    if (r == 0)
        *ret = strtoull(buf_str(&answer), NULL, 10);
    return r;
}

static int mark_version(struct clickhouse_store *s, const char *host, struct buf *why)
{
    char sql[128];
    snprintf(sql, sizeof(sql),
             "CREATE TABLE IF NOT EXISTS schema_version_%d (unused UInt8) ENGINE = Memory",
             SCHEMA_VERSION);
    return run_on(s, host, s->database, sql, NULL, NULL, why);
}

/* Upgrades from version 1 to 2. In version 1 all names are names of requests. */
static int add_kind(struct clickhouse_store *s, const char *host, struct buf *why)
{
    static const char *const names[] = {"request", "all_request"};
    int r = 0;
    for (size_t i = 0; i < (s->cluster ? 2 : 1) && r == 0; i++) {
        char sql[256];
        uint64_t has = 0;
        snprintf(sql, sizeof(sql),
                 "SELECT count() FROM system.columns WHERE database = currentDatabase()"
                 " AND table = '%s' AND name = 'kind'",
                 names[i]);
        r = ask_number(s, host, sql, &has, why);
        snprintf(sql, sizeof(sql), "ALTER TABLE %s ADD COLUMN kind UInt8", names[i]);
        if (r == 0 && !has)
            r = run_on(s, host, s->database, sql, NULL, NULL, why);
    }
    return r;
}

/*
 * Makes or upgrades the tables on a server. old: the version of the existing tables; 0: there are
 * none.
 */
static int make_on(struct clickhouse_store *s, const char *host, uint64_t old, struct buf *why)
{
    _cleanup_(buf_release) struct buf sql = BUF(1 << 16);
    buf_printf(&sql, "CREATE DATABASE IF NOT EXISTS `%s`", s->database);
    int r = run_on(s, host, NULL, buf_str(&sql), NULL, NULL, why);
    if (r == 0 && !old)
        r = mark_version(s, host, why);
    if (r == 0 && old == 1)
        r = add_kind(s, host, why);
    for (int i = 0; i < CH_TABLES && r == 0; i++) {
        buf_clear(&sql);
        buf_printf(&sql, "CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = %s", tables[i].name,
                   tables[i].columns, tables[i].engine);
        r = run_on(s, host, s->database, buf_str(&sql), NULL, NULL, why);
        if (r < 0 || !s->cluster)
            continue;
        buf_clear(&sql);
        buf_printf(&sql,
                   "CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = Distributed(`%s`, `%s`, %s, %s)",
                   all_tables[i], tables[i].columns, s->cluster, s->database, tables[i].name,
                   tables[i].shard);
        r = run_on(s, host, s->database, buf_str(&sql), NULL, NULL, why);
    }
    if (r == 0 && (old == 1 || old == 2))
        r = clickhouse_upgrade_samples(s, host, why);
    /* Only now do all tables have this version. */
    return r == 0 && old ? mark_version(s, host, why) : r;
}

/*
 * Makes the tables that are missing on a server. The version is part of a table's name, because
 * creating a table is atomic. The table of versions is created first, so that tables that a killed
 * process left behind are recognized as ours.
 */
static int prepare_server(struct clickhouse_store *s, const char *host, bool create,
                          struct buf *why)
{
    char sql[256];
    uint64_t version = 0, others = 0;
    snprintf(sql, sizeof(sql),
             "SELECT max(toUInt64(substring(name, 16))) FROM system.tables WHERE database = '%s'"
             " AND name LIKE 'schema_version_%%'",
             s->database);
    int r = run_on(s, host, NULL, "SELECT 1", NULL, NULL, why);
    if (r == 0) {
        char *database = s->database;
        s->database = NULL; /* the database may not exist yet */
        r = ask_number(s, host, sql, &version, why);
        snprintf(sql, sizeof(sql),
                 "SELECT count() FROM system.tables WHERE database = '%s' AND name = 'upload'",
                 database);
        if (r == 0)
            r = ask_number(s, host, sql, &others, why);
        s->database = database;
    }
    if (r < 0)
        return r;
    if (version > SCHEMA_VERSION) {
        buf_printf(why,
                   "a newer version of jvmscope made it (tables of version %" PRIu64
                   ", this one knows %d)",
                   version, SCHEMA_VERSION);
        return -EPROTONOSUPPORT;
    }
    if (!create) {
        if (!version)
            buf_printf(why, "there is no store in the database %s", s->database);
        else if (version < SCHEMA_VERSION)
            buf_string(why, "an older version of jvmscope made it; `jvmscope collect` upgrades it");
        return !version ? -ENOENT : version < SCHEMA_VERSION ? -EPROTONOSUPPORT : 0;
    }
    if (!version && others) {
        buf_string(why, "a database of another program");
        return -EPROTONOSUPPORT;
    }
    return make_on(s, host, version, why);
}

/* ---- opening */

static bool is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
              (text[i] >= '0' && text[i] <= '9') || text[i] == '_' || (text[i] == '-' && i)))
            return false;
    return len > 0 && len <= NAME_LEN_MAX;
}

static int add_host(struct clickhouse_store *s, const char *text, size_t len)
{
    struct clickhouse_host h;
    char *url = NULL;
    const char *port = memchr(text, ':', len);
    if (!len || memchr(text, '@', len) || !port || port + 1 == text + len)
        return -EINVAL;
    if (asprintf(&url, "http://%.*s", (int)len, text) < 0)
        return -ENOMEM;
    h.url = url;
    int r = vec_push(&s->hosts, h);
    if (r < 0)
        free(url);
    return r;
}

/* Parses "HOST:PORT,HOST:PORT/DATABASE?cluster=NAME". */
static int parse_address(struct clickhouse_store *s, const char *address)
{
    static const char key[] = "?cluster=";
    size_t hosts = strcspn(address, "/");
    const char *database = address + hosts + (address[hosts] == '/');
    size_t len = strcspn(database, "?");
    const char *rest = database + len;
    int r = 0;
    for (size_t i = 0; i <= hosts && r == 0;) {
        size_t n = strcspn(address + i, ",/");
        r = add_host(s, address + i, n);
        i += n + 1;
    }
    if (r == 0 && (!is_name(database, len) ||
                   (*rest && (strncmp(rest, key, strlen(key)) != 0 ||
                              !is_name(rest + strlen(key), strlen(rest + strlen(key)))))))
        r = -EINVAL;
    if (r == 0 && s->hosts.len > 1 && !*rest)
        r = -EINVAL;
    if (r < 0)
        return r;
    s->database = strndup(database, len);
    s->cluster = *rest ? strdup(rest + strlen(key)) : NULL;
    return s->database && (s->cluster || !*rest) ? 0 : -ENOMEM;
}

static char *header_from(const char *variable, const char *name)
{
    const char *value = getenv(variable);
    char *header = NULL;
    if (!value || !*value || strpbrk(value, "\r\n"))
        return NULL;
    return asprintf(&header, "%s: %s", name, value) < 0 ? NULL : header;
}

static void clickhouse_close(struct store *store)
{
    struct clickhouse_store *s = (struct clickhouse_store *)store;
    for (size_t i = 0; i < s->hosts.len; i++)
        free(s->hosts.data[i].url);
    vec_release(&s->hosts);
    for (size_t i = 0; i < ARRAY_SIZE(s->known); i++)
        map_release(&s->known[i]);
    while (s->waiting) {
        struct store_adding *a = s->waiting;
        s->waiting = a->next;
        clickhouse_adding_free(a);
    }
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->inserted);
    free(s->database);
    free(s->cluster);
    free(s->user_header);
    free(s->key_header);
    free(s);
}

static const struct store_ops ops = {
    .add_begin = clickhouse_add_begin,
    .add_end = clickhouse_add_end,
    .tidy = clickhouse_tidy,
    .merge = clickhouse_merge,
    .close = clickhouse_close,
    .begin = clickhouse_read_begin,
    .series = clickhouse_read_series,
    .blocks = clickhouse_read_blocks,
    .ends = clickhouse_read_ends,
    .latencies = clickhouse_read_latencies,
    .findings = clickhouse_read_findings,
    .stack = clickhouse_read_stack,
    .frame = clickhouse_read_frame,
    .request = clickhouse_read_request,
    .end = clickhouse_read_end,
};

int store_clickhouse_open(struct store **ret, const char *address, bool create, struct buf *why)
{
    struct clickhouse_store *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->store.ops = &ops;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->inserted, NULL);
    s->last = &s->waiting;
    s->user_header = header_from("JVMSCOPE_CLICKHOUSE_USER", "X-ClickHouse-User");
    s->key_header = header_from("JVMSCOPE_CLICKHOUSE_PASSWORD", "X-ClickHouse-Key");
    int r = parse_address(s, address);
    if (r == -EINVAL)
        buf_string(why, "the address is clickhouse://HOST:PORT[,HOST:PORT...]/DATABASE"
                        "[?cluster=NAME], several servers with a cluster alone");
    if (r == 0)
        r = http_available(why);
    /* A query needs one server that answers; a collector makes the tables of all servers. */
    for (size_t i = 0; i < s->hosts.len && r == 0; i++) {
        buf_clear(why);
        r = prepare_server(s, s->hosts.data[i].url, create, why);
        if (!create && r == 0)
            break;
        if (!create && r == -EHOSTUNREACH && i + 1 < s->hosts.len)
            r = 0;
    }
    if (r < 0)
        clickhouse_close(&s->store);
    else
        *ret = &s->store;
    return r;
}
