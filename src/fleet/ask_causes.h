/* SPDX-License-Identifier: Apache-2.0 */
/* Where the latencies of requests went: the causes of each request of each service. */
#pragma once

#include "base/json.h"
#include "fleet/ask.h"

/* Texts of cause_sums.texts; NO_TEXT: none. */
struct cause_place {
    uint32_t cause, object, method;
};

struct cause_sum {
    uint32_t service, request; /* texts of cause_sums.texts */
    struct cause_place place;
    uint64_t ns[FLEET_GROUPS];
    uint64_t count[FLEET_GROUPS]; /* requests of which this was the first cause */
};

struct cause_sums {
    struct strpool texts;
    VEC(struct cause_sum) list; /* by service and request, the largest first */
    struct map at;
};

/* Adds those of a group; the view is one of its type. After the last one, cause_sums_sort. */
int cause_sums_read(struct cause_sums *to, enum fleet_group g, struct store *s,
                    struct store_read *r) must_check;
void cause_sums_sort(struct cause_sums *c);
void cause_sums_release(struct cause_sums *c);

/*
 * Writes the member "causes" of a request of a service, how many of `all` such requests the causes
 * describe, and the number and mean latency of its slow and typical ones. The details of the others
 * were not kept.
 */
int cause_sums_put(struct asker *a, const struct cause_sums *c, const char *service,
                   const char *request, uint64_t all) must_check;
