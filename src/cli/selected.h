/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complaints about options that select nothing. An empty table would hide that a name was misspelt,
 * or that a time lies outside the recording.
 */
#pragma once

#include "base/strpool.h"
#include "base/vec.h"

/* One of the names that a pattern is compared with. */
typedef struct str selected_name(const void *context, size_t i);

/*
 * Checks that each alternative of a pattern matches one of n names, and prints the notes of
 * selected_note_parts. Returns 0, also for a pattern NULL, or the exit status after a complaint
 * `why` that lists all alternatives without a match.
 */
int selected_by_name(const char *path, const char *why, const char *pattern, selected_name *name,
                     const void *context, size_t n);

/*
 * Prints a note for each alternative of a pattern that is one of the n names and also a part of
 * others: it selects these others too. The note gives the pattern that selects the name alone.
 */
void selected_note_parts(const char *pattern, selected_name *name, const void *context, size_t n);

/*
 * The alternatives of a pattern, for a caller that passes names one after the other. The caller
 * that initialises it must release it. The pattern NULL has no alternatives.
 */
struct selected_names {
    char *copy;
    VEC(const char *) missing; /* the alternatives that no name has matched so far */
};

/* Returns 0 or -ENOMEM. The pattern must outlive *s. */
int selected_names_init(struct selected_names *s, const char *pattern) must_check;
/* Removes the alternatives that match a name of len bytes from those that are missing. */
void selected_names_see(struct selected_names *s, const char *name, size_t len);
/*
 * Returns 0, or the exit status after a complaint `why` that lists all alternatives without a
 * match.
 */
int selected_names_end(const struct selected_names *s, const char *path, const char *why);
void selected_names_release(struct selected_names *s);

/*
 * Checks a span of time in ns from the start of a recording. to: 0 means up to the end. end: the
 * end of the recording; 0 means that it is unknown. Returns 0, or the exit status after a
 * complaint.
 */
int selected_by_time(const char *path, uint64_t from, uint64_t to, uint64_t end);
