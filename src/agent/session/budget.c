/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/budget.h"

#include "base/clock.h"
#include "base/hash.h"

#include <stdlib.h>

_Atomic uint64_t budget_costs[COST_CALLBACKS];
_Atomic uint64_t budget_calls_measured[COST_CALLBACKS];
__thread uint32_t budget_countdown;
_Atomic uint32_t budget_stacks_of = 1, budget_waits_of = 1, budget_wakes_of = 1,
                 budget_times_of = 1;

/*
 * Calls are measured with a clock that takes some nanoseconds, because reading the thread's CPU
 * time takes longer than most calls and slows down what follows. That clock also advances while the
 * thread does not run. A time that is longer than LONG_NS therefore counts as LONG_NS only, and for
 * the next AFTER_LONG measured calls, the CPU time of those that are long is read as well.
 */
enum { AFTER_LONG = 64, PAIRS = 101, RATE_SHIFT = 20 };

#define LONG_NS UINT64_C(50000)

static _Atomic uint64_t clock_pair; /* the difference between two readings in a row, in ticks */
static _Atomic uint64_t clock_rate; /* ns in 2^RATE_SHIFT ticks */
static atomic_int long_left;        /* the number of further measured calls for which the CPU time
                                     * is read as well */
/* CPU time at the start of the call that is measured; 0: not read */
static __thread uint64_t cpu_start;

static inline uint64_t ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return now_ns();
#endif
}

/* ---- on threads of the program ---- */

uint64_t budget_random(void)
{
    static __thread uint64_t state;
    if (!state)
        state = hash_u64((uint64_t)(uintptr_t)&state ^ now_ns()) | 1;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

uint64_t budget_due(void)
{
    /*
     * The first call of a thread to be measured is chosen at random among its first calls, so that
     * threads that make few calls count as well.
     */
    if (!budget_countdown) {
        budget_countdown = 1 + (uint32_t)(budget_random() % BUDGET_MEASURED_OF);
        if (budget_countdown > 1) {
            budget_countdown--;
            return 0;
        }
    }
    /*
     * The distances between measured calls are random, because different kinds of calls may
     * alternate.
     */
    budget_countdown = 1 + (uint32_t)(budget_random() % (2 * BUDGET_MEASURED_OF - 1));
    cpu_start = 0;
    if (unlikely(atomic_load_explicit(&long_left, memory_order_relaxed) > 0)) {
        atomic_fetch_sub_explicit(&long_left, 1, memory_order_relaxed);
        cpu_start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    return ticks();
}

void budget_count(enum budget_cost cost, uint64_t start)
{
    uint64_t took = ticks() - start, pair = atomic_load_explicit(&clock_pair, memory_order_relaxed),
             rate = atomic_load_explicit(&clock_rate, memory_order_relaxed);
    /* Clocks of two processors may differ by a little. */
    took = (int64_t)took < (int64_t)pair ? 0 : took - pair;
    uint64_t ns = took > UINT32_MAX ? LONG_NS : took * rate >> RATE_SHIFT;
    if (unlikely(ns >= LONG_NS)) {
        ns = cpu_start ? clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_start : LONG_NS;
        atomic_store_explicit(&long_left, AFTER_LONG, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&budget_calls_measured[cost], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&budget_costs[cost], ns * BUDGET_MEASURED_OF, memory_order_relaxed);
}

/* ---- the clock ---- */

uint64_t budget_ticks(void)
{
    return ticks();
}

uint64_t budget_ns_between(uint64_t start, uint64_t end)
{
    double rate = (double)atomic_load_explicit(&clock_rate, memory_order_relaxed);
    int64_t took = (int64_t)(end - start);
    return took > 0 ? (uint64_t)((double)took * rate / (double)(UINT32_C(1) << RATE_SHIFT)) : 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void budget_measure_rate(void)
{
    static uint64_t last_ns, last_ticks;
    uint64_t now = now_ns(), at = ticks();
    if (last_ns && now - last_ns >= BUDGET_RATE_NS && at > last_ticks)
        atomic_store(&clock_rate, (uint64_t)((double)(now - last_ns) / (double)(at - last_ticks) *
                                             (double)(UINT32_C(1) << RATE_SHIFT)));
    last_ns = now;
    last_ticks = at;
}

/* Takes the median of pairs of readings, because some pairs are interrupted. */
void budget_measure_clock(void)
{
    uint64_t pairs[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        uint64_t start = ticks();
        pairs[i] = ticks() - start;
    }
    qsort(pairs, PAIRS, sizeof(*pairs), by_value);
    atomic_store(&clock_pair, pairs[PAIRS / 2]);
    budget_measure_rate();
}

bool budget_rate_is_known(void)
{
    return atomic_load(&clock_rate) != 0;
}
