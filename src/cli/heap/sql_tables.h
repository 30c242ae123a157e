/* SPDX-License-Identifier: Apache-2.0 */
/* Between sql.c, which speaks with SQLite, and sql_tables.c, which knows the tables. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "cli/heap/sql.h"
#include "heap/incoming.h"

/* The fields of a class's instances, its own first. */
struct sql_fields {
    struct heap_field *list;
    unsigned n;
    bool known;
};

struct heap_sql {
    sqlite3 *db;
    const struct heap *h;
    struct sql_fields *fields;      /* by class number, filled when asked for */
    struct heap_incoming *incoming; /* made when somebody asks who refers to an object */
    uint64_t deadline;              /* of the statement, by now_ns; 0: none */
};

struct sql_cursor;

/* How rows are found: all, or by one column that equals a value. */
enum sql_way { SQL_ALL, SQL_BY_KEY, SQL_BY_DOMINATOR, SQL_BY_CLASS, SQL_BY_TARGET };

struct sql_table {
    const char *name, *columns; /* as in CREATE TABLE */
    int key;                    /* the column that leads straight to rows */
    bool key_needed;            /* there is no other way */
    int dominator, class;       /* columns that do so too; -1 */
    int target;                 /* the column whose object others refer to; -1 */
    double rows_of_key;
    /* Goes to the first row. */
    void (*start)(struct sql_cursor *c);
    /* Goes to the next row, or sets c->end. */
    void (*next)(struct sql_cursor *c);
    void (*column)(struct sql_cursor *c, sqlite3_context *to, int column);
};

struct sql_vtab {
    sqlite3_vtab base;
    struct heap_sql *sql;
    const struct sql_table *table;
    int32_t class;  /* of a class's own table */
    uint8_t *wants; /* by class number: instances that it shows; NULL for other tables */
};

struct sql_cursor {
    sqlite3_vtab_cursor base;
    struct heap_sql *sql;
    const struct sql_vtab *vtab;
    enum sql_way way;
    bool end, one;    /* one: of a single object */
    uint64_t key, at; /* key: the object asked for; at: the object of this row */
    uint64_t child, children_end;
    unsigned field;      /* of `at` */
    struct heap_field f; /* of this row */
    struct hprof_item item;
    struct heap_refs refs;
    uint64_t id, row;
    uint8_t *wants; /* by class number, of SQL_BY_CLASS */
    VEC(uint64_t) stack;
    /* of SQL_BY_TARGET: those that are still to come are from `source` on */
    struct heap_sources sources;
    size_t source;
};

extern const struct sql_table sql_tables[]; /* ends with a row without a name */
extern const struct sql_table sql_class_table;

const struct sql_fields *sql_fields_of(struct heap_sql *s, int32_t class);
