/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of an upload: their latencies, and which request a sample belongs to. */
#pragma once

#include "fleet/reading.h"
#include "profile/requests.h"

struct sample_requests {
    const struct fleet_reading *how;
    struct requests requests;
    struct batch *b;
    VEC(uint32_t) names;  /* of requests.names: number + 1 in the batch */
    VEC(uint32_t) traces; /* of requests.list: number + 1 in the batch, 0 for none */
    bool any;
};

/*
 * Reads the requests of a recording, if it has any, and adds their latencies, and the slowest of
 * them as findings if the upload is kept, to the batch, which must outlive *ret. *ret is zeroed
 * before the call and released after it, even on an error. Returns 0, or a negative errno with the
 * reason in why.
 */
int sample_requests_load(struct sample_requests *ret, struct batch *b, const char *path,
                         const struct fleet_reading *how, struct buf *why) must_check;
void sample_requests_release(struct sample_requests *s);
/*
 * Sets the sample's request and trace: those for which the thread worked at this time (ns since
 * 1970). Leaves them alone when it worked for none, or when s is NULL.
 */
void sample_requests_find(const struct sample_requests *s, uint64_t thread, int64_t time_ns,
                          struct fleet_sample *sample);
