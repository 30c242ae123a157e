/* SPDX-License-Identifier: Apache-2.0 */
/* The interval of a time of counted calls that is estimated from readings of the CPU clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct profile_calls;

/* What is known of the time of some calls. */
struct call_sum {
    uint64_t readings;
    double read_ns;  /* what the readings stand for: the time including the cost of the probes */
    double squares;  /* the sum of the squares of what each of them stands for, in ns2 */
    double exact_ns; /* time that was measured and not read: CPU time that belongs to no method */
    int64_t cost_ns; /* the estimated cost of the probes in this time */
};

/*
 * The bounds of the 95 % interval, with the cost of the probes (raw) and without it, in ns. That
 * cost is known only to within a factor of two: it is higher in code that the JIT has not compiled
 * yet or compiles differently, and waits for memory hide a part of it. How it is divided between a
 * method and its caller is unknown, so the upper bound is the raw one.
 */
struct call_interval {
    double raw_low, raw_high, low, high;
};

void call_sum_add(struct call_sum *to, const struct profile_calls *c);
/*
 * Returns the interval of the time of `s`, which contains the estimate itself. unread_ns is the CPU
 * time that belongs to no method, all of which may be of this one.
 */
struct call_interval call_interval(const struct call_sum *s, double unread_ns);
/* Returns whether the readings are enough to state a time, and the time is certainly above zero. */
bool call_time_is_known(const struct call_sum *s);
