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
static void poisson_interval(double n, double *ret_low, double *ret_high)
{
    const double z = 1.96, low = n, high = n + 1;
    *ret_low = n > 0 ? low * pow(MAX(1 - 1 / (9 * low) - z / (3 * sqrt(low)), 0.0), 3) : 0;
    *ret_high = high * pow(1 - 1 / (9 * high) + z / (3 * sqrt(high)), 3);
}

void call_sum_add(struct call_sum *to, const struct profile_calls *c)
{
    to->readings += c->samples;
    to->cost_ns += MAX(c->cost_ns, INT64_C(0));
    if (c->samples) {
        to->read_ns += (double)c->raw_ns;
        to->squares += c->squares;
    } else {
        to->exact_ns += (double)MAX(c->raw_ns, INT64_C(0));
    }
}

/*
 * Readings that stand for different times are as uncertain as fewer that all stand for the same:
 * the sum and the variance of both are equal (Fay and Feuer, 1997).
 */
struct call_interval call_interval(const struct call_sum *s, double unread_ns)
{
    enum { COST_WITHIN = 2 };

    struct call_interval i;
    double n = (double)s->readings;
    double each = s->readings ? s->read_ns / n : 0;
    if (s->squares > 0 && s->read_ns > 0) {
        n = MIN(s->read_ns * s->read_ns / s->squares, n);
        each = s->read_ns / n;
    }
    poisson_interval(n, &i.raw_low, &i.raw_high);
    i.raw_low = i.raw_low * each + s->exact_ns;
    i.raw_high = i.raw_high * each + MAX(s->exact_ns, unread_ns);
    i.low = MAX(i.raw_low - COST_WITHIN * (double)MAX(s->cost_ns, INT64_C(0)), 0.0);
    i.high = i.raw_high;
    return i;
}

bool call_time_is_known(const struct call_sum *s)
{
    return (s->readings >= FEWEST_READINGS || s->exact_ns > 0) && call_interval(s, 0).low > 0;
}
