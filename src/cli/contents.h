/* SPDX-License-Identifier: Apache-2.0 */
/* Determines whether an output contains what was requested, and which command shows it. */
#pragma once

#include <stdbool.h>

/* Why a part of a recording, by time, threads or classes, may hold nothing of what was recorded. */
#define CONTENTS_OF_A_PART "this is a part of a recording, so look at the whole of it"

/* What an output does not hold, such as "holds no samples", and why, or NULL. */
struct contents_nothing {
    const char *what, *why;
};

/*
 * Complains, under the name `shown`, about each capture that recorded nothing and each pattern that
 * matched nothing. path: a recording of our agent; other files are ignored. Returns 1 when nothing
 * that some option with patterns names is in the program, else 0.
 */
int contents_report(const char *path, const char *shown);
/* Complains about each pattern of a recording that matched nothing, as a reason for what it lacks.
 */
void contents_report_patterns(const char *path);
/*
 * Returns the command that shows what a recording or an HPROF file holds, or NULL when it holds
 * nothing worth showing. words: the options that were given to the agent, or NULL; the command for
 * the first option is tried first.
 */
const char *contents_shown_by(const char *path, const char *words);
/*
 * Returns whether HPROF's output has none of the tables that an agent writes when its recording
 * ends. It writes them even if they have no rows, so without them what was recorded is not in the
 * file.
 */
bool contents_lacks_tables(const char *path);
/*
 * Complains that a recording holds none of what the agent's options ({"trace", ..., NULL}) record.
 * Explains why if the recording was made with one of these options; otherwise complains with `what`
 * and `why`. Returns 1.
 */
int contents_complain(const char *path, const char *const *options, const char *what,
                      const char *why);
/* Returns whether a recording of our agent was made with an option (enum option). */
bool contents_requested(const char *path, int option);
