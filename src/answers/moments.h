/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the list of `jvmscope trace` that have a time but no duration: logpoints, accesses of
 * watched fields, exceptions and the like.
 */
#pragma once

#include "base/json.h"
#include "jfr/reader.h"

#include <stdbool.h>

/* The tags of what is shown. */
enum { SHOWN_CALL = 1, SHOWN_LOG, SHOWN_ACCESS, SHOWN_THROWN, SHOWN_VM };

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
bool moment_wanted(const struct rec_event *e, const char *thread_pattern);
void moment_json(const struct rec_event *e, struct json *j);
