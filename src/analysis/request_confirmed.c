/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_confirmed.h"

#include <math.h>

void cpu_check_add(struct cpu_check *check, const struct request_cpu *cpu, double weight)
{
    check->ns += weight * (double)cpu->ns;
    check->sampled_ns += weight * (double)cpu->sampled_ns;
    check->samples += weight * (double)cpu->samples;
    check->spread_ns += weight * weight * (double)(cpu->sampled_ns + cpu->left_out_ns);
    check->spread += weight * weight * (double)(cpu->samples + cpu->left_out_samples);
}

double cpu_check_mean(const struct cpu_check *check)
{
    return check->sampled_ns > 0 ? check->spread_ns / check->sampled_ns : 0;
}

/*
 * What the samples lack, from one and a half times the usual deviation on, is not confirmed. Up to
 * the usual deviation it may be chance, so that nothing is subtracted, and in between the result
 * rises without a step. From twenty samples on, the mean result thus differs from the true excess
 * by less than a quarter of the usual deviation, whatever the excess is: of all such limits these
 * are about the best. The number of samples has a Poisson distribution.
 */
static double excess_of_lack(double lack, double usual)
{
    double over = lack - usual;
    return over <= 0 ? 0 : over < usual / 2 ? 3 * over : lack;
}

/*
 * The error reaches to both ends of the interval in which the samples show the CPU time, as far as
 * the time without pauses allows it. If there are more samples than that time allows, this is
 * chance, and the error is at least the usual deviation.
 */
struct cpu_excess cpu_check_excess(const struct cpu_check *check, double interval_ns, double mean)
{
    if (!(interval_ns > 0 && check->sampled_ns > 0))
        return (struct cpu_excess){0};
    double most = check->sampled_ns, shown = check->samples * interval_ns;
    double usual = sqrt(check->spread_ns * interval_ns);
    double wide = interval_ns * (mean + 2 * sqrt(check->spread + mean * mean));
    double excess = excess_of_lack(most - shown, usual), value = most - excess;
    double below = MIN(MAX(value - MAX(shown - wide, 0), usual), value);
    return (struct cpu_excess){excess, MAX(below, MIN(most, shown + wide) - value)};
}

double cpu_excess_doubt(const struct cpu_excess *e)
{
    return e->ns + MIN(e->ns, e->error_ns);
}

struct cpu_excess cpu_excess_of(const struct cpu_excess *all, const struct cpu_check *check,
                                double part_ns)
{
    double share = check->ns > 0 ? MIN(part_ns / check->ns, 1) : 0;
    return (struct cpu_excess){MIN(all->ns * share, part_ns), all->error_ns * share};
}

void hidden_waits_add(struct hidden_waits *h, const struct request_ledger *l,
                      const struct requests *r, const struct request *q,
                      const struct request_parts *p, double weight)
{
    if (!requests_lack_waits(r, q->start_ns, q->end_ns))
        return;
    h->unsampled_ns += weight * (double)request_unconfirmed_ns(l, q, p);
    h->lacking += weight;
}

/*
 * Where a thread seems to have run, it may have waited for anything else. For threads with enough
 * CPU samples, the error of the cause shows how much that is.
 */
struct hidden_time hidden_waits_mean(const struct hidden_waits *h, double weight, double cpu_ns,
                                     double error_ns)
{
    if (!(h->lacking > 0 && weight > 0))
        return (struct hidden_time){0};
    double unsampled = MIN(h->unsampled_ns / weight, MAX(cpu_ns - error_ns, 0));
    double sampled = error_ns * h->lacking / weight;
    return (struct hidden_time){unsampled, MIN(sampled + h->unsampled_ns / weight, cpu_ns)};
}

bool hidden_waits_can_be(enum request_cause cause)
{
    return cause == CAUSE_RUNNABLE || cause == CAUSE_LOCK || cause == CAUSE_PARK ||
           cause == CAUSE_POOL || cause == CAUSE_IO;
}
