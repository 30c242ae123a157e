/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the program continues undisturbed between two batches of changed classes (batches.h).
 * All pauses of the rounds that share a budget take at most 30 ms per class, or 60 s, unless twice
 * the time of the stops is more.
 */
#pragma once

#include "base/macro.h"

#include <stdint.h>

/* The rounds of the start or the end of a recording: each capture changes classes in its own. */
struct pauses {
    unsigned rounds; /* how many are expected */
    uint64_t used_ns;
};

/* Returns the budget, in ns, of one of the rounds, which changes this many classes. */
uint64_t pauses_of_round(const struct pauses *p, unsigned classes);
/*
 * Returns the pause in ns after a batch that took took_ns and stopped the program for stop_ns of
 * these, and subtracts the pause from the budget of its round. batches: how many follow, at least
 * 1.
 */
uint64_t pauses_next(uint64_t *budget_ns, uint64_t stop_ns, uint64_t took_ns, uint64_t batches);
