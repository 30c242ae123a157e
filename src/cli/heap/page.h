/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a heap verb: facts, sentences and tables, assembled once and shown as text, as JSON
 * or as an HTML page.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* PAGE_INTEGER is signed; the cells of a PAGE_ANY column state their own kinds. */
enum page_kind {
    PAGE_TEXT,
    PAGE_COUNT,
    PAGE_BYTES,
    PAGE_PERCENT,
    PAGE_ID,
    PAGE_REAL,
    PAGE_BOOL,
    PAGE_INTEGER,
    PAGE_CHANGE, /* an integer that is shown with its sign */
    PAGE_ANY
};

struct page_column {
    const char *key;   /* name of the JSON member */
    const char *title; /* NULL: in JSON only */
    enum page_kind kind;
    bool last; /* shown last in text and HTML, for names of any length */
};

struct page_cell {
    enum page_kind kind;
    bool null;
    uint64_t number;
    double real;
    const char *text; /* owned by the page */
};

/* A table, or a fact or sentence if it has no columns. */
struct page_block {
    const char *key; /* NULL: a sentence that JSON lists under "notes" */
    const char *title;
    const struct page_column *columns;
    size_t columns_n;
    /* chart: HTML draws the first rows; nested: the first COUNT column is an indentation in text */
    bool chart, nested;
    bool arrays; /* JSON has the columns' names once and rows as arrays */
    struct page_cell fact;
    uint64_t left; /* rows that the table does not show */
    VEC(struct page_cell) cells;
};

struct page {
    struct arena arena;
    const char *title;
    VEC(struct page_block) blocks;
    int error;           /* the first error, -ENOMEM */
    const char *refusal; /* why there is no answer: "where: what: why"; otherwise NULL */
};

void page_release(struct page *p);
/*
 * States why the question has no answer; each of the three parts may be NULL. The caller prints the
 * refusal. Returns 1, an exit status.
 */
int page_refuse(struct page *p, const char *where, const char *what, const char *why);
void page_note(struct page *p, const char *format, ...) printf_like(2, 3);
/* Adds a single value, shown as `title: value`. */
void page_fact_text(struct page *p, const char *key, const char *title, const char *text);
void page_fact(struct page *p, const char *key, const char *title, enum page_kind kind,
               uint64_t value);
void page_fact_real(struct page *p, const char *key, double value); /* in JSON only */
/* Adds a title above what follows; not in JSON. */
void page_heading(struct page *p, const char *title);
/*
 * Begins a table. columns must outlive the page. The calls that follow add its cells, row by row.
 */
void page_table(struct page *p, const char *key, const char *title,
                const struct page_column *columns, size_t n);
/* States how many of its rows the last table leaves out if it shows this number of them at most. */
void page_left(struct page *p, uint64_t rows, uint64_t most);
void page_text(struct page *p, const char *text); /* the text is copied; NULL is shown as null */
void page_text_n(struct page *p, const char *text, size_t len);
void page_number(struct page *p, uint64_t value);
void page_real(struct page *p, double value);
void page_null(struct page *p);
/* for a PAGE_ANY column; the cell's text is not copied */
void page_cell(struct page *p, struct page_cell cell);

/* Returns 0 or -ENOMEM. */
int page_json(const struct page *p, struct buf *out) must_check;
int page_html(const struct page *p, struct buf *out) must_check;
void page_print(const struct page *p, FILE *to);
