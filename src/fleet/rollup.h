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
 * Puts the samples into buckets of step_s seconds and visits each type and bucket. traces: whether
 * samples of different traces stay apart. Returns 0, -ENOMEM, or the first result of the visit that
 * is not 0, which ends the visits.
 */
int rollup_batch(const struct batch *b, int64_t step_s, bool traces, rollup_visit *visit,
                 void *context) must_check;
