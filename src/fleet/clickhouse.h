/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in ClickHouse, by its HTTP interface: what its parts share. doc/fleet.md describes the
 * tables. Only what version 18.16 and today's versions understand alike is used.
 *
 * ClickHouse has no transactions. Each row names its upload, and a row that is inserted again
 * replaces the first one; the upload's own row comes last. An upload that was stopped in the middle
 * is not known, is sent again and completes what is there.
 */
#pragma once

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
    /* What was inserted before, by its hash, with the day on which it was. */
    struct map known[5];
};

enum clickhouse_table {
    CH_TYPE,
    CH_REQUEST,
    CH_FRAME,
    CH_STACK,
    CH_SERIES,
    CH_SAMPLE,                                  /* three, by resolution */
    CH_LATENCY = CH_SAMPLE + STORE_RESOLUTIONS, /* three */
    CH_FINDING = CH_LATENCY + STORE_RESOLUTIONS,
    CH_UPLOAD,
    CH_GONE,
    CH_TABLES
};

struct clickhouse_key {
    enum clickhouse_table table;
    uint64_t hash;
};

/* An upload whose rows have been made. */
struct store_adding {
    struct store_adding *next;
    struct fleet_hash upload;
    uint32_t now_s, day;
    struct buf rows[CH_TABLES];
    VEC(struct clickhouse_key) keys; /* of the rows that no later upload needs to insert */
    bool there;                      /* the store has it */
    bool tried;                      /* it was not there, and so was inserted by this process */
    bool alone;                      /* inserting it together with others failed */
    bool done;                       /* with the result in error and why */
    int error;
    struct buf why;
};

/* The name of a table to read from and to insert into: of the whole cluster when there is one. */
const char *clickhouse_table(const struct clickhouse_store *s, enum clickhouse_table table);

/*
 * Runs a statement on the first server that can be reached. data: what an INSERT takes, or NULL;
 * ret: what a SELECT answers, or NULL. Returns 0, or with the reason in why: -EBUSY when it may
 * succeed later (a server or a shard is down), -ENOSPC, -EIO.
 */
int clickhouse_run(struct clickhouse_store *s, const char *sql, const struct buf *data,
                   struct buf *ret, struct buf *why) must_check;

int clickhouse_add_begin(struct store *s, const struct fleet_origin *origin,
                         const struct fleet_hash *upload, const struct batch *b,
                         struct store_adding **ret, bool *ret_new, struct buf *why);
int clickhouse_tidy(struct store *s, const struct store_keep *keep, int64_t now_s, struct buf *why);

/* ---- inserting, in clickhouse_insert.c */

/* Inserts rows into a table. */
int clickhouse_insert(struct clickhouse_store *s, enum clickhouse_table table,
                      const struct buf *rows, struct buf *why) must_check;
/* Notes that the rows of an upload's keys have been inserted, and forgets its keys. */
void clickhouse_remember(struct clickhouse_store *s, struct store_adding *a);
/* Sets `there` of each upload of a list. */
int clickhouse_find_uploads(struct clickhouse_store *s, struct store_adding *list,
                            struct buf *why) must_check;
/* Between these calls no other thread inserts. */
void clickhouse_begin_inserting(struct clickhouse_store *s);
void clickhouse_end_inserting(struct clickhouse_store *s);
/* Hands over an upload, which the next thread that inserts may take. */
void clickhouse_enqueue(struct clickhouse_store *s, struct store_adding *a);
/* Waits until it is inserted, or inserts it, and frees it. */
int clickhouse_add_end(struct store *s, struct store_adding *a, bool *ret_new, struct buf *why);
void clickhouse_adding_free(struct store_adding *a);

/* Runs a statement on each server, with the tables of that server. */
int clickhouse_run_everywhere(struct clickhouse_store *s, const char *sql,
                              struct buf *why) must_check;
/* Removes, on each server, the partitions of its table that the statement lists there. */
int clickhouse_drop_partitions(struct clickhouse_store *s, const char *select, const char *table,
                               struct buf *why) must_check;

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

static inline void row_u32(struct buf *b, uint32_t v)
{
    v = htole32(v);
    buf_bytes(b, &v, sizeof(v));
}

static inline void row_u64(struct buf *b, uint64_t v)
{
    v = htole64(v);
    buf_bytes(b, &v, sizeof(v));
}

static inline void row_text(struct buf *b, const char *text, size_t len)
{
    buf_varint(b, len);
    buf_bytes(b, text, len);
}
