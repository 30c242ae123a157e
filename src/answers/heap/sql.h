/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap as SQLite tables that are read in place: objects, classes, fields, refs, strings,
 * retained, roots, and one for each class by its name. Nothing is copied. An address leads directly
 * to its row, and a holder to what it retains.
 */
#pragma once

#include "heap/heap.h"

#include <sqlite3.h>

struct heap_sql;

/*
 * Opens a database whose tables show the heap, which must outlive it. The user's statements may
 * only read. Returns 0 or -ENOMEM.
 */
int heap_sql_open(struct heap_sql **ret, const struct heap *h) must_check;
void heap_sql_close(struct heap_sql *s);
/*
 * Prepares the user's statement, which the caller finalizes. Returns NULL on failure, with a
 * sentence for the user in `why` (size bytes).
 */
sqlite3_stmt *heap_sql_prepare(struct heap_sql *s, const char *sql, char *why, size_t size);
/* Sets a time limit of ns from now on, after which statements fail. */
void heap_sql_limit(struct heap_sql *s, uint64_t ns);
/* Returns why a step failed. */
const char *heap_sql_error(const struct heap_sql *s);
