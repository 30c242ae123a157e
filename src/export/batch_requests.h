/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the request for which a thread worked at a given time. */
#pragma once

#include "profile/requests.h"
#include "wire/batch.h"

struct batch_request {
    uint32_t name;         /* a string of requests.strings */
    struct wire_link link; /* zero when the request belongs to no trace */
};

/* A thread's work for a request. Sorted by thread, then by start; the longer one comes first. */
struct batch_work {
    uint64_t thread;
    int64_t start_ns, end_ns;
    uint32_t request;
    uint32_t outer; /* 1 + the index of the work within which this one begins; 0: none */
};

struct batch_requests {
    struct requests r;
    VEC(struct batch_request) requests; /* in the order of r.list */
    VEC(struct batch_work) works;
};

/*
 * Loads the requests of a recording into *ret, which is zeroed before and released in any case.
 * Returns 1 if the recording has requests or traces, 0 if it has neither, or a negative errno with
 * the reason in why.
 */
int batch_requests_load(struct batch_requests *ret, const char *path, struct buf *why) must_check;
void batch_requests_release(struct batch_requests *q);
/*
 * Returns the innermost request for which a thread (a number as in profile_thread) worked at
 * time_ns since 1970, or NULL.
 */
const struct batch_request *batch_requests_at(const struct batch_requests *q, uint64_t thread,
                                              int64_t time_ns);
/*
 * Returns the trace and the span of a sample: those that the program's tracer had published at that
 * time, or else those of the sample's request (NULL: it has none).
 */
struct wire_link batch_requests_link(const struct batch_requests *q, uint64_t thread,
                                     int64_t time_ns, const struct batch_request *request);
const char *batch_requests_name(const struct batch_requests *q, const struct batch_request *one);
