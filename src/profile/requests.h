/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of a recording: when each began and ended, which threads worked for it and when, and
 * what they called (doc/format.md, jvmscope.Request and the events that follow it). Spans of
 * async-profiler, Datadog's endpoints and any event with a field that JFR marks as contextual are
 * also requests, of one thread. In addition this reads what the ledger of a request
 * (request_ledger.h) needs and the timeline lacks: CPU samples, the peers of reads and writes, and
 * loaded classes.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define REQUEST_NONE UINT32_MAX
/* The name of the loss when requests arrived too fast to keep the details of all. */
#define REQUESTS_NOT_KEPT "details of requests"

/*
 * Times are ns since 1970. Threads are the numbers that struct tl_thread has as `id`, 0 for none.
 * Texts are numbers of requests.strings, or REQUEST_NONE.
 */
struct request {
    uint64_t id, parent; /* parent 0: none */
    int64_t start_ns, end_ns;
    uint64_t thread, end_thread;
    uint32_t name; /* number of requests.names */
    uint32_t exception;
    /*
     * The trace and span of the caller, or else those that the program's tracer had published when
     * the request was first sampled.
     */
    uint32_t trace, span;
    int32_t status; /* 0: none */
    int64_t bytes;  /* -1: unknown */
    bool beyond;    /* kept for its latency alone, beyond the random sample */
    float one_of;   /* how many requests it was chosen from when it began; 1 if that is not known */
    float weight;   /* how many requests of its name it stands for in means; can be 0 */
    /*
     * Requests of a name with the same number have about the same latency, and their weights add up
     * to the number of requests with this latency.
     */
    uint32_t stratum;
    uint32_t first_work, works;
    uint32_t first_child, children;
};

/* A thread worked for a request. The works of one request are adjacent, sorted by start. */
struct request_work {
    uint64_t request;
    int64_t start_ns, end_ns;
    int64_t queued_ns; /* time in a queue before start_ns */
    uint64_t thread, submitter;
    uint32_t hand_over;
    uint32_t owner; /* number of requests.list, or REQUEST_NONE */
};

struct request_child {
    uint64_t request;
    int64_t start_ns, end_ns;
    uint64_t thread;
    uint32_t kind, name, peer, exception, stack;
    uint32_t trace, span; /* as they were sent to the other server */
    int64_t rows;         /* -1: unknown */
};

struct request_count {
    uint32_t bucket; /* base/latency.h */
    uint64_t count;
};

struct request_name {
    uint32_t name, kind;
    /* the path of one of its requests; REQUEST_NONE: unknown, or the name contains it */
    uint32_t example;
    uint32_t first, count; /* its requests in requests.by_name, the fastest first */
    uint32_t sampled;      /* how many of these belong to the random sample */
    /*
     * whether the figures are exact and include requests that were not kept; otherwise they come
     * from the requests in the recording
     */
    bool exact;
    uint64_t all, errors, total_ns, max_ns;
    VEC(struct request_count) histogram; /* by bucket; only if exact */
};

struct request_sample {
    int64_t time_ns;
    uint64_t thread;
    uint32_t stack;
};

/* What the agent keeps one in so many of from a time on, to stay within its budget. */
struct request_thinning {
    int64_t time_ns;
    uint32_t one_of;

    enum {
        THIN_SAMPLES, /* CPU samples; a kept one is in the recording so many times */
        THIN_WAITS,   /* waits of less than 1 ms */
        THIN_PARKS,   /* parks of less than 1 ms */
        THIN_KINDS
    } kind;
};

/* What the program's tracer had published for a thread when it was sampled. */
struct request_context {
    int64_t time_ns;
    uint64_t thread;
    uint32_t trace, span; /* REQUEST_NONE: nothing */
};

/* Bytes that a thread has allocated since its last sample. */
struct request_allocation {
    int64_t time_ns;
    uint64_t thread, bytes;
};

enum request_span_kind { SPAN_IO, SPAN_CLASS_LOAD, SPAN_SAFEPOINT };

/* What else a thread did: sorted by thread, then by start. Safepoints have thread 0. */
struct request_span {
    int64_t start_ns, end_ns;
    uint64_t thread;
    uint32_t text; /* peer or path, class, operation */
    enum request_span_kind kind;
};

struct request_frame {
    uint32_t method, line; /* line 0: unknown */
};

struct request_stack {
    uint32_t first, len; /* frames, innermost first */
};

struct request_thread {
    uint64_t id;
    uint32_t name;
};

