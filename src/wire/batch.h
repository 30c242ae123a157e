/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles as they travel between programs, whatever the format: OTLP, pprof and Pyroscope's
 * messages are decoded into a batch and encoded from one. A batch holds any number of profiles,
 * which share tables of strings, frames, stacks, sets of labels and links. Every table stores equal
 * contents once and numbers them in order of arrival. Number 0 is the empty string, the stack
 * without a frame, the set without a label, and no link. Numbers that a batch hands out are within
 * its tables. A zeroed batch is empty and valid, and has the usual limits.
 *
 * The adding functions return the number, -ENOMEM, or -E2BIG beyond a limit.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* Numbers of strings. Texts are UTF-8. */
struct wire_type {
    uint32_t name, unit; /* "cpu" and "nanoseconds" */
};

struct wire_frame {
    uint32_t name;      /* "pkg.Class.method" for Java; a function's name otherwise */
    uint32_t signature; /* the JVM's descriptor, "(I)V"; the empty string if it is not known */
    uint32_t file;
    /*
     * what runs in it: "jvm", "native", "kernel" and others of OpenTelemetry's attribute
     * profile.frame.type, or, from jvmscope, one of profile's frame_kind_names
     */
    uint32_t kind;
    int32_t line; /* counts from 1; 0: unknown */
};

/* A stack is a path to the root: its innermost frame, and the stack of the callers. */
struct wire_node {
    uint32_t parent, frame; /* a parent has a smaller number */
    uint32_t depth;         /* frames from here to the root; 0 for the root */
};

struct wire_label {
    uint32_t key, value;
};

/* Labels of a set are sorted by the bytes of their keys, which are distinct. */
struct wire_label_set {
    uint32_t first, len; /* of wire_batch.labels */
};

struct wire_link {
    uint8_t trace[16], span[8];
};

struct wire_sample {
    uint64_t time_ns; /* since 1970; 0: at an unknown time within its profile */
    int64_t value;    /* in the unit of its type */
    uint32_t type;    /* of its profile's types */
    uint32_t node, labels, link;
};

struct wire_profile {
    uint8_t id[16];    /* zeros: the sender gave none */
    uint32_t resource; /* a set of labels of what was profiled: service.name, host.name ... */
    uint32_t labels;   /* a set of labels that all samples share */
    uint64_t start_ns, duration_ns; /* since 1970; 0: unknown */
    VEC(struct wire_type) types;
    struct wire_type period_type; /* what was counted to decide when to sample; 0, 0: unknown */
    uint64_t period;              /* in the unit of period_type; 0: unknown */
    VEC(struct wire_sample) samples;
};

/*
 * Limits on what is decoded. 0 means the default of each.
 */
struct wire_limits {
    size_t bytes;      /* of memory for all tables and samples; usually 256 MiB */
    size_t profiles;   /* usually 10,000 */
    size_t samples;    /* in all profiles; usually 4 million */
    size_t labels;     /* of one set; usually 128 */
    size_t label_text; /* bytes of a label's key or value; usually 4,096 */
    uint32_t depth;    /* frames of a stack; usually 4,096 */
    size_t entries;    /* of each table in a message; usually 1 million */
    size_t frames;     /* of all stacks in a message, repeated ones too; usually 32 million */
};

/*
 * The limits for local files, which may be large: the memory that they need is bounded by their
 * size.
 */
extern const struct wire_limits wire_limits_wide;

/* Labels that have a meaning for us. */
#define WIRE_REQUEST "request"         /* of samples: the request for which their thread worked */
#define WIRE_THREAD  "thread.name"     /* of samples: OpenTelemetry's name for it */
#define WIRE_UNSURE  "jvmscope.unsure" /* of samples: "true" if it may be an estimate of zero */
#define WIRE_SERVICE "service.name"    /* of a resource, as OpenTelemetry calls it */
/* of a profile: a sentence about the measurements on which its figures are based */
#define WIRE_NOTE "jvmscope.note"

