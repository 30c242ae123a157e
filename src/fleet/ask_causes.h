/* SPDX-License-Identifier: Apache-2.0 */
/* Where the latencies of requests went: the causes of each request of each service. */
#pragma once

#include "base/json.h"
#include "fleet/ask.h"

struct cause_sum {
    uint32_t service, request, cause; /* texts of cause_sums.texts */
    uint64_t stack, ns;
    uint64_t count; /* requests of which this was the first cause */
};

struct cause_sums {
    struct strpool texts;
    VEC(struct cause_sum) list; /* by service and request, the largest first */
    struct map at;
};

/* Reads them; the view is one of the type FLEET_LATENCY. */
int cause_sums_read(struct cause_sums *ret, struct store *s, struct store_read *r) must_check;
void cause_sums_release(struct cause_sums *c);

/*
 * Writes the member "causes" of a request of a service, and how many of `all` such requests the
 * causes describe. The details of the others were not kept.
 */
int cause_sums_put(struct asker *a, struct store_read *r, const struct cause_sums *c,
                   const char *service, const char *request, uint64_t all) must_check;
