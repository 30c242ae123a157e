/* SPDX-License-Identifier: Apache-2.0 */
/* The names that options list. */
#pragma once

#include "options/options.h"

enum { WATCHES_MAX = 64 };

/* Replaces pkg.Class::method, as Java's method references are written, by pkg.Class.method. */
void option_dot_methods(char *text);

/* Returns whether a part of watch= is pkg.Class.field. */
bool option_is_field(const char *part, size_t len);

/*
 * The length of the method's name in a part of requests=, without the (..) that may follow it; 0
 * for "auto".
 */
size_t option_method_length(const char *part, size_t len);

/*
 * Checks the parts of watch= or requests=, which commas or colons separate. Returns 0, or -EINVAL
 * with a sentence in `message`; 0 for any other option.
 */
int option_names_check(enum option which, const char *list, struct buf *message) must_check;
