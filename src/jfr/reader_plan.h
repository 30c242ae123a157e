/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a type: its fields as steps that read or skip them, made once for each chunk and
 * passed on to later ones with the same metadata.
 */
#pragma once

#include "jfr/reader_internal.h"
#include "jfr/reader_rows.h"

struct op;

/* What an iteration over rows requests. */
struct wanted {
    uint64_t number; /* of the iteration */
    const struct rec_column *columns;
    size_t n_columns;
    unsigned (*what)(int tag); /* NULL: return all rows and record no times */
    const struct rec_sampling *samplings;
    size_t n_samplings;
};

struct plan {
    struct rec_plan pub; /* must be the first member */
    bool by_name;        /* fields are read by name, because the type does not begin as events do */
    unsigned what;       /* REC_ROW, REC_TIME */
    /* its events are samples with their stacks, threads and weights at these positions */
    const struct rec_sampling *sampling; /* NULL: they are rows */
    uint8_t stack, thread;
    int8_t weight; /* REC_ABSENT: none */
    uint32_t n_ops;
    struct op *ops;
};

/* Makes the plans of all selected types of the chunk. Returns 0 or -ENOMEM. */
int plan_chunk(const struct wanted *w, struct rec_chunk *k) must_check;
/*
 * Reads the fields of an event whose place the row already has. Returns false when the plan cannot
 * read the row; plan_by_name then sets the event's times and marks the row as damaged, so that its
 * fields are read by name.
 */
bool plan_read_row(const struct plan *p, const uint8_t *limit, struct rec_row *row);
void plan_by_name(const struct plan *p, struct rec_row *row);
/*
 * Reads a sample from the body of an event. Returns false when the event must be returned as a row.
 */
bool plan_read_sample(const struct plan *p, const uint8_t *body, const uint8_t *end,
                      const uint8_t *limit, struct rec_sample *ret);
/* Converts a time of the chunk's clock to nanoseconds since 1970. */
int64_t plan_start_ns(const struct rec_chunk *k, int64_t ticks);
/*
 * Returns when an event begins, by its chunk's clock, or INT64_MIN (any time) if its type stores
 * the start in another way.
 */
int64_t plan_start_ticks(const struct plan *p, const uint8_t *body, const uint8_t *limit);
