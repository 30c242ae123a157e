/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_confirmed.h"
#include "analysis/request_groups.h"

#include <errno.h>
#include <stdlib.h>

/* What is estimated for each name: first the CPU time, then the causes. */
enum { CPU, FIRST_CAUSE, VALUES = FIRST_CAUSE + REQUEST_CAUSES };

struct name_estimates {
    struct estimate_sample sample;
    struct estimate values[VALUES];
    struct cpu_check check;
    struct hidden_waits hidden;
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
        cpu_check_add(&all[q->name].check, &cpu, (double)q->weight);
        hidden_waits_add(&all[q->name].hidden, l, r, q, &p, (double)q->weight);
        for (int k = 0; e == 0 && k < REQUEST_CAUSES; k++)
            e = add_value(&all[q->name], FIRST_CAUSE + k, q, p.ns[k]);
        sums[q->name].latency_ns += (double)q->weight * (double)(q->end_ns - q->start_ns);
    }
    request_parts_release(&p);
    return e;
}

/*
 * Subtracts the CPU time that samples do not confirm. In the latency, where only the request's own
 * thread counts, its share of this time is part of the error of the cause.
 */
static void compare_cpu(const struct name_estimates *of, double interval_ns, struct name_sums *s)
{
    if (!(s->weight > 0))
        return;
    struct cpu_excess all = cpu_check_excess(&of->check, interval_ns, cpu_check_mean(&of->check));
    struct cpu_excess own = cpu_excess_of(&all, &of->check, s->ns[CAUSE_CPU]);
    s->cpu_ns -= all.ns;
    s->cpu_error_ns += all.error_ns / s->weight;
    s->cpu_doubt_ns = s->error_ns[CAUSE_CPU] + cpu_excess_doubt(&own) / s->weight;
    s->error_ns[CAUSE_CPU] += (own.ns + own.error_ns) / s->weight;
}

static void set_sums(const struct name_estimates *of, double interval_ns, struct name_sums *s)
{
    s->requests = of->sample.n;
    s->weight = of->sample.weight;
    s->cpu_ns = of->values[CPU].sum;
    s->cpu_error_ns = estimate_error(&of->values[CPU], &of->sample);
    for (int k = 0; k < REQUEST_CAUSES; k++) {
        const struct estimate *value = &of->values[FIRST_CAUSE + k];
        s->ns[k] = value->sum;
        s->error_ns[k] = estimate_error(value, &of->sample);
        s->with[k] = value->n;
    }
    s->cpu_doubt_ns = s->error_ns[CAUSE_CPU];
    compare_cpu(of, interval_ns, s);
}

/*
 * Adds to the errors what is unknown because short waits were left out to stay within the budget.
 */
static void add_hidden(const struct hidden_waits *hidden, struct name_sums *s)
{
    struct hidden_time h =
        hidden_waits_mean(hidden, s->weight, s->weight > 0 ? s->ns[CAUSE_CPU] / s->weight : 0,
                          s->error_ns[CAUSE_CPU]);
    s->error_ns[CAUSE_CPU] += h.unsampled_ns;
    s->cpu_doubt_ns += h.unsampled_ns;
    for (int k = 0; k < REQUEST_CAUSES; k++)
        s->error_ns[k] += hidden_waits_can_be((enum request_cause)k) ? h.ns : 0;
}

/*
 * If the mean latency of all requests of a name is known, the parts must add up to it, not to that
 * of the requests whose details were kept.
 */
static void fit_to_all(const struct request_name *n, struct name_sums *s)
{
    if (!n->exact || n->all <= n->count || !(s->latency_ns > 0) || !n->total_ns)
        return;
    double factor = (double)n->total_ns / (double)n->all / (s->latency_ns / s->weight);
    s->latency_ns *= factor;
    s->cpu_ns *= factor;
    s->cpu_error_ns *= factor;
    s->cpu_doubt_ns *= factor;
    for (int k = 0; k < REQUEST_CAUSES; k++) {
        s->ns[k] *= factor;
        s->error_ns[k] *= factor;
    }
}

int request_sums(struct request_ledger *l, const struct requests *r, struct name_sums **ret)
{
    struct name_sums *sums = calloc(r->names.len + 1, sizeof(*sums));
    struct name_estimates *all = calloc(r->names.len + 1, sizeof(*all));
    int e = sums && all ? add_samples(r, all) : -ENOMEM;
    e = e ? e : add_requests(l, r, all, sums);
    for (size_t i = 0; e == 0 && i < r->names.len; i++) {
        set_sums(&all[i], (double)r->sample_ns, &sums[i]);
        add_hidden(&all[i].hidden, &sums[i]);
        fit_to_all(&r->names.data[i], &sums[i]);
    }
    estimates_free(all, r->names.len);
    if (e < 0)
        free(sums);
    else
        *ret = sums;
    return e;
}
