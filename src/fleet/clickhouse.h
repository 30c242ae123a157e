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
    pthread_mutex_t writing;
    int64_t tidied_day; /* rows are deleted one by one at most once a day: parts are rewritten */
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

/* The name of a table to read from and to insert into: of the whole cluster when there is one. */
const char *clickhouse_table(const struct clickhouse_store *s, enum clickhouse_table table);

/*
 * Runs a statement on the first server that can be reached. data: what an INSERT takes, or NULL;
 * ret: what a SELECT answers, or NULL. Returns 0, or with the reason in why: -EBUSY when it may
 * succeed later (a server or a shard is down), -ENOSPC, -EIO.
 */
int clickhouse_run(struct clickhouse_store *s, const char *sql, const struct buf *data,
                   struct buf *ret, struct buf *why) must_check;

int clickhouse_add(struct store *s, const struct fleet_origin *origin,
                   const struct fleet_hash *upload, const struct batch *b, bool *ret_new,
                   struct buf *why);
int clickhouse_tidy(struct store *s, const struct store_keep *keep, int64_t now_s, struct buf *why);
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
