/* SPDX-License-Identifier: Apache-2.0 */
/* The causes of latency, summed up for the requests of each name and service. */
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
    /* numbers of requests; each request counts in one of its sums only */
    uint64_t count[FLEET_GROUPS];
};

struct cause_sums {
    struct strpool texts;
    VEC(struct cause_sum) list; /* by service and request, the largest first */
    struct map at;
};

/*
 * Adds the samples of a group of requests from a view `r` of the group's type
 * (fleet_latency_types). Call cause_sums_sort after the last group. Returns 0 or a negative errno.
 */
int cause_sums_read(struct cause_sums *to, enum fleet_group g, struct store *s,
                    struct store_read *r) must_check;
void cause_sums_sort(struct cause_sums *c);
void cause_sums_release(struct cause_sums *c);

/*
 * Writes the member "causes" for the requests of a name and service: the causes, how many of the
 * `all` requests they describe (the details of the others were not kept), and the number and mean
 * latency of the slow and the typical ones. Returns 0 or a negative errno.
 */
int cause_sums_put(struct asker *a, const struct cause_sums *c, const char *service,
                   const char *request, uint64_t all) must_check;
