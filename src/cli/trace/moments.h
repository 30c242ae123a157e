/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has a moment and no duration in the list of `jvmscope trace`: logpoints, accesses of watched
 * fields, exceptions ...
 */
#pragma once

#include "base/json.h"
#include "jfr/reader.h"

#include <stdbool.h>

/* The tags of what is shown. */
enum { SHOWN_CALL = 1, SHOWN_LOG, SHOWN_ACCESS, SHOWN_THROWN, SHOWN_VM };

/*
 * Whether text is there and of one of the patterns, which commas separate; without a pattern
 * always.
 */
bool text_matches(const char *pattern, const char *text);
bool moment_wanted(const struct rec_event *e, const char *thread_pattern);
void moment_print(const struct rec_event *e, int64_t recording_start_ns);
void moment_json(struct json *j, const struct rec_event *e);
/*
 * A value that was recorded as JSON, as people read it: objects without quotes, strings with theirs
 * and escaped.
 */
void print_value(struct str json);
