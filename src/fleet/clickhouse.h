/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in ClickHouse, by its HTTP interface: what its parts share. doc/fleet.md describes the
 * tables. It uses only what version 18.16 and current versions both support.
 *
 * ClickHouse has no transactions. Each row names its upload, and a row that is inserted again
 * replaces the first one; the upload's own row comes last. An upload that was interrupted therefore
 * counts as unknown; when it is sent again, its rows complete those that exist.
 *
 * A block that is merged from several uploads lists them, so that none of them counts twice
 * (clickhouse_merge.c).
 */
#pragma once

#include "base/cursor.h"
#include "base/map.h"
#include "base/strpool.h"
#include "fleet/store.h"

#include <endian.h>
#include <pthread.h>

struct clickhouse_host {
    char *url; /* http://HOST:PORT */
};

struct clickhouse_store {
    struct store store;
    VEC(struct clickhouse_host) hosts;
    char *database;
    char *cluster;                  /* NULL: the tables of one server */
    char *user_header, *key_header; /* NULL: none */
    int64_t tidied_day;   /* rows are deleted one by one at most once a day: parts are rewritten */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t inserted;
    bool inserting;                       /* one thread at a time inserts */
    bool grouped;                         /* the last group had several uploads */
    uint64_t group_ns;                    /* when it began */
    struct store_adding *waiting, **last; /* uploads that are to be inserted, oldest first */
    /* The day on which each dictionary row was last inserted, by its hash. */
    struct map known[5];
};

enum clickhouse_table {
    CH_TYPE,
    CH_REQUEST,
    CH_FRAME,
    CH_STACK,
    CH_SERIES,
    CH_BLOCK_10S, /* a row for each upload */
    CH_BLOCK_NEW, /* the same, in steps of 5 min, until it is merged into the tables that follow */
    CH_BLOCK_5M,
    CH_BLOCK_1H,
    CH_PROGRAM_5M, /* all series of a service, version and labels together */
    CH_PROGRAM_1H,
    CH_LATENCY, /* three, by resolution */
    CH_FINDING = CH_LATENCY + STORE_RESOLUTIONS,
    CH_UPLOAD,
    CH_GONE,
    CH_TABLES
};

struct clickhouse_key {
    enum clickhouse_table table;
    uint64_t hash;
};

/* An upload whose rows are ready to be inserted. */
struct store_adding {
    struct store_adding *next;
    struct fleet_hash upload;
    uint32_t now_s, day;
    struct buf rows[CH_TABLES];
    VEC(struct clickhouse_key) keys; /* of the rows that no later upload needs to insert */
    bool stored;                     /* the store has the upload already */
    bool tried; /* the store did not have it, and this process has inserted it */
    bool alone; /* inserting it together with others failed */
    bool done;  /* with the result in error and why */
    int error;
    struct buf why;
};

/*
 * Returns the name of a table for reading and inserting: that of the whole cluster if the store has
 * one.
 */
const char *clickhouse_table(const struct clickhouse_store *s, enum clickhouse_table table);

/*
 * Runs a statement on the first server that can be reached. data: what an INSERT takes, or NULL;
 * ret: what a SELECT answers, or NULL. Returns 0, or a negative errno with the reason in why:
 * -EBUSY when it may succeed later (a server or a shard is down), -ENOSPC, -E2BIG for an answer
 * larger than ret's limit, -EIO.
 */
int clickhouse_run(struct clickhouse_store *s, const char *sql, const struct buf *data,
                   struct buf *ret, struct buf *why) must_check;

/* The functions add_begin and tidy of struct store_ops. */
int clickhouse_add_begin(struct store *s, const struct fleet_origin *origin,
                         const struct fleet_hash *upload, const struct batch *b,
                         struct store_adding **ret, bool *ret_new, struct buf *why);
int clickhouse_tidy(struct store *s, const struct store_keep *keep, int64_t now_s, struct buf *why);
/* Merges new blocks on all servers, even if one fails. Returns 0 or the first error. */
int clickhouse_merge(struct store *s, struct buf *why);

/* Returns the name of the table on one server. */
const char *clickhouse_local_table(enum clickhouse_table table);
/*
 * Runs a statement like clickhouse_run on one server, whose URL is `host`, with that server's
 * tables.
 */
int clickhouse_run_on(struct clickhouse_store *s, const char *host, const char *sql,
                      const struct buf *data, struct buf *ret, struct buf *why) must_check;

/* How many entries a series has in an hour. */
struct clickhouse_share {
    int64_t hour_s;
    uint64_t series, entries;
};

typedef int clickhouse_part(void *context, const struct clickhouse_share *list, size_t n,
                            struct buf *why);

/*
 * Divides the rows of a server into parts, of one hour at most, that fit into memory. `select`
 * lists hours since 1970, series and their entries, in the order of hours. A part for which the
 * visit returns -E2BIG is divided further; one that cannot be divided is skipped. Returns 0, the
 * error of the statement, or the first other result of the visit that is not 0.
 */
int clickhouse_each_part(struct clickhouse_store *s, const char *host, const char *select,
                         clickhouse_part *visit, void *context, struct buf *why) must_check;
/*
 * Appends the condition that chooses the rows of a part: " WHERE start >= ... AND start < ... AND
 * series IN (...)".
 */
