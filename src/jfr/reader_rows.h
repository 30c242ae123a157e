/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fast way to read a hundred million events. The caller names the fields once, and each event
 * then has them as numbers at fixed positions. Constants are returned as ids, which rec_thread_of
 * and its like look up.
 */
#pragma once

#include "jfr/reader.h"

struct rec_rows;

enum { REC_WISHES = 32, REC_ROW_VALUES = 8 };

struct rec_wish {
    const char *name;
    bool constant; /* the field holds an id, else an integer */
};

/* Values of `slot` for a field without a position. */
/* the type has it, in a form that cannot be read ahead */
enum { REC_ABSENT = -1, REC_BY_NAME = -2 };

struct rec_plan {
    const struct rec_type *type;
    struct rec_chunk *chunk; /* of the type */
    const struct rec_wish *wishes;
    const struct rec_field *field[REC_WISHES];
    int8_t slot[REC_WISHES]; /* the position in `values` */
};

struct rec_row {
    const struct rec_plan *plan;
    const uint8_t *at, *body;
    uint32_t size;
    bool damaged;    /* the values are not valid; read the fields by name */
    uint32_t events; /* how many events the row stands for: 1 unless it was folded */
    int64_t start_ns, duration_ns;
    int64_t values[REC_ROW_VALUES];
};

/*
 * Reads the selected events of a recording from its beginning. The array of wishes must stay valid.
 * A recording has one such iteration at a time and meanwhile no other. Returns 0 or -ENOMEM.
 */
int recording_rows_open(struct rec_rows **ret, struct recording *r, const struct rec_wish *wishes,
                        size_t n) must_check;

/*
 * Like recording_rows_open, for the first pass over a recording that is read twice. It returns only
 * rows of the types for whose tags `what` returns REC_ROW. For types with REC_TIME it determines
 * the earliest start in each part of the file.
 */
enum { REC_ROW = 1, REC_TIME = 2 };

int recording_rows_first(struct rec_rows **ret, struct recording *r, const struct rec_wish *wishes,
                         size_t n, unsigned (*what)(int tag)) must_check;

/*
 * Folds events with a tag by the constant that a wish names, which makes counting them several
 * times as fast. A chunk's first event with each id of that wish, or of the wish `seen`, is a row
 * as usual. For the others one more row for each id of `by` comes at the end of the chunk: it is
 * like the first one, but for `events`, and for start_ns, the latest of any event that was folded.
 * Types that also have the field `without` are not folded. Called before the first row is read.
 */
struct rec_fold {
    int tag;
    unsigned by, seen, without;
};

void recording_rows_fold(struct rec_rows *rows, const struct rec_fold *fold);

/* How far rows have been read: an offset in the file. */
uint64_t recording_rows_offset(const struct rec_rows *rows);

struct rec_part {
    uint64_t end;     /* offset in the file */
    int64_t start_ns; /* the earliest start in the part; INT64_MAX when it has none */
};

/* Returns the parts, after all rows were read. */
const struct rec_part *recording_rows_parts(const struct rec_rows *rows, size_t *ret_n);

/*
 * Releases the pages of the file after they were read, so that a large file does not fill the
 * memory. Called before the first row is read, and only where the bytes are a private, read-only
 * mapping of a file: what is read there again comes from the file.
 */
void recording_rows_forget(struct rec_rows *rows);

/*
 * Returns the next rows, all from one chunk, in the file's order; they are valid until the next
 * call. Returns 1, 0 at the end, or -ENOMEM. Where events are folded there may be no rows in a part
 * of the file; *ret_n is 0 then.
 */
int recording_rows_next(struct rec_rows *rows, const struct rec_row **ret,
                        size_t *ret_n) must_check;
void recording_rows_close(struct rec_rows *rows);
DEFINE_CLEANUP(struct rec_rows *, recording_rows_close)

/*
 * Describes the row as recording_next would have returned it, for reading fields by name. Strings
 * read from the previous row become invalid.
 */
void rec_row_event(const struct rec_row *row, struct rec_event *ret);

/*
 * What was wished for of the row, as rec_long and rec_ns answer it: `otherwise` when the event has
 * no such field.
 */
int64_t rec_row_long(const struct rec_row *row, unsigned wish, int64_t otherwise);
int64_t rec_row_ns(const struct rec_row *row, unsigned wish, int64_t otherwise);

/*
 * The id that a constant's field holds, which rec_stack_of and so on look up. False: it was not
 * read ahead, and the field, if there is one, must be asked for by name.
 */
static inline bool rec_row_id(const struct rec_row *row, unsigned wish, uint64_t *ret)
{
    int slot = row->plan->slot[wish];
    if (slot < 0 || row->damaged)
        return false;
    *ret = (uint64_t)row->values[slot];
    return true;
}
