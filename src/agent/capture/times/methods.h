/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods that cpu=times counts, by the small numbers that instrumented code contains, and the
 * methods that it does not count. Callable from any thread.
 */
#pragma once

#include "base/strpool.h"

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the number of a method, the same for the same names, or a negative errno. */
int64_t times_method_add(struct str class_name, struct str name, struct str descriptor,
                         struct str source, uint32_t access) must_check;
/*
 * Returns an id for names_method, given a method number or one of the special values (TIMES_ROOT:
 * outside of all calls; TIMES_BEYOND). NULL: no memory.
 */
jmethodID times_method_id(int64_t number);
/* Returns the number of methods. */
uint32_t times_method_count(void);

/*
 * The mark of a method whose calls a probe counts, while their time is attributed to the callers.
 */
#define TIMES_SMALL "small"
/*
 * Sets why calls of a method are not counted, or not timed (TIMES_SMALL); NULL means that they are
 * counted and timed. The string `why` must remain valid.
 */
void times_method_mark(int64_t number, const char *why);
bool times_method_is_small(int64_t number);
/*
 * Stores the next method with such a mark that has not been returned yet; *at starts at 0. Returns
 * false when there are no more.
 */
bool times_method_next_mark(uint32_t *at, const char **ret_why);
/*
 * Forgets all methods. Instrumented code of the session must no longer run, because its numbers
 * become invalid.
 */
void times_methods_forget(void);
