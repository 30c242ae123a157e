/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a store in a file of SQLite, and its tables' versions. */
#include "fleet/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* The changes that lead from one version of the tables to the next one. */
static const char *const steps[] = {
    /* 1: samples */
    "CREATE TABLE tenant(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE upload(id BLOB PRIMARY KEY, received INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE series(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE,"
    " tenant INTEGER NOT NULL, service TEXT NOT NULL, version TEXT NOT NULL, host TEXT NOT NULL,"
    " instance TEXT NOT NULL, seen INTEGER NOT NULL);"
    "CREATE TABLE label(series INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY(series, key)) WITHOUT ROWID;"
    "CREATE TABLE type(id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL,"
    " UNIQUE(name, unit));"
    "CREATE TABLE frame(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL,"
    " label TEXT NOT NULL);"
    "CREATE TABLE stack(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, seen INTEGER NOT NULL,"
    " frames BLOB NOT NULL);"
    "CREATE TABLE block(id INTEGER PRIMARY KEY, resolution INTEGER NOT NULL, type INTEGER NOT NULL,"
    " start INTEGER NOT NULL, series INTEGER NOT NULL, samples INTEGER NOT NULL,"
    " weight INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(resolution, type, start, series));"
    "CREATE TABLE gone(resolution INTEGER PRIMARY KEY, up_to INTEGER NOT NULL);",
    /* 2: requests */
    "CREATE TABLE request(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE trace(id INTEGER PRIMARY KEY, trace BLOB NOT NULL UNIQUE);"
    "CREATE TABLE latency(id INTEGER PRIMARY KEY, resolution INTEGER NOT NULL,"
    " start INTEGER NOT NULL, series INTEGER NOT NULL, request INTEGER NOT NULL,"
    " requests INTEGER NOT NULL, errors INTEGER NOT NULL, total_ns INTEGER NOT NULL,"
    " max_ns INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(resolution, start, series, request));",
    /* 3: findings */
    "CREATE TABLE finding(id INTEGER PRIMARY KEY, start INTEGER NOT NULL, series INTEGER NOT NULL,"
    " kind TEXT NOT NULL, text TEXT NOT NULL, count INTEGER NOT NULL, weight_ns INTEGER NOT NULL);"
    "CREATE INDEX finding_start ON finding(start);",
    /* 4: queries of a few series read only the blocks of these; names and traces can expire */
    "ALTER TABLE block RENAME TO old_block;"
    "CREATE TABLE block(id INTEGER PRIMARY KEY, resolution INTEGER NOT NULL, type INTEGER NOT NULL,"
    " series INTEGER NOT NULL, start INTEGER NOT NULL, samples INTEGER NOT NULL,"
    " weight INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(resolution, type, series, start));"
    "INSERT INTO block SELECT id, resolution, type, series, start, samples, weight, data"
    " FROM old_block;"
    "DROP TABLE old_block;"
    "ALTER TABLE latency RENAME TO old_latency;"
    "CREATE TABLE latency(id INTEGER PRIMARY KEY, resolution INTEGER NOT NULL,"
    " series INTEGER NOT NULL, start INTEGER NOT NULL, request INTEGER NOT NULL,"
    " requests INTEGER NOT NULL, errors INTEGER NOT NULL, total_ns INTEGER NOT NULL,"
    " max_ns INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(resolution, series, start, request));"
    "INSERT INTO latency SELECT id, resolution, series, start, request, requests, errors, total_ns,"
    " max_ns, data FROM old_latency;"
    "DROP TABLE old_latency;"
    "ALTER TABLE request ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE trace ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;"
    "UPDATE request SET seen = unixepoch() / 86400;"
    "UPDATE trace SET seen = unixepoch() / 86400;",
    /* 5: names may belong to figures of the VM as well as to requests */
    "ALTER TABLE request RENAME TO old_request;"
    "CREATE TABLE request(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name TEXT NOT NULL,"
    " seen INTEGER NOT NULL, UNIQUE(kind, name));"
    "INSERT INTO request SELECT id, 0, name, seen FROM old_request;"
    "DROP TABLE old_request;",
};
const int sqlite_schema_version = ARRAY_SIZE(steps);

int sqlite_failed(sqlite3 *db, struct buf *why)
{
    int code = sqlite3_errcode(db) & 0xff;
    if (!why->len)
        buf_string(why, sqlite3_errmsg(db));
    switch (code) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_CANTOPEN:
        return -ENOENT;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EBADMSG;
    default:
        return -EIO;
    }
}

