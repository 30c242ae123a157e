/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that cpu=times counts, by small numbers that instrumented code carries. Any thread. */
#pragma once

#include "base/strpool.h"

#include <jvmti.h>
#include <stdint.h>

/* The number of a method, the same for the same names; negative errno. */
int64_t times_method_add(struct str class_name, struct str name, struct str descriptor, struct str source,
                         uint32_t access) must_check;
/*
 * An id for names_method, for a number or for those that are none (TIMES_ROOT: outside of all calls; TIMES_BEYOND). NULL: no
 * memory.
 */
jmethodID times_method_id(int64_t number);
uint32_t times_method_count(void);
/* Drops all; no instrumented code of the session may run any more, or its numbers mean nothing. */
void times_methods_forget(void);
