/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows JSON as a person reads it: members as lines, arrays of objects as tables,
 * {"id","class","value"} as Class@id "value".
 */
#pragma once

#include <stdio.h>

/* Prints a JSON text. 0, or -EINVAL when it is none. */
int json_view(FILE *to, const char *text);
enum { JSON_VIEW_KEYS = 4 };
/*
 * Calls see() with the members `keys`, which NULL ends, of each element of the array `array` of an
 * object; NULL stands for a member that an element lacks. 0 or -EINVAL.
 */
int json_view_each(const char *text, const char *array, const char *const keys[],
                   void (*see)(void *context, const char *const values[]), void *context);
