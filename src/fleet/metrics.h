/* SPDX-License-Identifier: Apache-2.0 */
/* The current figures of the VMs in a store, in the format of Prometheus. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

/*
 * METRICS_SPAN_S: VMs that have sent nothing for this long are left out. METRICS_VMS_MAX: the most
 * VMs that are shown; the others are only counted.
 */
enum { METRICS_SPAN_S = 15 * 60, METRICS_VMS_MAX = 1000 };

struct store;

/*
 * Appends gauges of each VM, by service, version and instance. `tenant` limits them to one tenant;
 * NULL: all. now_s: the time in seconds since 1970. Returns 0, or a negative errno with the reason
 * in why.
 */
int fleet_metrics(struct store *s, const char *tenant, int64_t now_s, struct buf *out,
                  struct buf *why) must_check;
