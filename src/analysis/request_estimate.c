/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_estimate.h"

#include <math.h>

#define CONFIDENT 1.96 /* standard deviations of a 95 % interval */

/* With fewer requests neither the estimate nor its error is certain. */
enum { REQUESTS_LEAST = 5 };

int estimate_sample_add(struct estimate_sample *s, uint32_t stratum, double weight)
{
    if (stratum >= s->strata.len) {
        int e = vec_extend(&s->strata, stratum + 1 - s->strata.len);
        if (e < 0)
            return e;
    }
    s->strata.data[stratum].weight += weight;
    s->strata.data[stratum].n++;
    s->weight += weight;
    s->n++;
    return 0;
}

/*
 * Returns the factor by which the square of a request's distance from the mean of its stratum
 * counts in the variance of a sum. As in the jackknife, the distance is how far the sum moves if
 * the request is left out and the others stand for it, so a request that stands for most of its
 * stratum does not hide its own error. The weight of 1 that stands for the request itself is known
 * and adds no variance. A request that is alone in its stratum has no others to be compared with.
 */
static double spread(const struct estimate_sample *s, uint32_t stratum, double weight)
{
    const struct estimate_stratum *of = &s->strata.data[stratum];
    double n = (double)of->n, unknown = weight * fmax(weight - 1, 0);
    double rest = of->weight - weight;
    return of->n < 2 || rest <= 0 ? unknown : unknown * pow(of->weight / rest, 2) * (n - 1) / n;
}

void estimate_sample_spread(struct estimate_sample *s, uint32_t stratum, double weight)
{
    s->strata.data[stratum].spread += spread(s, stratum, weight);
}

void estimate_sample_release(struct estimate_sample *s)
{
    vec_release(&s->strata);
}

int estimate_add(struct estimate *e, const struct estimate_sample *s, uint32_t stratum,
                 double weight, double value)
{
    if (stratum >= e->rows.len) {
        int r = vec_extend(&e->rows, stratum + 1 - e->rows.len);
        if (r < 0)
            return r;
    }
    struct estimate_row *row = &e->rows.data[stratum];
    double of = spread(s, stratum, weight);
    row->sum += weight * value;
    row->spread += of * value;
    row->squares += of * value * value;
    e->sum += weight * value;
    e->n += value > 0;
    return 0;
}

double estimate_mean(const struct estimate *e, const struct estimate_sample *s)
{
    return s->weight > 0 ? e->sum / s->weight : 0;
}

double estimate_error(const struct estimate *e, const struct estimate_sample *s)
{
    double variance = 0;
    for (size_t i = 0; i < e->rows.len; i++) {
        const struct estimate_row *row = &e->rows.data[i];
        const struct estimate_stratum *of = &s->strata.data[i];
        double mean = of->n > 1 && of->weight > 0 ? row->sum / of->weight : 0;
        variance += fmax(row->squares - 2 * mean * row->spread + mean * mean * of->spread, 0);
    }
    return s->weight > 0 ? CONFIDENT * sqrt(variance) / s->weight : 0;
}

void estimate_release(struct estimate *e)
{
    vec_release(&e->rows);
}

bool estimate_is_uncertain(double value, double error, uint32_t n)
{
    return error > 0 && (fabs(value) <= error || n < REQUESTS_LEAST);
}
