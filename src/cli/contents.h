/* SPDX-License-Identifier: Apache-2.0 */
/* Determines whether an output contains what was requested, and which command shows it. */
#pragma once

#include <stdbool.h>

/* The message about a recording that should contain requests and contains none. */
#define CONTENTS_NO_REQUESTS                                                 \
    "holds no requests: no server that is known received one in this time; " \
    "--requests='pkg.Class.method(..)' names others"

/*
 * Complains, under the name `shown`, about each capture that recorded nothing and each pattern that
 * matched no method. path: a recording of our agent; other files are ignored. Returns 1 when a
 * capture could record nothing, because something that its option names is not there, else 0.
 */
int contents_report(const char *path, const char *shown);
/*
 * Returns the command that shows what a recording or an HPROF file holds, or NULL when it holds
 * nothing worth showing. words: the options that were given to the agent, or NULL; the first of
 * them is tried first.
 */
const char *contents_shown_by(const char *path, const char *words);
/*
 * Returns why a recording that was made with an option ("trace") holds none of what that records;
 * NULL: it was not made with it.
 */
const char *contents_why_nothing(const char *path, const char *option);
/* Returns whether a recording of our agent was made with an option (enum option). */
bool contents_requested(const char *path, int option);
