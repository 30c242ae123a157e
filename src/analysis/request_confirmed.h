/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the CPU time of requests with what CPU samples show. The threads' CPU clocks take these
 * samples, so they leave out times that only look like CPU time: waits within the VM that leave no
 * event, and times without a processor that were too short to be examined.
 */
#pragma once

#include "analysis/request_ledger.h"

/*
 * The CPU time of some requests, the part of it that samples can confirm, and the number of these
 * samples, with the weights of the requests; the last two with the squares of the weights, and
 * with the number of samples for which each one stands.
 */
struct cpu_check {
    double ns, sampled_ns, samples, spread_ns, spread;
};

/* CPU time that samples do not confirm, of all requests together. */
struct cpu_excess {
    double ns;       /* to be subtracted */
    double error_ns; /* half of the 95 % interval of what is left */
};

/*
 * Returns how far the samples speak against the CPU time, by which causes are ranked: few samples,
 * whose interval is wide, do not.
 */
double cpu_excess_doubt(const struct cpu_excess *e);

/* Adds the CPU time of a request and the samples in it. */
void cpu_check_add(struct cpu_check *check, const struct request_cpu *cpu, double weight);
/*
 * Returns the mean number of samples for which one sample of these requests stands, including those
 * that were left out.
 */
double cpu_check_mean(const struct cpu_check *check);
/*
 * Returns how much of the CPU time the samples do not confirm. interval_ns: the CPU time between
 * two samples. mean: the result of cpu_check_mean.
 */
struct cpu_excess cpu_check_excess(const struct cpu_check *check, double interval_ns, double mean);
/* Returns the part of an excess that is in a part of the CPU time, such as that of one thread. */
struct cpu_excess cpu_excess_of(const struct cpu_excess *all, const struct cpu_check *check,
                                double part_ns);
