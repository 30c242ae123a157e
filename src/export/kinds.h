/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of data in a recording, and which of them a format cannot contain. */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"

enum export_kind {
    HOLDS_STACKS = 1, /* samples and sums by stack */
    HOLDS_CALLS = 2,  /* the counts of calls, which accompany exact times */
    HOLDS_WAITS = 4,
    HOLDS_REQUESTS = 8,
    HOLDS_TRACE = 16,
    HOLDS_EXCEPTIONS = 32,
    HOLDS_COVERAGE = 64,
    HOLDS_VM = 128,
    HOLDS_VM_TIME = 256, /* CPU time of threads that run no Java code, which have no samples */
    HOLDS_ALL = 511
};

struct export_format;

/* Returns the kind of data (a HOLDS_... bit) that events of this type are, or 0. */
unsigned export_kind_of(const char *type);
/*
 * Returns which of the kinds `of` a recording has; a file that is not a recording has none. profile
 * is the file's profile or NULL. If it knows the recording's types of events (types_known), the
 * file is not read.
 */
unsigned export_kinds_in(const char *path, const struct profile *profile, unsigned of);
/* Appends "traced calls and log records, coverage": the names of these kinds. */
void export_kind_names(struct buf *to, unsigned of);

/* Appends ".html, .otlp and .jfr hold": the formats that have a place for a kind. Returns how many.
 */
unsigned export_put_holders(struct buf *to, enum export_kind kind);
/*
 * Calls f with "the output lacks requests, which .html, .otlp and .jfr hold" for each kind of data
 * in a file that the format cannot contain. profile: the file's, or NULL.
 */
void export_each_left_out(const struct export_format *format, const char *path,
                          const struct profile *profile,
                          void (*f)(void *context, const char *sentence), void *context);
