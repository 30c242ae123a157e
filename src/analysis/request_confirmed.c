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
 * If so few samples would occur by chance in less than one case of forty, the samples decide; in
 * less than one of six, the difference counts as an error. The number of samples has a Poisson
 * distribution.
 */
struct cpu_excess cpu_check_excess(const struct cpu_check *check, double interval_ns, double mean)
{
    double beyond = check->sampled_ns - check->samples * interval_ns;
    double usual = sqrt(check->spread_ns * interval_ns);
    if (beyond <= usual)
        return (struct cpu_excess){0};
    double error = interval_ns * (mean + 2 * sqrt(check->spread + mean * mean));
    return (struct cpu_excess){beyond > 2 * usual ? beyond : 0, MIN(beyond, error)};
}

struct cpu_excess cpu_excess_of(const struct cpu_excess *all, const struct cpu_check *check,
                                double part_ns)
{
    double share = check->ns > 0 ? MIN(part_ns / check->ns, 1) : 0;
    return (struct cpu_excess){MIN(all->ns * share, part_ns), all->error_ns * share};
}
