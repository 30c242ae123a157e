/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the name that a misspelt word most likely means. */
#pragma once

#include <stdbool.h>

enum { NEAREST_MAX = 64 };

/* Candidates are compared one at a time; initialize with the word and zeros. */
struct nearest {
    const char *word;
    char best[NEAREST_MAX + 1]; /* "": no candidate is near enough */
    unsigned distance;          /* of `best`; its only use is to be compared */
};

/*
 * Compares a candidate and returns whether it is nearer than all before it. The distance is the
 * number of letters that must be changed, inserted, removed or exchanged with their neighbours
 * (optimal string alignment), without regard to case. It may be a third of the word's letters, or
 * one in a word of fewer than six letters, or none in one of fewer than three. A candidate that
 * begins with the word has a distance of at most one, and is near, if the word has more than one
 * letter. A candidate of more than NEAREST_MAX bytes is never near.
 */
bool nearest_try(struct nearest *n, const char *candidate);
