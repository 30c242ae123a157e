/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/call_interval.h"

#include "base/macro.h"
#include "profile/profile.h"

#include <math.h>

/*
 * Computes the interval that contains the true number of readings in 95 of 100 cases, if readings
 * are a Poisson process: Wilson and Hilferty's approximation of its exact bounds (1931), within 1 %
 * from ten readings on.
 */
static void poisson_interval(uint64_t n, double *ret_low, double *ret_high)
{
    const double z = 1.96, low = (double)n, high = (double)n + 1;
    *ret_low = n ? low * pow(1 - 1 / (9 * low) - z / (3 * sqrt(low)), 3) : 0;
    *ret_high = high * pow(1 - 1 / (9 * high) + z / (3 * sqrt(high)), 3);
}

struct call_interval call_interval(uint64_t readings, double ns_a_reading, int64_t cost_ns)
{
    enum { COST_WITHIN = 2 };

    struct call_interval i;
    poisson_interval(readings, &i.raw_low, &i.raw_high);
    i.raw_low *= ns_a_reading;
    i.raw_high *= ns_a_reading;
    i.low = MAX(i.raw_low - COST_WITHIN * (double)MAX(cost_ns, INT64_C(0)), 0.0);
    i.high = i.raw_high;
    return i;
}

bool call_time_is_known(uint64_t readings, double ns_a_reading, int64_t cost_ns)
{
    return readings >= FEWEST_READINGS && call_interval(readings, ns_a_reading, cost_ns).low > 0;
}
