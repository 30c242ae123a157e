/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of a recording that is always on (budget=): what the captures cost the threads of the
 * program, and what the captures leave out to cost less. Callbacks enclose their work in
 * budget_begin and budget_end, which also enclose the steps by which a callback enters and leaves.
 * On average one call in BUDGET_MEASURED_OF is measured, and stands for all of them. The capture
 * capture/budget.c reads these costs once a second and decides what is left out.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum budget_cost { COST_WAITS, COST_ALLOCATIONS, COST_REQUESTS, COST_CALLBACKS };

enum { BUDGET_MEASURED_OF = 61 };

/* CPU time in ns that callbacks have used since the process began, by kind of callback. */
extern _Atomic uint64_t budget_costs[COST_CALLBACKS];
/* The number of calls from which budget_costs is estimated. */
extern _Atomic uint64_t budget_calls_measured[COST_CALLBACKS];
/*
 * How many calls of this thread remain until one is measured; 0: the thread has made no call yet.
 */
extern __thread uint32_t budget_countdown;

/* Does the rest of budget_begin for a call that may be measured. */
uint64_t budget_due(void);
/*
 * Adds the cost of a measured call that began at `start`, the result of budget_begin, for all calls
 * that it stands for.
 */
void budget_count(enum budget_cost cost, uint64_t start);

/*
 * Begins a callback. Returns what must be passed to budget_end: when the call began, if it is
 * measured, or 0. Not in a signal handler.
 */
static inline uint64_t budget_begin(void)
{
    uint32_t left = budget_countdown;
    if (unlikely(left <= 1))
        return budget_due();
    budget_countdown = left - 1;
    return 0;
}

/* Ends a callback of a kind, and counts its cost if the call was measured. */
static inline void budget_end(enum budget_cost cost, uint64_t start)
{
    if (unlikely(start))
        budget_count(cost, start);
}

/* The rate of the clock that measures calls is computed over at least this time. */
#define BUDGET_RATE_NS UINT64_C(2000000)

/*
 * Computes the rate over the time since the last call of this function or budget_measure_clock, if
 * that is at least BUDGET_RATE_NS. Calls that are measured before the first rate is known count as
 * no time. One thread at a time.
 */
void budget_measure_rate(void);
/* Measures how long reading the clock takes, and then does what budget_measure_rate does. */
void budget_measure_clock(void);
/* Returns whether a rate has been computed. */
bool budget_rate_is_known(void);

/* Returns the reading of the clock that measures calls. */
uint64_t budget_ticks(void);
/*
 * Returns the time between two readings in ns; 0 if `end` is earlier, because clocks of two
 * processors may differ by a little, or the rate is not known.
 */
uint64_t budget_ns_between(uint64_t start, uint64_t end);

/*
 * Waits shorter than this are the first to be left out. The stack and the object of a longer one
 * that were left out when it began, because the last wait was short, are read when it has ended.
 */
#define BUDGET_SHORT_NS UINT64_C(1000000)

/*
 * One in this many, chosen at random, is kept: of the stacks of waits of a thread whose last wait
 * was short, and of short waits themselves. 1: all are kept.
 */
extern _Atomic uint32_t budget_stacks_of, budget_waits_of;
/* One in this many wake-ups, which are calls of notify and unpark, is kept. 1: all are. */
extern _Atomic uint32_t budget_wakes_of;
/* One in this many short parks is timed, if the thread's last park was short, too. */
extern _Atomic uint32_t budget_times_of;

/* Returns a random number. Each thread has a generator of its own. */
uint64_t budget_random(void);

/* Returns, at random, true for one in *one_of calls. */
static inline bool budget_keeps(const _Atomic uint32_t *one_of)
{
    uint32_t n = atomic_load_explicit(one_of, memory_order_relaxed);
    return likely(n <= 1) || budget_random() % n == 0;
}