void clickhouse_put_part(struct buf *sql, const struct clickhouse_share *list, size_t n);
/* Merges new blocks on a server. Returns 0, or a negative errno with the reason in why. */
int clickhouse_merge_on(struct clickhouse_store *s, const char *host, struct buf *why) must_check;
/*
 * Copies a server's samples of versions 1 and 2 into the tables of version 3. Returns 0, or a
 * negative errno with the reason in why.
 */
int clickhouse_upgrade_samples(struct clickhouse_store *s, const char *host,
                               struct buf *why) must_check;

/* ---- inserting, in clickhouse_insert.c */

/*
 * Inserts rows into a table, of one server when host is not NULL. Returns 0, an error of `rows`, or
 * an error of clickhouse_run with the reason in why.
 */
int clickhouse_insert(struct clickhouse_store *s, const char *host, enum clickhouse_table table,
                      const struct buf *rows, struct buf *why) must_check;
/* Records that the rows of an upload's keys have been inserted, and clears its keys. */
void clickhouse_remember(struct clickhouse_store *s, struct store_adding *a);
/*
 * Sets `stored` of each upload of a list: whether the store has it. Returns 0 or an error of
 * clickhouse_run.
 */
int clickhouse_find_uploads(struct clickhouse_store *s, struct store_adding *list,
                            struct buf *why) must_check;
/*
 * clickhouse_begin_inserting waits until no other thread inserts; none does until
 * clickhouse_end_inserting.
 */
void clickhouse_begin_inserting(struct clickhouse_store *s);
void clickhouse_end_inserting(struct clickhouse_store *s);
/* Queues an upload, which any thread that inserts may take. */
void clickhouse_enqueue(struct clickhouse_store *s, struct store_adding *a);
/*
 * Is the function add_end of struct store_ops: waits until upload `a` is inserted, or inserts it
 * together with others that are queued, and frees it in any case.
 */
int clickhouse_add_end(struct store *s, struct store_adding *a, bool *ret_new, struct buf *why);
void clickhouse_adding_free(struct store_adding *a);

/*
 * Runs a statement on each server, with that server's tables, until one fails. Returns 0 or a
 * negative errno with the reason in why, as clickhouse_run does.
 */
int clickhouse_run_everywhere(struct clickhouse_store *s, const char *sql,
                              struct buf *why) must_check;
/*
 * Runs `select` on each server and drops the partitions of `table` that it lists on that server.
 * Returns -EBUSY when a server cannot be reached, or another negative errno with the reason in why.
 */
int clickhouse_drop_partitions(struct clickhouse_store *s, const char *select, const char *table,
                               struct buf *why) must_check;

/* The functions of struct store_ops for reading. */
int clickhouse_read_begin(struct store *s, const struct fleet_choice *choice,
                          struct store_read **ret, struct buf *why);
int clickhouse_read_series(struct store_read *r, int (*visit)(void *, const struct store_series *),
                           void *context);
int clickhouse_read_blocks(struct store_read *r, bool entries,
                           int (*visit)(void *, const struct store_block *), void *context);
int clickhouse_read_ends(struct store_read *r, int (*visit)(void *, const struct store_block *),
                         void *context);
int clickhouse_read_latencies(struct store_read *r,
                              int (*visit)(void *, const struct store_latency *), void *context);
int clickhouse_read_findings(struct store_read *r,
                             int (*visit)(void *, const struct store_finding *), void *context);
int clickhouse_read_stack(struct store_read *r, uint64_t stack, struct store_stack *ret);
int clickhouse_read_frame(struct store_read *r, uint32_t frame, struct store_frame *ret);
const char *clickhouse_read_request(struct store_read *r, uint64_t request);
void clickhouse_read_end(struct store_read *r);

/* ---- RowBinary */

/*
 * Returns the number that all series of a tenant, service, version and set of labels share,
 * whatever their hosts and instances are.
 */
uint64_t clickhouse_program(const struct fleet_origin *o);
/*
 * Appends the columns samples, weight, entries and data of settled entries whose stacks and
 * requests are hashes.
 */
void clickhouse_row_block(struct buf *rows, const struct fleet_entries *e);

/* The samples of one type that an upload has in one bucket of time. */
struct clickhouse_bucket {
    struct str type, unit;
    uint64_t series, program;
    int64_t start_s;
    uint64_t upload;
    const struct fleet_hash *traces; /* of the entries, by number - 1; NULL: they have none */
};

/*
 * Appends a row of CH_BLOCK_10S or CH_BLOCK_NEW, and settles the entries, whose stacks and requests
 * are hashes.
 */
void clickhouse_row_bucket(struct buf *rows, enum clickhouse_table table,
                           const struct clickhouse_bucket *b, struct fleet_entries *e);

/* Reads a text from a row. */
static inline struct str clickhouse_take_text(struct cursor *c)
{
    uint64_t len = cursor_varint(c);
    const uint8_t *at = len <= cursor_left(c) ? cursor_take(c, len) : NULL;
    if (!at)
        c->failed = true;
    return (struct str){at ? (const char *)at : "", at ? len : 0};
}

static inline void clickhouse_row_u32(struct buf *b, uint32_t v)
{
    v = htole32(v);
    buf_bytes(b, &v, sizeof(v));
}

static inline void clickhouse_row_u64(struct buf *b, uint64_t v)
{
    v = htole64(v);
    buf_bytes(b, &v, sizeof(v));
}

static inline void clickhouse_row_text(struct buf *b, const char *text, size_t len)
{
    buf_varint(b, len);
    buf_bytes(b, text, len);
}
