/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap as tables of SQLite, which are read in place: objects, classes, fields, refs, strings,
 * retained, roots, and one for each class by its name. Nothing is copied; an address leads straight
 * to its row, a holder to what it retains.
 */
#pragma once

#include "heap/heap.h"

#include <sqlite3.h>

struct heap_sql;

/* The heap must outlive it. Statements of the user's may read, nothing else. 0 or -ENOMEM. */
int heap_sql_open(struct heap_sql **ret, const struct heap *h) must_check;
void heap_sql_close(struct heap_sql *s);
/*
 * Prepares the user's statement; on failure NULL, and the sentence to show in `why` (size bytes).
 */
sqlite3_stmt *heap_sql_prepare(struct heap_sql *s, const char *sql, char *why, size_t size);
/* What runs longer than that from now on fails. */
void heap_sql_limit(struct heap_sql *s, uint64_t ns);
/* Why a step failed. */
const char *heap_sql_error(const struct heap_sql *s);
