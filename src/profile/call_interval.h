/* SPDX-License-Identifier: Apache-2.0 */
/* Between which bounds a time of counted calls lies that rests on readings of the CPU clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The bounds of 95 of 100 cases, with the cost of the probes (raw) and without it. By measurement
 * that cost is known to within a factor of two: code that the JIT has not compiled yet or compiles
 * otherwise pays more, and a time that waits for memory hides some of it. Which part of it lies in
 * a method and which in its caller is not known at all, so the upper bound is the raw one.
 */
struct call_interval {
    double raw_low, raw_high, low, high;
};

struct call_interval call_interval(uint64_t readings, double ns_a_reading, int64_t cost_ns);
/* Whether there are enough readings for a statement, and the time is certainly more than nothing.
 */
bool call_time_is_known(uint64_t readings, double ns_a_reading, int64_t cost_ns);
