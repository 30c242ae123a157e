/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether text from outside is JSON (RFC 8259), without building anything from it. json-c
 * cannot be used for that: even in its strict mode it accepts NaN, control characters and
 * single quotes.
 */
#pragma once

#include <stddef.h>

/*
 * Returns the length of the JSON value that s begins with; space before or after the value is not
 * allowed. Returns 0 when s does not begin with a value or when the value is nested deeper than 64
 * levels.
 */
size_t json_value_len(const char *s, size_t len);
