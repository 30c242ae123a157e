/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the name that a misspelt word most likely means. */
#pragma once

#include <stdbool.h>

enum { NEAREST_MAX = 64 };

/* Candidates are compared one at a time; initialize with the word and zeros. */
struct nearest {
    const char *word;
    char best[NEAREST_MAX + 1]; /* "": no candidate is near enough */
    unsigned distance;          /* of `best`, to be compared with others only */
};

/*
 * Compares a candidate and returns whether it is nearer than all before it. It is near enough when
 * a third of the word's letters at most, and two at least, must be changed, inserted, removed or
 * exchanged with their neighbours (optimal string alignment); upper and lower case do not differ.
 * Names of more than NEAREST_MAX bytes are near to none.
 */
bool nearest_try(struct nearest *n, const char *candidate);
