/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the name that a misspelt word most likely means. */
#pragma once

/* Candidates are compared one at a time; initialize with the word and zeros. */
struct nearest {
    const char *word;
    const char *best; /* NULL: no candidate is near enough */
    unsigned distance;
};

/*
 * Compares a candidate, which must remain valid. It is near enough when a third of the word's
 * letters at most, and two at least, must be changed, inserted, removed or exchanged with their
 * neighbours (optimal string alignment). Words of more than 64 bytes match no candidate.
 */
void nearest_try(struct nearest *n, const char *candidate);
