/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a file of SQLite: what its parts share. doc/fleet.md describes the tables. */
#pragma once

#include "base/map.h"
#include "base/strpool.h"
#include "fleet/store.h"

#include <pthread.h>
#include <sqlite3.h>

/* How long a statement waits for another process that writes. */
enum { SQLITE_STORE_WAIT_MS = 20000 };

struct sqlite_store {
    struct store store;
    pthread_mutex_t writing; /* one thread writes at a time */
    sqlite3 *db;             /* the writer's connection */
    char *path;
    /*
     * The numbers of frames, stacks, requests ... that the writer has seen, by the first half of
     * their hashes; a stack's with the day on which it was last marked as used. Emptied when
     * another process has changed the file, which may have removed some.
     */
    struct map frames, stacks, requests, traces;
    int64_t data_version;
};

/* The newest version of the tables. */
extern const int sqlite_schema_version;

/*
 * Opens a connection with the settings that all connections to a store have. create: makes a file
 * that is missing. Returns 0, or a negative errno with the reason in why (sqlite_failed).
 */
int sqlite_connect(sqlite3 **ret, const char *path, bool create, struct buf *why) must_check;
/*
 * Upgrades a file's tables from any older version to `version`, in one transaction. Returns 0, or a
 * negative errno with the reason in why: -EPROTONOSUPPORT when the tables are newer.
 */
int sqlite_migrate(sqlite3 *db, int version, struct buf *why) must_check;

/*
 * Returns the negative errno for the last failure on a connection, and appends SQLite's message to
 * why if that is empty.
 */
int sqlite_failed(sqlite3 *db, struct buf *why);
/* Runs statements without results. Returns 0, or a negative errno with the reason in why. */
int sqlite_run(sqlite3 *db, const char *sql, struct buf *why) must_check;
/*
 * Prepares a statement, which the caller finishes. Returns NULL with the reason in why on failure.
 */
sqlite3_stmt *sqlite_prepare(sqlite3 *db, const char *sql, struct buf *why) must_check;

static inline void sqlite_finish(sqlite3_stmt **s)
{
    sqlite3_finalize(*s);
}

/* The functions add_begin, which adds at once, and tidy of struct store_ops. */
int sqlite_store_add(struct store *s, const struct fleet_origin *origin,
                     const struct fleet_hash *upload, const struct batch *b,
                     struct store_adding **ret, bool *ret_new, struct buf *why);
int sqlite_store_tidy(struct store *s, const struct store_keep *keep, int64_t now_s,
                      struct buf *why);
/* Forgets all numbers of frames, stacks, requests and traces. */
void sqlite_forget(struct sqlite_store *s);

/* The functions of struct store_ops for reading (sqlite_read.c). */
int sqlite_read_begin(struct store *s, const struct fleet_choice *choice, struct store_read **ret,
                      struct buf *why);
int sqlite_read_series(struct store_read *r, int (*visit)(void *, const struct store_series *),
                       void *context);
int sqlite_read_blocks(struct store_read *r, bool entries,
                       int (*visit)(void *, const struct store_block *), void *context);
int sqlite_read_ends(struct store_read *r, int (*visit)(void *, const struct store_block *),
                     void *context);
int sqlite_read_latencies(struct store_read *r, int (*visit)(void *, const struct store_latency *),
                          void *context);
int sqlite_read_findings(struct store_read *r, int (*visit)(void *, const struct store_finding *),
                         void *context);
int sqlite_read_stack(struct store_read *r, uint64_t stack, struct store_stack *ret);
int sqlite_read_frame(struct store_read *r, uint32_t frame, struct store_frame *ret);
const char *sqlite_read_request(struct store_read *r, uint64_t request);
void sqlite_read_end(struct store_read *r);
