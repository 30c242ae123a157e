/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of a batch in the buckets of one of a store's resolutions. */
#pragma once

#include "fleet/batch.h"
#include "fleet/block.h"

/*
 * Called for each type and bucket that has samples, by type and then by time. The entries are
 * settled; their stacks are numbers in the batch, requests and traces such numbers + 1, or 0.
 */
typedef int rollup_visit(void *context, uint32_t type, int64_t start_s, struct fleet_entries *e);

/*
 * step_s: the width of a bucket. traces: whether samples of different traces stay apart. Stops at
 * the first result of the visit other than 0 and returns it; -ENOMEM.
 */
int batch_rollup(const struct batch *b, int64_t step_s, bool traces, rollup_visit *visit,
                 void *context) must_check;
