/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fast way to read a hundred million events. The caller names the fields once, and each event
 * then has them as numbers at fixed positions. Constants are returned as ids, which rec_thread_of
 * and similar functions look up.
 */
#pragma once

#include "jfr/reader.h"

struct rec_rows;

enum { REC_COLUMNS = 32, REC_ROW_VALUES = 8 };

struct rec_column {
    const char *name;
    bool constant; /* the field holds an id, else an integer */
};

/*
 * Values of `slot` for a field without a position: the type has no such field, or has it in a form
 * that must be read by name.
 */
enum { REC_ABSENT = -1, REC_BY_NAME = -2 };

struct rec_plan {
    const struct rec_type *type;
    struct rec_chunk *chunk; /* of the type */
    const struct rec_column *columns;
    const struct rec_field *field[REC_COLUMNS];
    int8_t slot[REC_COLUMNS]; /* the position in `values` */
    unsigned thread;          /* of samples: the column that holds it */
};

struct rec_row {
    const struct rec_plan *plan;
    const uint8_t *at, *body;
    uint32_t size;
    bool damaged; /* the values are not valid; read the fields by name */
    int64_t start_ns, duration_ns;
    int64_t values[REC_ROW_VALUES];
};

/*
 * Reads the selected events of a recording from its beginning. The array of columns must stay
 * valid. A recording can have only one iteration at a time, of this or another kind. Returns 0 or
 * -ENOMEM.
 */
int rec_rows_open(struct rec_rows **ret, struct recording *r, const struct rec_column *columns,
                  size_t n) must_check;

/*
 * Like rec_rows_open, for the first pass over a recording that is read twice. It returns only
 * rows of the types for whose tags `what` returns REC_ROW. For types with REC_TIME it determines
 * the earliest start in each part of the file.
 */
enum { REC_ROW = 1, REC_TIME = 2 };

int rec_rows_first(struct rec_rows **ret, struct recording *r, const struct rec_column *columns,
                   size_t n, unsigned (*what)(int tag)) must_check;

/*
 * Reads events with a tag as samples, which consist of a stack, a thread and a weight and take a
 * fraction of the time of a row. Events from which these cannot be read in this way are returned as
 * rows.
 */
struct rec_sampling {
    int tag;
    unsigned stack, thread, or_thread; /* columns; or_thread: for types without `thread` */
    unsigned weight;                   /* a column, REC_DURATION, or REC_NO_WEIGHT */
    uint64_t otherwise;                /* the weight of events without one */
};

enum { REC_DURATION = REC_COLUMNS, REC_NO_WEIGHT };

struct rec_sample {
    const struct rec_plan *plan;
    int64_t start_ns;
    uint64_t weight;
    uint32_t stack, thread; /* ids, of the fields given by rec_sampling and plan->thread */
};

/*
 * Makes the iteration return samples for the events of this table, which must stay valid. Call it
 * before the first row is read. Returns 0 or -ENOMEM; the rows must then be closed.
 */
int rec_rows_sample(struct rec_rows *rows, const struct rec_sampling *samplings,
                    size_t n) must_check;
/* Returns the samples that were read with the last rows; they are valid as long as these. */
const struct rec_sample *rec_rows_samples(const struct rec_rows *rows, size_t *ret_n);
/*
 * Returns a sample's weight in nanoseconds if the column has the weight, which is a time; if the
 * event has no such field, `otherwise`.
 */
uint64_t rec_sample_ns(const struct rec_sample *s, unsigned column, uint64_t otherwise);
/*
 * Makes an object for looking up the ids of a sample, as by rec_stack_of. The object has no fields.
 */
void rec_sample_object(const struct rec_sample *s, struct rec_object *ret);

/* Returns how far rows have been read, as an offset in the file. */
uint64_t rec_rows_offset(const struct rec_rows *rows);

struct rec_part {
    uint64_t end;     /* offset in the file */
    int64_t start_ns; /* the earliest start in the part; INT64_MAX when it has none */
};

/* Returns the parts of a file that rec_rows_first has read, after all rows were read. */
const struct rec_part *rec_rows_parts(const struct rec_rows *rows, size_t *ret_n);

/*
 * Makes the iteration release the pages of the file after they were read, so that a large file does
 * not fill the memory. Call it before the first row is read, and only where the bytes are a
 * private, read-only mapping of a file: pages that are read again come from the file.
 */
void rec_rows_forget(struct rec_rows *rows);

/*
 * Stores the next rows, all from one chunk, in the file's order; they are valid until the next
 * call. Returns 1, 0 at the end, or -ENOMEM. Where events are read as samples, a part of the file
 * may have no rows; *ret_n is 0 then.
 */
int rec_rows_next(struct rec_rows *rows, const struct rec_row **ret, size_t *ret_n) must_check;
/*
 * Visits each type that occurred among the events read so far, selected or not, once, until `visit`
 * returns a value other than 0. Returns that value.
 */
int rec_rows_each_type(const struct rec_rows *rows, int (*visit)(void *context, const char *type),
                       void *context) must_check;
void rec_rows_close(struct rec_rows *rows);
DEFINE_CLEANUP(struct rec_rows *, rec_rows_close)

/*
 * Describes the row as recording_next would have returned it, for reading fields by name. Strings
 * read from the previous row become invalid.
 */
void rec_row_event(const struct rec_row *row, struct rec_event *ret);

/*
 * Returns the value of a column, as rec_long does (rec_row_ns: as rec_ns): `otherwise` when the
 * event has no such field.
 */
int64_t rec_row_long(const struct rec_row *row, unsigned column, int64_t otherwise);
int64_t rec_row_ns(const struct rec_row *row, unsigned column, int64_t otherwise);

/*
 * Stores the id that a constant's field holds, for rec_stack_of and similar functions. Returns
 * false when the row does not have it; the field, if it exists, must be read by name.
 */
static inline bool rec_row_id(const struct rec_row *row, unsigned column, uint64_t *ret)
{
    int slot = row->plan->slot[column];
    if (slot < 0 || row->damaged)
        return false;
    *ret = (uint64_t)row->values[slot];
    return true;
}
