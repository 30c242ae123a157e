/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means over requests of which each stands for a number of requests (its weight), with the error
 * that comes from those whose details were not kept. The weights of a stratum (struct request) add
 * up to its number of requests, so that only differences within strata make an error.
 */
#pragma once

#include "base/macro.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct estimate_stratum {
    double weight, spread; /* sums */
    uint32_t n;
};

/* The requests over which means are taken. */
struct estimate_sample {
    VEC(struct estimate_stratum) strata;
    double weight;
    uint32_t n;
};

struct estimate_row {
    double sum, spread, squares;
};

struct estimate {
    VEC(struct estimate_row) rows; /* by stratum */
    double sum;
    uint32_t n; /* requests with a value above 0 */
};

/*
 * Add a request to a sample. Call estimate_sample_add, which returns 0 or -ENOMEM, for all
 * requests, and then estimate_sample_spread for all of them, because the spread of a request
 * depends on the others in its stratum.
 */
int estimate_sample_add(struct estimate_sample *s, uint32_t stratum, double weight) must_check;
void estimate_sample_spread(struct estimate_sample *s, uint32_t stratum, double weight);
void estimate_sample_release(struct estimate_sample *s);

/* Adds a request's value once the sample has all requests. Returns 0 or -ENOMEM. */
int estimate_add(struct estimate *e, const struct estimate_sample *s, uint32_t stratum,
                 double weight, double value) must_check;
/* Returns the mean of the values over the sample, or 0 when the sample is empty. */
double estimate_mean(const struct estimate *e, const struct estimate_sample *s);
/*
 * Returns half the width of the mean's 95 % interval; 0 if each request stands for itself alone.
 * Call it once the sample has all spreads.
 */
double estimate_error(const struct estimate *e, const struct estimate_sample *s);
void estimate_release(struct estimate *e);

/*
 * Returns whether an estimate says little, because its value is below its error or rests on a few
 * requests of many. n: the number of requests with a value above 0.
 */
bool estimate_is_uncertain(double value, double error, uint32_t n);
