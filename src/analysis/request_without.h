/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latency from which the slowest hundredth of a name's requests would begin if a cause took no
 * time. The time of the cause is subtracted from each request's latency. That other requests would
 * then wait less is not taken into account, so the answer is more likely too high than too low.
 */
#pragma once

#include "analysis/request_groups.h"

/*
 * The latency that 99 % of the requests would not exceed without the cause, with its 95 % interval
 * from low_ns to high_ns; with_ns is the same percentile with the cause, counted in the same way.
 */
struct request_without {
    uint64_t p99_ns, low_ns, high_ns, with_ns;
};

/*
 * Computes ret[k] for each of the group's first n causes. Requests whose details were not kept are
 * represented by kept ones of about the same latency. Returns 0 or -ENOMEM.
 */
int request_without(struct request_ledger *l, const struct requests *r,
                    const struct request_group *g, size_t n,
                    struct request_without *ret) must_check;
