/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/stat.h"

#include "base/macro.h"

#include <math.h>

double stat_normal_quantile(double p)
{
    /* Newton's method applied to the distribution function takes few steps for p down to 1e-12. */
    if (p == 0.5)
        return 0;
    double q = p < 0.5 ? p : 1 - p;
    /* Abramowitz and Stegun, 26.2.23: off by at most 4.5e-4. */
    double t = sqrt(-2 * log(q));
    double x = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                       (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
    for (int i = 0; i < 4; i++) {
        double tail = erfc(x / sqrt(2)) / 2, density = exp(-x * x / 2) / sqrt(2 * M_PI);
        x += (tail - q) / density;
    }
    return p < 0.5 ? -x : x;
}

/* Uses the expansion in powers of 1 / freedom, Abramowitz and Stegun, 26.7.5; exact for 1 and 2. */
double stat_t_quantile(double p, double freedom)
{
    if (freedom <= 1)
        return tan(M_PI * (p - 0.5));
    if (freedom <= 2) {
        double a = 2 * p - 1;
        return a * sqrt(2 / MAX(1 - a * a, 1e-300));
    }
    double x = stat_normal_quantile(p), x3 = x * x * x, x5 = x3 * x * x, x7 = x5 * x * x;
    double x9 = x7 * x * x, n = freedom;
    return x + (x3 + x) / (4 * n) + (5 * x5 + 16 * x3 + 3 * x) / (96 * n * n) +
           (3 * x7 + 19 * x5 + 17 * x3 - 15 * x) / (384 * n * n * n) +
           (79 * x9 + 776 * x7 + 1482 * x5 - 1920 * x3 - 945 * x) / (92160 * n * n * n * n);
}

static struct stat_share share_of(const struct stat_side *side, const struct stat_part *part)
{
    struct stat_share s = {.freedom = MAX(side->clusters - 1, 1)};
    if (side->n <= 0)
        return s;
    s.share = part->x / side->n;
    /*
     * The variance of independent samples. A method without samples may still have a small share,
     * so the variance is at least that of half a sample.
     */
    double p = MAX(s.share, 0.5 / side->n);
    double independent = p * MAX(1 - p, 0.5 / side->n) / side->n;
    double between = 0;
    if (side->clusters > 1) {
        double squares = part->xx - 2 * s.share * part->xn + s.share * s.share * side->nn;
        between = MAX(squares, 0) / (side->n * side->n) * side->clusters / (side->clusters - 1);
    }
    s.variance = MAX(independent, between);
    if (between <= independent)
        s.freedom = MAX(s.freedom, side->n - 1);
    return s;
}

struct stat_share stat_share_of_two(const struct stat_side *blocks,
                                    const struct stat_part *in_blocks,
                                    const struct stat_side *instances,
                                    const struct stat_part *in_instances)
{
    struct stat_share a = share_of(blocks, in_blocks);
    struct stat_share b = share_of(instances, in_instances);
    return instances->clusters > 1 && b.variance > a.variance ? b : a;
}

struct stat_change stat_compare(const struct stat_share *a, const struct stat_share *b,
                                double confidence, double tests)
{
    double variance = a->variance + b->variance;
    /* Welch and Satterthwaite. */
    double freedom =
        variance * variance /
        (a->variance * a->variance / a->freedom + b->variance * b->variance / b->freedom);
    double p = (1 - confidence) / (2 * MAX(tests, 1));
    double width = stat_t_quantile(1 - p, freedom > 0 ? freedom : 1) * sqrt(variance);
    double change = b->share - a->share;
    /* A share lies between 0 and 1, so its change cannot be larger than 1. */
    return (struct stat_change){change, MAX(change - width, -1.0), MIN(change + width, 1.0)};
}
