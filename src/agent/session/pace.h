/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the agent's thread does work that takes longer the more threads the program has. With
 * thousands of threads it is done less often than ten times a second, so that each kind of work
 * takes at most one part in PACE_SHARE of a processor, or less when the budget slows the rounds
 * down.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PACE_SHARE = 200 };

/* The work is never delayed for longer than this. */
#define PACE_MOST_NS UINT64_C(60000000000)

/* One kind of work; zero: it has not been done yet. Only for the agent's thread. */
struct pace {
    uint64_t due_ns;
    uint64_t began_ns; /* CPU time of the thread when the work began */
};

/* Returns whether the work is due. If so, the caller does it and then calls pace_ends. */
bool pace_begins(struct pace *p);
/* Determines when the work is next due, from the CPU time that it took. */
void pace_ends(struct pace *p);