struct requests {
    VEC(struct request) list; /* sorted by start */
    VEC(uint32_t) by_name;
    VEC(struct request_work) works;
    VEC(uint32_t) by_thread; /* works sorted by thread, then by start */
    VEC(struct request_child) children;
    VEC(struct request_name) names;         /* the names with the most time first */
    VEC(struct request_sample) samples;     /* sorted by thread, then by time */
    VEC(struct request_thinning) thinnings; /* sorted by time */
    VEC(struct request_span) spans;
    /* Sorted by thread, then by time. Empty where allocations were counted by site. */
    VEC(struct request_allocation) allocations;
    /* allocations were counted by site, so what a request allocated is not known */
    bool allocations_counted;
    VEC(struct request_context) contexts; /* sorted by thread, then by time */
    VEC(struct request_stack) stacks;
    VEC(struct request_frame) frames;
    VEC(struct request_thread) threads; /* sorted by id */
    struct strpool strings;
    int64_t start_ns, end_ns; /* of the recording */
    /*
     * The time up to which exact figures count: the end of the recording or, if that is missing,
     * the last time that they were saved.
     */
    int64_t counted_ns;
    bool sampled;      /* whether the recording holds CPU samples */
    bool by_cpu_clock; /* the VM itself took them, by the CPU clocks of threads */
    uint64_t not_kept; /* requests of any name and thread that ended and are not in list */
    /* whether requests were thinned, so that not_kept is estimated from one in so many */
    bool not_kept_estimated;
    uint64_t sample_ns; /* CPU time for which a sample stands; 0: unknown */
    uint64_t gap_ns;    /* the mean CPU time between samples where most are left out; 0: unknown */
    struct map ids;     /* ids of requests: their numbers in list */
};

struct request_filter {
    const char *name, *thread; /* patterns; NULL: all */
    uint64_t from_ns, to_ns;   /* since the start of the recording; to = 0: its end */
};

/*
 * Reads a recording. Requests that do not pass the filter are left out, and exact figures are
 * available only if the filter excludes none by thread or time. Returns 0, or a negative errno with
 * the reason in why.
 */
int requests_load(struct requests *ret, const char *path, const struct request_filter *filter,
                  struct buf *why) must_check;
/*
 * Returns how many CPU samples each one that was kept stood for at a time; `samples` contains a
 * kept one as often.
 */
uint32_t requests_samples_of(const struct requests *r, int64_t time_ns);
/*
 * Returns whether waits or parks of less than 1 ms were left out at some time between from_ns and
 * to_ns.
 */
bool requests_lack_waits(const struct requests *r, int64_t from_ns, int64_t to_ns);
/* Returns whether a file is a recording with requests, without reading all of it. */
bool requests_any(const char *path);
/*
 * Returns whether a file is a recording with requests, or with contexts that the program's tracer
 * published, without reading all of it.
 */
bool requests_any_or_contexts(const char *path);
void requests_release(struct requests *r);

/* Returns how long a request took, in ns. */
static inline uint64_t request_latency(const struct request *q)
{
    return (uint64_t)(q->end_ns - q->start_ns);
}

/* Returns a text by its number; "" for REQUEST_NONE. */
static inline const char *requests_text(const struct requests *r, uint32_t text)
{
    return text == REQUEST_NONE ? "" : strpool_get(&r->strings, text).data;
}

/* Returns the name of a request. */
const char *request_name_of(const struct requests *r, const struct request *q);
/* Returns the name of a thread; "" when it is unknown. */
const char *requests_thread(const struct requests *r, uint64_t id);
/*
 * Returns the latency in ns that a share (0 to 1) of all requests does not exceed, according to the
 * exact histogram or to the requests themselves; 0 for a name without requests.
 */
uint64_t request_quantile(const struct requests *r, const struct request_name *n, double share);
/* Returns whether a name has only the requests whose details were kept, of more. */
bool requests_are_some(const struct requests *r, const struct request_name *n);
/*
 * Returns whether so few requests of the random sample lie above the quantile that it may be far
 * from that of all requests of the name.
 */
bool request_quantile_is_uncertain(const struct requests *r, const struct request_name *n,
                                   double share);
/*
 * Returns whether a quantile is only an upper bound: the histogram does not divide the first
 * microsecond.
 */
bool request_quantile_is_bound(const struct request_name *n, uint64_t ns);
/*
 * Returns the index of the first sample of a thread at or after a time. If no sample is, that of
 * the next thread's first sample, or the number of samples; so do the functions below.
 */
size_t requests_sample_at(const struct requests *r, uint64_t thread, int64_t time_ns);
/* Returns the index of the first context of a thread at or after a time. */
size_t requests_context_from(const struct requests *r, uint64_t thread, int64_t time_ns);
/*
 * Returns the last context of a thread at or before a time, or NULL when the thread has none by
 * then.
 */
const struct request_context *requests_context_at(const struct requests *r, uint64_t thread,
                                                  int64_t time_ns);
/* Returns the index in by_thread of the first work of a thread that starts at or after a time. */
size_t requests_work_at(const struct requests *r, uint64_t thread, int64_t time_ns);
/* Returns the index of the first span of a thread that starts at or after a time. */
size_t requests_span_at(const struct requests *r, uint64_t thread, int64_t time_ns);
/* Returns the request with this number in the recording; NULL when no request has it. */
const struct request *requests_find(const struct requests *r, uint64_t id);
