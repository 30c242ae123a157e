/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of samples with their uncertainty. Samples of one instance and minute resemble each other.
 * If they were treated as independent, changes would be reported everywhere. The variance is
 * therefore that between clusters of samples: a ratio estimator, as in surveys (W. Cochran,
 * Sampling Techniques, section 6.4), and never less than that of independent samples.
 */
#pragma once

#include <stdint.h>

/* Sums over the clusters of one side, which have n samples each, x of them in the method. */
struct stat_side {
    double n, nn;    /* sums of n and of n * n */
    double clusters; /* how many */
};

struct stat_part {
    double x, xx, xn; /* sums of x, x * x and x * n */
};

struct stat_share {
    double share, variance, freedom; /* freedom: of the estimate of the variance */
};

/*
 * Computes the share of samples that are in clusters of two kinds, blocks of time and instances.
 * The variance is the larger one of the two kinds, with the degrees of freedom of that kind; with a
 * single instance, that of the blocks.
 */
struct stat_share stat_share_of_two(const struct stat_side *blocks,
                                    const struct stat_part *in_blocks,
                                    const struct stat_side *instances,
                                    const struct stat_part *in_instances);

struct stat_change {
    double change, low, high; /* of the share, from the first side to the second one */
};

/*
 * Returns the change from share a to share b, and the interval that contains it at this confidence
 * (0.95) for all of `tests` comparisons together.
 */
struct stat_change stat_compare(const struct stat_share *a, const struct stat_share *b,
                                double confidence, double tests);

/*
 * Return the p-quantile of the normal distribution, and of Student's with `freedom` degrees of
 * freedom.
 */
double stat_normal_quantile(double p);
double stat_t_quantile(double p, double freedom);
