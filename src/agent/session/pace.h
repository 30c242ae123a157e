/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the agent's thread does work that takes longer the more threads there are. Whoever has
 * thousands of threads gets it less often than ten times a second, so that each kind of it takes at
 * most one part in PACE_SHARE of a processor, or less when the budget slows the rounds down.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PACE_SHARE = 200 };

/* But it is never put off for longer than this. */
#define PACE_MOST_NS UINT64_C(60000000000)

/* One kind of work; zero: it has not been done yet. Only for the agent's thread. */
struct pace {
    uint64_t due_ns;
    uint64_t began_ns; /* CPU time of the thread when the work began */
};

/* Returns whether the work is due. It is then done, and pace_ends called after it. */
bool pace_begins(struct pace *p);
void pace_ends(struct pace *p);
