/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between sql.c, which talks to SQLite, and sql_tables.c, which knows the tables. */
#pragma once

#include "answers/heap/sql.h"
#include "base/buf.h"
#include "base/vec.h"
#include "heap/incoming.h"

/* The fields of a class's instances; those that the class declares come first. */
struct sql_fields {
    struct heap_field *list;
    unsigned n;
    bool known;
};

struct heap_sql {
    sqlite3 *db;
    const struct heap *h;
    struct sql_fields *fields; /* by class number, filled on demand */
    /* created when the first statement asks what refers to an object */
    struct heap_incoming *incoming;
    uint64_t deadline; /* of the statement, compared with now_ns; 0: none */
};

struct sql_cursor;

/* How rows are found: all of them, or those in which one column equals a value. */
enum sql_way { SQL_ALL, SQL_BY_KEY, SQL_BY_DOMINATOR, SQL_BY_CLASS, SQL_BY_TARGET };

struct sql_table {
    const char *name, *columns; /* columns: in the syntax of CREATE TABLE */
    int key;                    /* the column that leads directly to rows */
    bool key_needed;            /* rows can be found in no other way */
    int dominator, class;       /* other columns that lead directly to rows; -1: none */
    int target;                 /* the column with the object to which others refer; -1: none */
    double rows_of_key;
    /* Moves to the first row. */
    void (*start)(struct sql_cursor *c);
    /* Moves to the next row, or sets c->end. */
    void (*next)(struct sql_cursor *c);
    void (*column)(struct sql_cursor *c, sqlite3_context *to, int column);
};

struct sql_vtab {
    sqlite3_vtab base;
    struct heap_sql *sql;
    const struct sql_table *table;
    int32_t class;  /* for the table of a class */
    uint8_t *wants; /* by class number: whether its instances are shown; NULL for other tables */
};

struct sql_cursor {
    sqlite3_vtab_cursor base;
    struct heap_sql *sql;
    const struct sql_vtab *vtab;
    enum sql_way way;
    bool end, one;    /* one: rows of a single object only */
    uint64_t key, at; /* key: the requested object; at: the object of the current row */
    uint64_t child, children_end;
    unsigned field;      /* index of the field in `at` */
    struct heap_field f; /* of the current row */
    struct hprof_item item;
    struct heap_refs refs;
    uint64_t id, row;
    uint8_t *wants; /* for SQL_BY_CLASS, by class number */
    VEC(uint64_t) stack;
    /* for SQL_BY_TARGET: those from `source` on are still to come */
    struct heap_sources sources;
    size_t source;
};

extern const struct sql_table sql_tables[]; /* ends with a row that has no name */
extern const struct sql_table sql_class_table;

/*
 * Returns the fields of a class's instances, which s keeps. If memory runs out, fields are missing.
 */
const struct sql_fields *sql_fields_of(struct heap_sql *s, int32_t class);