int sqlite_run(sqlite3 *db, const char *sql, struct buf *why)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_failed(db, why);
}

sqlite3_stmt *sqlite_prepare(sqlite3 *db, const char *sql, struct buf *why)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) != SQLITE_OK)
        (void)sqlite_failed(db, why);
    return s;
}

static int read_version(sqlite3 *db, int *ret, struct buf *why)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s = sqlite_prepare(db, "PRAGMA user_version", why);
    if (!s || sqlite3_step(s) != SQLITE_ROW)
        return sqlite_failed(db, why);
    *ret = sqlite3_column_int(s, 0);
    return 0;
}

/* A database of another program has tables and no version. */
static int check_is_ours(sqlite3 *db, struct buf *why)
{
    _cleanup_(sqlite_finish) sqlite3_stmt *s =
        sqlite_prepare(db, "SELECT count(*) FROM sqlite_schema", why);
    if (!s || sqlite3_step(s) != SQLITE_ROW)
        return sqlite_failed(db, why);
    if (!sqlite3_column_int(s, 0))
        return 0;
    buf_string(why, "a database of another program");
    return -EPROTONOSUPPORT;
}

int sqlite_migrate(sqlite3 *db, int version, struct buf *why)
{
    char set[64];
    int at = 0, r = read_version(db, &at, why);
    if (r < 0 || at == version)
        return r;
    if (at > version) {
        buf_printf(why,
                   "a newer version of jvmscope made it (tables of version %d, this one knows "
                   "%d)",
                   at, version);
        return -EPROTONOSUPPORT;
    }
    r = sqlite_run(db, "BEGIN IMMEDIATE", why);
    if (r < 0)
        return r;
    /* Another process may have made the tables meanwhile. */
    r = read_version(db, &at, why);
    if (r == 0 && at == 0)
        r = check_is_ours(db, why);
    for (; r == 0 && at < version; at++)
        r = sqlite_run(db, steps[at], why);
    snprintf(set, sizeof(set), "PRAGMA user_version = %d", at);
    if (r == 0)
        r = sqlite_run(db, set, why);
    if (r == 0)
        r = sqlite_run(db, "COMMIT", why);
    if (r < 0)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return r;
}

int sqlite_connect(sqlite3 **ret, const char *path, bool create, struct buf *why)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK) {
        int r = db ? sqlite_failed(db, why) : -ENOMEM;
        sqlite3_close(db);
        return r;
    }
    sqlite3_busy_timeout(db, SQLITE_STORE_WAIT_MS);
    sqlite3_extended_result_codes(db, 1);
    /*
     * An upload is on the disk before it is acknowledged (FULL), because the sender then deletes
     * it. Memory is limited: 16 MB of pages, and temporary tables in files.
     */
    int r = sqlite_run(db,
                       "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                       "PRAGMA cache_size = -16384; PRAGMA temp_store = FILE;"
                       "PRAGMA journal_size_limit = 67108864;",
                       why);
    if (r < 0)
        sqlite3_close(db);
    else
        *ret = db;
    return r;
}

static void sqlite_store_close(struct store *store)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    sqlite_forget(s);
    sqlite3_close(s->db);
    pthread_mutex_destroy(&s->writing);
    free(s->path);
    free(s);
}

static const struct store_ops ops = {
    .add_begin = sqlite_store_add,
    .tidy = sqlite_store_tidy,
    .close = sqlite_store_close,
    .begin = sqlite_read_begin,
    .series = sqlite_read_series,
    .blocks = sqlite_read_blocks,
    .ends = sqlite_read_ends,
    .latencies = sqlite_read_latencies,
    .findings = sqlite_read_findings,
    .stack = sqlite_read_stack,
    .frame = sqlite_read_frame,
    .request = sqlite_read_request,
    .end = sqlite_read_end,
};

/* A store is as private as the recordings in it, so only its owner can read it. */
static int make_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

int store_sqlite_open(struct store **ret, const char *path, bool create, struct buf *why)
{
    int r = create ? make_private(path) : access(path, F_OK) < 0 ? -errno : 0;
    if (r < 0)
        return r;
    struct sqlite_store *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->store.ops = &ops;
    pthread_mutex_init(&s->writing, NULL);
    s->path = strdup(path);
    r = s->path ? sqlite_connect(&s->db, path, create, why) : -ENOMEM;
    if (r == 0)
        r = sqlite_migrate(s->db, sqlite_schema_version, why);
    if (r < 0)
        sqlite_store_close(&s->store);
    else
        *ret = &s->store;
    return r;
}
