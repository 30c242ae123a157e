/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a recording for those who read a hundred million of them: fields are asked for by name once, and each event
 * comes with them as numbers in fixed places. Constants come as ids (rec_thread_of and so on look them up).
 */
#pragma once

#include "jfr/reader.h"

struct rec_rows;

enum { REC_WISHES = 32, REC_ROW_VALUES = 8 };

struct rec_wish {
    const char *name;
    bool constant; /* an id, else a whole number */
};

/* Where a type's events have what was wished for. */
enum { REC_ABSENT = -1, REC_BY_NAME = -2 /* it is there, in a form that is not read ahead */ };

struct rec_plan {
    const struct rec_type *type;
    const struct rec_field *field[REC_WISHES];
    int8_t slot[REC_WISHES]; /* of values */
};

struct rec_row {
    const struct rec_plan *plan;
    const uint8_t *at, *body;
    uint32_t size;
    bool damaged; /* values mean nothing: ask by name */
    int64_t start_ns, duration_ns;
    int64_t values[REC_ROW_VALUES];
};

/* Of the selected events of a recording from its beginning; wishes must stay where they are. One at a time, and no other
 * iteration beside it. 0 or -ENOMEM. */
int recording_rows_open(struct rec_rows **ret, struct recording *r, const struct rec_wish *wishes, size_t n) must_check;

/*
 * The same of recordings that are read twice: the first time only rows of the types for whose tags `what` answers REC_ROW are
 * told, and of those for which it answers REC_TIME the least start in each part of the file is noted.
 */
enum { REC_ROW = 1, REC_TIME = 2 };

int recording_rows_first(struct rec_rows **ret, struct recording *r, const struct rec_wish *wishes, size_t n,
                         unsigned (*what)(int tag)) must_check;

struct rec_part {
    uint64_t end;     /* offset in the file */
    int64_t start_ns; /* the least one of the part, INT64_MAX when it has none */
};

/* Of rows that were read to their end. */
const struct rec_part *recording_rows_parts(const struct rec_rows *rows, size_t *ret_n);

/* Of rows that were not asked for yet: of what was read the pages are let go, so that a large file takes no memory for long. */
void recording_rows_forget(struct rec_rows *rows);

/* The next rows, all of one chunk, in the file's order; they live until the next call. 1, 0 at the end, or -ENOMEM. */
int recording_rows_next(struct rec_rows *rows, const struct rec_row **ret, size_t *ret_n) must_check;
void recording_rows_close(struct rec_rows *rows);
DEFINE_CLEANUP(struct rec_rows *, recording_rows_close)

/* The row as recording_next would have told it, for fields by name. Strings got from the row before are gone. */
void rec_row_event(const struct rec_row *row, struct rec_event *ret);
