/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods that cpu=times counts, by small numbers that instrumented code carries, and those
 * that it does not. Any thread.
 */
#pragma once

#include "base/strpool.h"

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of a method, the same for the same names; negative errno. */
int64_t times_method_add(struct str class_name, struct str name, struct str descriptor,
                         struct str source, uint32_t access) must_check;
/*
 * An id for names_method, for a number or for those that are none (TIMES_ROOT: outside of all
 * calls; TIMES_BEYOND). NULL: no memory.
 */
jmethodID times_method_id(int64_t number);
/* How many are counted. */
uint32_t times_method_count(void);

/* Counted by a probe that leaves their time to their callers. */
#define TIMES_SMALL "small"
/*
 * Why calls of a method are not counted, or not timed (TIMES_SMALL); NULL: they are. `why` stays.
 */
void times_method_mark(int64_t number, const char *why);
bool times_method_is_small(int64_t number);
/* The next method with a mark that was not asked for yet, in *at from 0 on; false: no more. */
bool times_method_next_mark(uint32_t *at, const char **ret_why);
/* Drops all; no instrumented code of the session may run any more, or its numbers mean nothing. */
void times_methods_forget(void);
