/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * A statement without what it holds: strings and numbers are '?', lists of them one '?', comments
 * are left out, white space is one blank; what is not printable ASCII is '?'. Cut to size - 1
 * characters, with "..." at the end. A string that does not end lasts to the statement's end.
 */
void sql_fold(const char *sql, char *ret, size_t size);
