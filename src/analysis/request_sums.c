/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_groups.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What is estimated for each name: first the CPU time, then the causes. */
enum { CPU, FIRST_CAUSE, VALUES = FIRST_CAUSE + REQUEST_CAUSES };

struct name_estimates {
    struct estimate_sample sample;
    struct estimate values[VALUES];
    /*
     * The CPU time that CPU samples can confirm, and the number of these samples, both with the
     * weights of requests and with the squares of the weights.
     */
    double sampled_ns, samples, spread_ns, spread;
};

static void estimates_free(struct name_estimates *of, size_t n)
{
    for (size_t i = 0; of && i < n; i++) {
        estimate_sample_release(&of[i].sample);
        for (int k = 0; k < VALUES; k++)
            estimate_release(&of[i].values[k]);
    }
    free(of);
}

static int add_samples(const struct requests *r, struct name_estimates *of)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < r->list.len; i++) {
        const struct request *q = &r->list.data[i];
        if (q->weight > 0)
            e = estimate_sample_add(&of[q->name].sample, q->stratum, (double)q->weight);
    }
    for (size_t i = 0; e == 0 && i < r->list.len; i++) {
        const struct request *q = &r->list.data[i];
        if (q->weight > 0)
            estimate_sample_spread(&of[q->name].sample, q->stratum, (double)q->weight);
    }
    return e;
}

static int add_value(struct name_estimates *of, int k, const struct request *q, uint64_t ns)
{
    return ns ? estimate_add(&of->values[k], &of->sample, q->stratum, (double)q->weight, (double)ns)
              : 0;
}

/* In chronological order, so that neighbours in the timeline are read together. */
static int add_requests(struct request_ledger *l, const struct requests *r,
                        struct name_estimates *all, struct name_sums *sums)
{
    struct request_parts p = {0};
    int e = 0;
    for (size_t i = 0; e == 0 && i < r->list.len; i++) {
        const struct request *q = &r->list.data[i];
        struct request_cpu cpu = {0};
        if (!(q->weight > 0))
            continue;
        e = request_parts(l, q, &p);
        e = e ? e : request_cpu(l, q, &cpu);
        e = e ? e : add_value(&all[q->name], CPU, q, cpu.ns);
        all[q->name].sampled_ns += (double)q->weight * (double)cpu.sampled_ns;
        all[q->name].samples += (double)q->weight * (double)cpu.samples;
        all[q->name].spread_ns += (double)q->weight * (double)q->weight * (double)cpu.sampled_ns;
        all[q->name].spread += (double)q->weight * (double)q->weight * (double)cpu.samples;
        for (int k = 0; e == 0 && k < REQUEST_CAUSES; k++)
            e = add_value(&all[q->name], FIRST_CAUSE + k, q, p.ns[k]);
        sums[q->name].latency_ns += (double)q->weight * (double)(q->end_ns - q->start_ns);
    }
    request_parts_release(&p);
    return e;
}

/*
 * Compares the CPU time of a name with what its CPU samples show. The threads' CPU clocks take
 * these samples, so they leave out times that only look like CPU time: waits within the VM that
 * leave no event, and times without a processor that were too short to be examined. If so few
 * samples would occur by chance in less than one case of forty, the samples decide; in less than
 * one of six, the difference counts as an error. The number of samples has a Poisson distribution.
 */
static void compare_cpu(const struct name_estimates *of, double interval_ns, struct name_sums *s)
{
    double beyond = of->sampled_ns - of->samples * interval_ns;
    double usual = sqrt(of->spread_ns * interval_ns);
    if (beyond <= usual || !(s->weight > 0))
        return;
    double mean = s->weight / (double)s->requests;
    double error = interval_ns * (mean + 2 * sqrt(of->spread + mean * mean));
    if (beyond > 2 * usual)
        s->cpu_ns -= beyond;
    s->cpu_error_ns += MIN(beyond, error) / s->weight;
}

static void set_sums(const struct name_estimates *of, double interval_ns, struct name_sums *s)
{
    s->requests = of->sample.n;
    s->weight = of->sample.weight;
    s->cpu_ns = of->values[CPU].sum;
    s->cpu_error_ns = estimate_error(&of->values[CPU], &of->sample);
    compare_cpu(of, interval_ns, s);
    for (int k = 0; k < REQUEST_CAUSES; k++) {
        const struct estimate *value = &of->values[FIRST_CAUSE + k];
        s->ns[k] = value->sum;
        s->error_ns[k] = estimate_error(value, &of->sample);
        s->with[k] = value->n;
    }
}

int request_sums(struct request_ledger *l, const struct requests *r, struct name_sums **ret)
{
    struct name_sums *sums = calloc(r->names.len + 1, sizeof(*sums));
    struct name_estimates *all = calloc(r->names.len + 1, sizeof(*all));
    int e = sums && all ? add_samples(r, all) : -ENOMEM;
    e = e ? e : add_requests(l, r, all, sums);
    for (size_t i = 0; e == 0 && i < r->names.len; i++)
        set_sums(&all[i], (double)r->sample_ns, &sums[i]);
    estimates_free(all, r->names.len);
    if (e < 0)
        free(sums);
    else
        *ret = sums;
    return e;
}
