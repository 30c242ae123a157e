/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the CPU time of requests with what CPU samples show. The threads' CPU clocks take these
 * samples, so they leave out times that only look like CPU time: waits within the VM that leave no
 * event, and times without a processor that were too short to be examined. Where the agent left
 * short waits out to stay within its budget, these look like CPU time as well.
 *
 * Its functions begin with cpu_ or hidden_waits_.
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

/* What waits that were left out may have taken, summed over some requests with their weights. */
struct hidden_waits {
    double unsampled_ns; /* CPU time of threads whose CPU samples do not show how long they ran */
    double lacking;      /* the weight of the requests in which waits may be missing */
};

/* Adds a request and its parts. */
void hidden_waits_add(struct hidden_waits *h, const struct request_ledger *l,
                      const struct requests *r, const struct request *q,
                      const struct request_parts *p, double weight);

/* How much of the mean time that is shown as CPU time can be waits that were left out. */
struct hidden_time {
    double unsampled_ns; /* in threads without enough CPU samples; is added to the error of cpu */
    double ns;           /* in all threads; is added to the errors of the causes that it may be */
};

/*
 * Returns it for requests of this weight. cpu_ns, error_ns: the mean of the cause cpu, and its
 * error as CPU samples show it.
 */
struct hidden_time hidden_waits_mean(const struct hidden_waits *h, double weight, double cpu_ns,
                                     double error_ns);
/* Returns whether waits that were left out may be part of a cause. */
bool hidden_waits_can_be(enum request_cause cause);
