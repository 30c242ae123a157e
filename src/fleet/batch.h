/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of one upload: samples by stack and time, and latencies of requests. It is made from
 * a recording or a profile of another format, and any store can add it. Texts are numbers in
 * `strings`.
 *
 * The batch of an upload is made in a process of its own (fleet/reading.h), because uploads are not
 * trusted: batch_pack and batch_unpack transfer it from that process.
 */
#pragma once

#include "base/buf.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "fleet/hash.h"

#include <stdbool.h>
#include <stdint.h>

/* What runs in a frame. How Java code was compiled differs from run to run and is not kept. */
enum fleet_kind { FLEET_JAVA, FLEET_NATIVE, FLEET_KERNEL, FLEET_STUB, FLEET_MARK, FLEET_KINDS };

/* Times are rounded down to this many seconds, the finest resolution of a store. */
enum { FLEET_BUCKET_S = 10 };

/* The unit of a type whose samples stand for a time that is not stated: their weight is 0. */
#define FLEET_TIMELESS "samples"
/*
 * The units of times that are based on readings of a clock, and of bytes that are estimated from
 * samples of allocations. Their samples count the readings or samples; figures based on few of
 * these are meaningless (profile_least_weight).
 */
#define FLEET_READ      "nanoseconds by readings"
#define FLEET_ESTIMATED "bytes by samples"
/* The unit of live bytes that are estimated where there may be none (profile_site_unsure). */
#define FLEET_UNSURE "bytes within their error"

struct fleet_type {
    uint32_t name, unit; /* "cpu", "samples" ... and "nanoseconds", "bytes", "count" */
};

struct fleet_frame {
    struct fleet_hash hash;
    uint32_t label;
    uint8_t kind; /* enum fleet_kind */
};

struct fleet_stack {
    struct fleet_hash hash;
    uint32_t first, depth; /* frames in `path`, the outermost first */
};

/* A frame of the stack that was added last, and the name of the stack that ends with it. */
struct fleet_named {
    uint32_t frame;
    struct fleet_hash hash;
};

struct fleet_sample {
    int64_t start_s; /* since 1970, a multiple of FLEET_BUCKET_S */
    uint32_t type, stack;
    uint32_t request, trace; /* number + 1 in requests and traces; 0: none */
    uint64_t count, weight;  /* the number of samples, and what they add up to in the type's unit */
};

struct fleet_count {
    uint32_t bucket; /* base/latency.h */
    uint64_t count;
};

/* What a name denotes: a request, or a figure of the VM (fleet/figures.h). */
enum fleet_name_kind { FLEET_REQUEST, FLEET_FIGURE, FLEET_NAME_KINDS };

struct fleet_name {
    uint32_t text, kind;
};

/*
 * The requests of one name that ended in one bucket of time, or the readings of a figure, with
 * their values in place of latencies.
 */
struct fleet_latency {
    int64_t start_s;
    uint32_t request;        /* number in requests */
    uint32_t first, buckets; /* in counts */
    uint64_t count, errors, total_ns, max_ns;
};

/*
 * The kind of a finding about a slow request: its text is "UPLOAD TRACE ID NAME"; "-" for no trace.
 */
#define FLEET_SLOW_REQUEST "slow request"

/*
 * A cause that made requests slow; its text is "NAME: CAUSE", and its weight the time that it cost
 * the requests.
 */
#define FLEET_SLOW_CAUSE "slow requests"

/* A method that ran while all other threads waited for a safepoint. */
#define FLEET_LATE_THREAD "late to safepoints"
/* The container used up its CPU quota. */
#define FLEET_OUT_OF_CPU "out of CPU"
/* A part of an upload was not read. */
#define FLEET_INCOMPLETE "incomplete"

/* The types of samples that divide the latencies of requests by cause (fleet/reading_causes.h). */
#define FLEET_LATENCY         "latency"
#define FLEET_LATENCY_SLOW    "latency_slow"
#define FLEET_LATENCY_TYPICAL "latency_typical"

/*
 * The groups of requests that have these types: all, the slowest hundredth of a name in its upload,
 * and the middle half of a name in its upload.
 */
enum fleet_group { FLEET_ALL, FLEET_SLOW, FLEET_TYPICAL, FLEET_GROUPS };

