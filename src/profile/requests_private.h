/* SPDX-License-Identifier: Apache-2.0 */
/* What the files requests*.c share. */
#pragma once

#include "profile/requests.h"

#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))

static inline uint64_t request_latency(const struct request *q)
{
    return (uint64_t)(q->end_ns - q->start_ns);
}

/* ---- requests_order.c ---- */

/* Sorts what was read, and assigns works and children to their requests. Returns 0 or -ENOMEM. */
int requests_order(struct requests *r) must_check;

/* ---- requests_find.c ---- */

int requests_threads_by_id(const void *a, const void *b);
