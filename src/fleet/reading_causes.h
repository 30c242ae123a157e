/* SPDX-License-Identifier: Apache-2.0 */
/* Why the requests of an upload took as long as they did. */
#pragma once

#include "fleet/reading_requests.h"

/*
 * Adds to the batch how the latencies of requests divide by cause: samples of the type
 * FLEET_LATENCY for all requests, FLEET_LATENCY_SLOW and FLEET_LATENCY_TYPICAL for the slow and for
 * the typical requests of each name, whose weights add up to the latencies. Adds the causes of slow
 * requests as findings. Does nothing for a recording without requests. Returns 0, or a negative
 * errno with the reason in why.
 */
int reading_causes_add(struct batch *b, const char *path, const struct sample_requests *s,
                       struct buf *why) must_check;
