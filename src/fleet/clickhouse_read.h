/* SPDX-License-Identifier: Apache-2.0 */
/* A question to a store in ClickHouse: what clickhouse_read.c and clickhouse_blocks.c share. */
#pragma once

#include "fleet/clickhouse.h"

enum { ANSWER_MAX = 1 << 28, STATEMENT_MAX = 1 << 27 };

struct fetched_stack {
    uint64_t hash;
    uint64_t first;
    uint32_t depth;
    bool known;
};

struct store_read {
    struct clickhouse_store *s;
    const struct fleet_choice *choice;
    struct buf *why;
    struct arena arena; /* texts of series */
    VEC(struct store_series) series;
    struct map series_of; /* by hash: the number in series; only those that are chosen */
    bool all_series;      /* none was left out */
    struct store_span spans[STORE_SPANS];
    int n_spans;
    struct strpool request_names;
    struct map request_name_of;
    /* Stacks that were visited, and which of them have been fetched. */
    VEC(struct fetched_stack) stacks;
    struct map stack_of;
    size_t n_fetched;
    VEC(struct store_frame) frames;
    struct map frame_of;
    VEC(uint32_t) path;
    struct strpool texts;
};

/*
 * Runs a SELECT and visits each row of its answer. The visit reads the row with the cursor. The
 * reading ends when the visit returns a value other than 0, which is then returned. Returns 0,
 * -EBADMSG for a damaged answer, or an error of clickhouse_run.
 */
int clickhouse_each_row(struct store_read *r, struct buf *sql,
                        int (*visit)(void *context, struct cursor *row), void *context) must_check;
/* Returns true when no series, or no name of a request, matches the choice. */
bool clickhouse_choice_is_empty(const struct store_read *r);
/* Appends " AND series IN (...)" unless all series are chosen. */
void clickhouse_put_series(struct store_read *r, struct buf *sql);
/* Appends a span as a condition in SQL: " start >= ... AND start < ...". */
void clickhouse_put_span(struct buf *sql, const struct store_span *span);
