/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns whether text matches the pattern. A pattern that begins with = matches the text that
 * follows it and no other, so =worker-1 does not match worker-10. Otherwise one with * (any run
 * of characters) or ? (any one character) must match the whole text, and one without either matches
 * any part of it. Commas separate alternatives. Because a name may contain a comma, the whole
 * pattern is tried as a single one as well. NULL matches everything. At worst the time is linear in
 * the product of the lengths.
 */
bool pattern_match(const char *pattern, const char *text, size_t len);
/*
 * Returns whether text matches a pattern in which a comma is a character like any other. NULL
 * matches everything.
 */
bool pattern_match_one(const char *pattern, const char *text, size_t len);
/* Does the same for the first n bytes of a pattern. */
bool pattern_match_part(const char *pattern, size_t n, const char *text, size_t len);