struct wire_batch {
    struct wire_limits limits;
    size_t used; /* bytes, as limits.bytes counts them */
    struct strpool strings;
    VEC(struct wire_frame) frames;
    VEC(struct wire_node) nodes;
    VEC(struct wire_label) labels;
    VEC(struct wire_label_set) sets;
    VEC(struct wire_link) links;
    VEC(struct wire_profile) profiles;
    size_t samples;     /* in all profiles */
    const char *beyond; /* which limit was reached, once a function has returned -E2BIG */
    struct map frame_index, node_index, set_index, link_index;
};

void wire_batch_release(struct wire_batch *b);
/* Notes which limit was reached, as "too many samples". Returns -E2BIG. */
int wire_beyond(struct wire_batch *b, const char *what);

/* Adds a text of len bytes. What is not UTF-8 is replaced. */
int64_t wire_string(struct wire_batch *b, const char *text, size_t len) must_check;
int64_t wire_frame(struct wire_batch *b, const struct wire_frame *frame) must_check;
/* Adds the stack that consists of `frame`, the innermost one, and the stack `parent`. */
int64_t wire_node(struct wire_batch *b, uint32_t parent, uint32_t frame) must_check;
/*
 * Adds a set of labels. Sorts the given ones in place; of labels with the same key the last one
 * counts, and those with an empty value are left out.
 */
int64_t wire_labels(struct wire_batch *b, struct wire_label *labels, size_t n) must_check;
/* Adds a set of labels like wire_labels: those of `set` with other labels on top of it. */
int64_t wire_labels_with(struct wire_batch *b, uint32_t set, const struct wire_label *labels,
                         size_t n) must_check;
int64_t wire_link(struct wire_batch *b, const struct wire_link *link) must_check;
/*
 * Adds an empty profile, the last one of b->profiles. Pointers to earlier profiles are not valid
 * any more.
 */
int64_t wire_profile(struct wire_batch *b) must_check;
/* Adds a type to a profile, even if the profile has an equal one, and returns its number in it. */
int64_t wire_type(struct wire_batch *b, struct wire_profile *p, const char *name,
                  const char *unit) must_check;
/* Adds a sample to a profile. Returns 0, -ENOMEM or -E2BIG. */
int wire_sample(struct wire_batch *b, struct wire_profile *p,
                const struct wire_sample *sample) must_check;

static inline struct str wire_text(const struct wire_batch *b, uint32_t string)
{
    return strpool_get(&b->strings, string);
}

/* Returns the value of a label of a set, or an empty string if the set lacks it. */
struct str wire_label(const struct wire_batch *b, uint32_t set, const char *key);

/* What the samples of a type measure, whatever the profiler calls it. */
enum wire_metric {
    WIRE_CPU,  /* time on a processor */
    WIRE_WALL, /* elapsed time, waiting or not */
    WIRE_ALLOC_BYTES,
    WIRE_ALLOC_OBJECTS,
    WIRE_LIVE_BYTES,
    WIRE_LIVE_OBJECTS,
    WIRE_LOCK_NS, /* time blocked */
    WIRE_LOCK_COUNT,
    WIRE_EXACT_NS, /* exactly measured self time of calls */
    WIRE_OTHER     /* anything else, described by the type's name and unit */
};

struct wire_meaning {
    enum wire_metric metric;
    /*
     * CPU and elapsed time: a value times this is in nanoseconds, and a value divided by `count` is
     * a number of samples; 0: unknown, because the sampling period is not known.
     */
    uint64_t ns, count;
    /*
     * Another type of the profile states the same in another unit, as pprof's "samples" does next
     * to "cpu". Sums must include only types for which this is false.
     */
    bool repeated;
};

/* Returns what the samples of a type of the profile measure. type: its number. */
struct wire_meaning wire_meaning(const struct wire_batch *b, const struct wire_profile *p,
                                 uint32_t type);
