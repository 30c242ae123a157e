/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows JSON for people: members as lines, arrays of objects as tables, {"id","class","value"} as
 * Class@id "value".
 */
#pragma once

#include <stdio.h>

/* Prints a JSON text. Returns 0, or -EINVAL when it is not valid JSON. */
int json_view(FILE *to, const char *text);

/*
 * Prints those of the named members that the object has, like json_view. NULL ends the names.
 * Returns 0 or -EINVAL.
 */
int json_view_members(FILE *to, const char *text, const char *const names[]);

enum { JSON_VIEW_KEYS = 4 };

/*
 * Calls see() for each element of the array `array` of an object, with its members `keys`, which
 * NULL ends; a missing member is NULL. Returns 0 or -EINVAL.
 */
int json_view_each(const char *text, const char *array, const char *const keys[],
                   void (*see)(void *context, const char *const values[]), void *context);
/* Returns a copy of the text that a member of the object holds, which the caller frees, or NULL. */
char *json_view_text(const char *text, const char *key);
