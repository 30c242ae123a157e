/* SPDX-License-Identifier: Apache-2.0 */
/* How moments and values are printed for people. */
#pragma once

#include "answers/moments.h"

enum { THREAD_COLUMNS = 16 };

/*
 * Prints an entry that is not a call as a line of the list. recording_start_ns: in ns since 1970.
 */
void moment_print(const struct rec_event *e, int64_t recording_start_ns);
/*
 * Prints a value that was recorded as JSON for people: objects without quotes, strings quoted and
 * escaped.
 */
void moment_print_value(struct str json);
/* Prints a string, quoted and escaped like the strings that moment_print_value prints. */
void moment_print_quoted(const char *s);
