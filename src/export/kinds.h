/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of data in a recording, and which of them a format cannot contain. */
#pragma once

#include "base/buf.h"
#include "jfr/catalog.h"
#include "profile/profile.h"

struct export_format;

/*
 * Returns which of the kinds `of` a recording has; a file that is not a recording has none. profile
 * is the file's profile or NULL. If it knows the recording's types of events (types_known), the
 * file is not read.
 */
unsigned export_kinds_in(const char *path, const struct profile *profile, unsigned of);
/* Appends "traced calls, coverage": the names of these kinds. */
void export_kind_names(struct buf *to, unsigned of);

/*
 * Appends ".html, .otlp and .jfr hold": the formats that can contain a kind. Returns their number.
 */
unsigned export_put_holders(struct buf *to, enum event_data kind);
/*
 * Calls f with "the output lacks requests, which .html, .otlp and .jfr hold" for each kind of data
 * in a file that the format cannot contain. profile: the file's, or NULL.
 */
void export_each_left_out(const struct export_format *format, const char *path,
                          const struct profile *profile,
                          void (*f)(void *context, const char *sentence), void *context);
