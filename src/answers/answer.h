/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer: facts, sentences and tables, assembled once. The command prints it as text
 * (cli/answer.h) or JSON or writes it as an HTML page, and the page's server sends it as JSON.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* ANSWER_INTEGER is signed; the cells of an ANSWER_ANY column state their own kinds. */
enum answer_kind {
    ANSWER_TEXT,
    ANSWER_COUNT,
    ANSWER_BYTES,
    ANSWER_PERCENT,
    ANSWER_ID,
    ANSWER_REAL,
    ANSWER_BOOL,
    ANSWER_INTEGER,
    ANSWER_CHANGE, /* an integer that is shown with its sign */
    ANSWER_ANY
};

struct answer_column {
    const char *key;   /* name of the JSON member */
    const char *title; /* NULL: in JSON only */
    enum answer_kind kind;
    bool last; /* shown last in text and HTML, for names of any length */
};

struct answer_cell {
    enum answer_kind kind;
    bool null;
    uint64_t number;
    double real;
    const char *text; /* outlives the answer, which usually owns it */
};

/* A table, or a fact or sentence if it has no columns. */
struct answer_block {
    const char *key; /* NULL: a sentence that JSON lists under "notes" */
    const char *title;
    const struct answer_column *columns;
    size_t columns_n;
    /* chart: HTML draws the first rows; nested: the first COUNT column is an indentation in text */
    bool chart, nested;
    bool arrays; /* JSON has the columns' names once and rows as arrays */
    struct answer_cell fact;
    uint64_t left; /* rows that the table does not show */
    VEC(struct answer_cell) cells;
};

struct answer {
    struct arena arena;
    const char *title;
    VEC(struct answer_block) blocks;
    bool nothing;        /* there is nothing to show; only JSON has more than the notes */
    int error;           /* the first error, -ENOMEM */
    const char *refusal; /* why there is no answer: "where: what: why"; otherwise NULL */
};

void answer_release(struct answer *a);
/*
 * States why the question has no answer; each of the three parts may be NULL. The caller prints the
 * refusal. Returns 1, an exit status.
 */
int answer_refuse(struct answer *a, const char *where, const char *what, const char *why);
/* Adds a sentence. */
void answer_note(struct answer *a, const char *format, ...) printf_like(2, 3);
/* Adds a single value, shown as `title: value`. */
void answer_fact_text(struct answer *a, const char *key, const char *title, const char *text);
void answer_fact(struct answer *a, const char *key, const char *title, enum answer_kind kind,
                 uint64_t value);
void answer_fact_real(struct answer *a, const char *key, double value); /* in JSON only */
/* Adds a title above what follows; not in JSON. */
void answer_heading(struct answer *a, const char *title);
/*
 * Begins a table of n columns, which must outlive the answer. The calls that follow add its cells,
 * row by row.
 */
void answer_table(struct answer *a, const char *key, const char *title,
                  const struct answer_column *columns, size_t n);
/*
 * States how many of its `rows` rows the last table leaves out if it shows `most` of them at most.
 */
void answer_left(struct answer *a, uint64_t rows, uint64_t most);
void answer_text(struct answer *a,
                 const char *text); /* the text is copied; NULL is shown as null */
void answer_text_n(struct answer *a, const char *text, size_t len);
void answer_number(struct answer *a, uint64_t value);
void answer_real(struct answer *a, double value);
void answer_null(struct answer *a);
/* for an ANSWER_ANY column; the cell's text is not copied */
void answer_cell(struct answer *a, struct answer_cell cell);

/* Append the answer as JSON, and as HTML. Return 0 or -ENOMEM. */
int answer_json(const struct answer *a, struct buf *out) must_check;
int answer_html(const struct answer *a, struct buf *out) must_check;

/* ---- for what shows an answer ---- */

enum { ANSWER_MAX_COLUMNS = 32 };

/* Returns the cell in the form for people, in text[32] or in the cell's own text. */
const char *answer_cell_shown(const struct answer_cell *c, char text[32]);
/* Returns how many of the table's columns are shown, and which, in their order. */
size_t answer_columns_shown(const struct answer_block *b, size_t ret[ANSWER_MAX_COLUMNS]);
/* Returns whether a column's title is aligned to the left. */
bool answer_column_is_left(const struct answer_column *c);
/* Returns whether the cell is aligned to the left; in a column of any kind numbers are not. */
bool answer_is_left(const struct answer_column *column, const struct answer_cell *cell);
/* Returns whether a block is only the title of those that follow. */
bool answer_is_heading(const struct answer_block *b);
/* Returns whether text and HTML leave a block out: all but notes if there is nothing to show. */
bool answer_block_is_idle(const struct answer *a, const struct answer_block *b);
