/* SPDX-License-Identifier: Apache-2.0 */
/* Options whose value is a list of names. */
#pragma once

#include "options/options.h"

enum { WATCHES_MAX = 64 };

/*
 * Normalizes a list in place: commas, semicolons and blanks between its parts become the separator,
 * and pkg.Class::method becomes pkg.Class.method. In the types in parentheses after a method,
 * blanks and type arguments are removed, and "..." becomes "[]" after a type and otherwise "..".
 * Empty parts are removed, and so are blanks around a part and before a parenthesis. A list of
 * nothing but separators keeps one of them.
 */
void option_list_normalize(char *list, char separator);

/* Returns what is wrong with a pattern of classes or methods, or NULL. */
const char *option_pattern_fault(const char *part, size_t len);

/* Returns whether a part of watch= is pkg.Class.field. */
bool option_is_field(const char *part, size_t len);

/* Returns whether a part of requests= is "auto", which names no method. */
bool option_is_auto(const char *part, size_t len);

/*
 * Checks the parts of a normalized list. Returns 0, or -EINVAL with a sentence in `message`; 0 for
 * an option whose parts may be anything.
 */
int option_names_check(enum option which, const char *list, struct buf *message) must_check;
