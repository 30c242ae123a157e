/* SPDX-License-Identifier: Apache-2.0 */
/* What an output may take the place of. */
#pragma once

#include <stdbool.h>

#define REPLACED_RING ".ring"
/* What follows the name of an output that has taken the place of another file. */
#define REPLACED_WORDS " in place of an older file"

/*
 * Returns whether an output may be written: it does not exist, is empty or no regular file, or
 * holds what its name promises. A recording, a ring, a heap dump or other data that cannot be made
 * again is never replaced by something of another kind. Complains otherwise. as: a name that ends
 * in the extension of what is to be written, if the output's own does not say that, or NULL;
 * REPLACED_RING for a ring.
 */
bool replaced_check(const char *output, const char *as);

/*
 * Returns whether binary HPROF output without a heap dump may be written: what is there is no heap
 * dump, which the format does not tell. Complains otherwise.
 */
bool replaced_check_dump(const char *output);

/* Returns whether a path is a file that is not empty. */
bool replaced_holds_something(const char *path);
/*
 * Remembers, for the functions below, whether a file that is not empty is about to be replaced. One
 * output is remembered at a time.
 */
void replaced_note(const char *output);
/* Returns REPLACED_WORDS if the output that was remembered replaces a file, otherwise "". */
const char *replaced_words(const char *output);
/* Prints that the output was written, for a command that is silent unless it replaced a file. */
void replaced_announce(const char *output);
