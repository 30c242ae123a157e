/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that cpu=times counts, by small numbers that instrumented code carries. Any thread. Knows no JVM. */
#pragma once

#include "base/strpool.h"

#include <stdint.h>

struct times_method {
    const char *class_name, *name, *descriptor; /* class as java/lang/String */
    const char *source;                         /* NULL: not known */
    uint32_t access;
};

/* The number of a method, the same for the same names; negative errno. */
int64_t times_method_add(struct str class_name, struct str name, struct str descriptor, struct str source, uint32_t access)
    must_check;
/* A method, or names in angle brackets for the numbers that are none (TIMES_ROOT ...). The strings live until forget. */
struct times_method times_method_get(int64_t number);
uint32_t times_method_count(void);
/* Drops all; no instrumented code of the session may run any more, or its numbers mean nothing. */
void times_methods_forget(void);
