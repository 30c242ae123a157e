/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the list of `jvmscope trace` that have a time but no duration: logpoints, accesses of
 * watched fields, exceptions and the like.
 */
#pragma once

#include "base/json.h"
#include "jfr/reader.h"

#include <stdbool.h>

/*
 * The tags of what is shown. A note is about what --log or --watch could not record; it has no
 * thread, and may be written before the recording begins.
 */
enum { SHOWN_CALL = 1, SHOWN_LOG, SHOWN_NOTE, SHOWN_ACCESS, SHOWN_THROWN, SHOWN_VM };

/*
 * Returns whether text is not NULL and matches one of the patterns, which are separated by commas.
 * Without a pattern everything matches.
 */
bool moment_text_matches(const char *pattern, const char *text);
/*
 * Returns the name of the thread of a call or another entry, or NULL if it has no thread. A thread
 * without a name is called by its number, "thread #24", "virtual #25"; as many of these as there
 * are threads are kept until the command ends.
 */
const char *moment_thread(const struct rec_object *o);
/*
 * Returns the place of an entry, "pkg.Class.method:12", or NULL if it has none. *ret_method is the
 * length without the line.
 */
const char *moment_place(const struct rec_object *o, size_t *ret_method);
/*
 * Returns whether the entry's thread matches thread_pattern, and its place, with or without the
 * line, method_pattern. NULL: everything matches.
 */
bool moment_wanted(const struct rec_event *e, const char *thread_pattern,
                   const char *method_pattern);
/* Writes an entry as an object. */
void moment_json(const struct rec_event *e, struct json *j);