extern const char *const fleet_latency_types[FLEET_GROUPS];

/* A finding: something notable that a recording shows about its program. */
struct fleet_finding {
    int64_t start_s;
    uint32_t kind, text;
    uint64_t count, weight_ns; /* how often, and how much time it explains; 0: unknown */
};

/* A label of the profiled program, when the upload itself names the program. */
struct fleet_origin_label {
    uint32_t key, value;
};

struct batch {
    struct strpool strings;
    VEC(struct fleet_origin_label) origin;
    VEC(struct fleet_type) types;
    VEC(struct fleet_frame) frames;
    VEC(struct fleet_stack) stacks;
    VEC(uint32_t) path; /* numbers of frames */
    VEC(struct fleet_name) requests;
    VEC(struct fleet_hash) traces;
    VEC(struct fleet_sample) samples; /* sorted, each key once, after batch_close */
    VEC(struct fleet_latency) latencies;
    VEC(struct fleet_count) counts;
    VEC(struct fleet_finding) findings;
    int64_t start_ns, end_ns; /* of the recording, since 1970; 0: unknown */
    uint64_t lost;            /* samples that the recording says were lost */
    /* Indexes while it is filled. */
    struct map frame_of, stack_of, request_of, trace_of;
    VEC(struct fleet_named) last; /* the last stack */
};

/* Limits on the contents of a batch, for batch_check. */
struct batch_limits {
    uint64_t depth, stacks, samples, text, requests;
};

void batch_release(struct batch *b);

/*
 * batch_type, batch_frame, batch_stack, batch_name and batch_trace return the number of what they
 * add, which is the same for equal contents, or -ENOMEM or -E2BIG.
 */
int64_t batch_type(struct batch *b, const char *name, const char *unit) must_check;
/*
 * Adds a frame. Makes names of generated classes in the label of a Java frame stable
 * (fleet/stable.h).
 */
int64_t batch_frame(struct batch *b, enum fleet_kind kind, const char *label,
                    size_t len) must_check;
/* Adds a stack. frames: numbers that batch_frame returned, the outermost first. */
int64_t batch_stack(struct batch *b, const uint32_t *frames, size_t depth) must_check;
int64_t batch_name(struct batch *b, enum fleet_name_kind kind, const char *name,
                   size_t len) must_check;
int64_t batch_trace(struct batch *b, const struct fleet_hash *trace) must_check;
/* Adds a sample at time_ns, in ns since 1970; sets sample.start_s from it. Returns 0 or -ENOMEM. */
int batch_sample(struct batch *b, int64_t time_ns, struct fleet_sample sample) must_check;

/*
 * Adds a finding at time_ns, in ns since 1970. kind: such as FLEET_SLOW_REQUEST. Returns 0 or
 * -ENOMEM.
 */
int batch_finding(struct batch *b, int64_t time_ns, const char *kind, const char *text,
                  uint64_t count, uint64_t weight_ns) must_check;

/* Sorts the samples and adds up those that differ in count and weight alone. Returns 0. */
int batch_close(struct batch *b) must_check;
/* Adds `seconds`, rounded down to a multiple of FLEET_BUCKET_S, to all times. */
void batch_shift(struct batch *b, int64_t seconds);
/* Checks that the batch is within the limits. Returns 0, or -E2BIG with a sentence in why. */
int batch_check(const struct batch *b, const struct batch_limits *limits,
                struct buf *why) must_check;
/*
 * Stores the times of the first and the last bucket of a batch. Returns false, and stores 0, when
 * it is empty.
 */
bool batch_span(const struct batch *b, int64_t *ret_first, int64_t *ret_last);

/* Appends the batch in the form that batch_unpack reads. buf_error(to) returns errors. */
void batch_pack(const struct batch *b, struct buf *to);
/*
 * Reads a batch that batch_pack wrote, checks every number in it, and advances the cursor past it.
 * Returns 0, -ENOMEM or -EBADMSG.
 */
int batch_unpack(struct batch *ret, struct cursor *from) must_check;

static inline int64_t fleet_floor(int64_t seconds, int64_t step)
{
    int64_t rest = seconds % step;
    return seconds - (rest < 0 ? rest + step : rest);
}
