/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Writes a statement without the values in it: strings and numbers become '?', a list of them
 * becomes a single '?', comments are left out, and white space becomes one blank. A character that
 * is not printable ASCII becomes '?'. Cut to size - 1 characters, with "..." at the end. A string
 * that does not end lasts to the statement's end.
 */
void sql_fold(const char *sql, char *ret, size_t size);
