/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of a time of counted calls that is estimated from readings of the CPU clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The bounds of the 95 % interval, with the cost of the probes (raw) and without it, in ns. That
 * cost is known only to within a factor of two: it is higher in code that the JIT has not compiled
 * yet or compiles differently, and waits for memory hide a part of it. How it is divided between a
 * method and its caller is unknown, so the upper bound is the raw one.
 */
struct call_interval {
    double raw_low, raw_high, low, high;
};

/*
 * Returns the interval of a time that was estimated from `readings` readings, each of which stands
 * for ns_a_reading. cost_ns is the estimated cost of the probes in this time.
 */
struct call_interval call_interval(uint64_t readings, double ns_a_reading, int64_t cost_ns);
/* Returns whether the readings are enough to state a time, and the time is certainly above zero. */
bool call_time_is_known(uint64_t readings, double ns_a_reading, int64_t cost_ns);
