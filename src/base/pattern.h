/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * True when text matches: a pattern with * (any run of characters) or ? (any one) must match the whole text, a pattern
 * without either matches any part of it. A NULL pattern matches everything. Linear in the product of the lengths at worst.
 */
bool pattern_match(const char *pattern, const char *text, size_t len);
