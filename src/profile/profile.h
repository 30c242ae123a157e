/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile: where time, memory or waiting goes, as samples whose stacks share one tree. Readers
 * fill it; views, ranked tables and exporters are made from it. It needs libc only. Strings,
 * methods, frames, threads and nodes are numbered in order of arrival, and the numbers are valid as
 * long as the profile. The adding functions return the number (the same one for equal contents),
 * -ENOMEM, or -E2BIG (more than 2^32), and change nothing on failure. Node 0 is the root: the stack
 * without a frame. A node's parent has a smaller number than the node.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What runs in a frame. A mark is not a frame but a remark of the profiler in its place, such as
 * "[truncated]" or "[not walkable]".
 */
enum frame_kind {
    FRAME_JAVA, /* Java code; how it was compiled is not known */
    FRAME_INTERPRETED,
    FRAME_COMPILED,
    FRAME_INLINED,
    FRAME_NATIVE,
    FRAME_KERNEL,
    FRAME_STUB, /* code that the VM generates: stubs, adapters */
    FRAME_MARK,
    FRAME_KINDS
};

/* What samples measure. Each metric is a profile of its own within the recording. */
enum profile_metric {
    PROFILE_CPU,        /* samples of threads that used a CPU; weight 1 each */
    PROFILE_WALL,       /* samples by elapsed time, waiting or not; weight 1 each */
    PROFILE_ALLOCATION, /* weight in bytes */
    PROFILE_LOCK,       /* weight in nanoseconds blocked */
    PROFILE_EXACT,      /* weight in nanoseconds of exactly measured self time */
    PROFILE_METRICS
};

enum profile_unit { UNIT_SAMPLES, UNIT_BYTES, UNIT_NS };

struct profile_metric_info {
    const char *name;  /* used on the command line and as a key in JSON */
    const char *title; /* for a person */
    enum profile_unit unit;
};

extern const struct profile_metric_info profile_metrics[PROFILE_METRICS];
extern const char *const frame_kind_names[FRAME_KINDS];

/*
 * All texts are numbers in `strings`. Class names have the form of Class.getName(). For native
 * frames the class name is that of the library.
 */
struct profile_method {
    uint32_t class_name, name, signature, file; /* signature and file may be the empty string */
    uint32_t label;                             /* "pkg.Class.name", by which tables rank */
};

enum { PROFILE_LINES = 1 << 24 }; /* lines from this number on are treated as unknown */

struct profile_frame {
    uint32_t method;
    int32_t line; /* counts from 1; 0: unknown */
    enum frame_kind kind;
};

struct profile_node {
    /* 0 ends a list of children, because the root is nobody's child */
    uint32_t parent, frame, first_child, next_sibling;
};

struct profile_thread {
    uint64_t id; /* the Java thread id, or the recording's own number when there is none */
    uint32_t name, group;
    uint32_t metrics; /* 1u << metric for each metric of which the thread has a sample */
};

struct profile_sample {
    uint64_t time_ns; /* from the start of the recording */
    uint64_t weight;
    uint32_t thread, node;
};

struct profile_samples {
    struct profile_sample *data;
    size_t len, cap;
};

/*
 * What is kept of samples that were summed up: their number, and the sum of their squared weights.
 */
struct profile_spread {
    uint64_t samples;
    double squares;
};

struct profile_spreads {
    struct profile_spread *data;
    size_t len, cap;
};

struct profile_series {
    struct profile_samples samples; /* in order of arrival, not of time */
    struct profile_spreads spread;  /* by sample, if weights are estimates and sums of several */
    /*
     * For views by time that need no single samples (LOAD_CELLS): samples are sums over cells of
     * time, and have the time of their cell's beginning. `merged` has the same with all threads
     * merged, in shorter cells. threads_merged: there are too many threads to keep them apart, so
     * `samples` has only merged ones.
     */
    struct profile_samples merged;
    uint64_t cell_ns, merged_cell_ns; /* 0: samples have times of their own */
    bool threads_merged;
    uint64_t interval_ns; /* the requested sampling interval; 0: unknown */
    /* a weight is what the sample stands for, given its probability of being taken */
    bool estimated;
    /*
     * of samples that were thinned: the number of samples, and the sum of their squared weights,
     * for each unit of weight; 0: all samples are there
     */
    double kept_share, kept_squares;
    bool listed_only; /* the file omits what is below a cutoff and does not say how much that is */
    bool untimed;     /* the file has no times of its samples */
    bool stated;      /* the file declares this metric, even if no stack has any of it */
    /* a string: the text of profile_note in the file from which the samples were read; 0: none */
    uint32_t note;
};

/* The mark of CPU time that no reading of the clock gave to a method. */
#define PROFILE_UNREAD "[no reading of the clock]"

/*
 * Calls of the method at the top of a stack, all counted. Times are those of the method itself, in
 * ns.
 */
struct profile_calls {
    uint32_t node, thread;
    /*
     * samples: the number of readings on which self and raw are based; 0 when every call was timed
     */
    uint64_t calls, samples;
    int64_t self_ns, raw_ns; /* without and with the cost of counting; self is not negative */
    int64_t cost_ns;         /* the measured cost of counting: raw less self */
    uint64_t slowest_ns;     /* 0: unknown */
    int64_t open_ns;         /* the part of self_ns in calls that had not returned at the end */
    double squares;          /* of what each of the readings stands for, in ns2 */
};

/* A method whose calls were not counted or, with the reason "small", were counted but not timed. */
struct profile_left {
    uint32_t label, reason;
};

/* Where objects of a class were allocated. */
struct profile_site {
    uint32_t node, class_name;
    uint64_t objects, bytes, live_objects, live_bytes;
    uint64_t live_objects_error, live_bytes_error; /* standard errors; 0: exact */
    bool estimated;                                /* estimated from samples, not counted */
    /* false: the recording ended before live objects were determined, and they are 0 */
    bool live_known;
    /*
     * live figures are as of the VM's last collection and may include objects that are unreachable
     * now
     */
    bool uncollected;
};

/*
 * Returns whether it is possible that no object of the site is live: the 95 % interval of the
 * estimate contains zero.
 */
static inline bool profile_site_unsure(const struct profile_site *s)
{
    return s->live_bytes < 2 * s->live_bytes_error;
}

/* What the sampler reports about itself: jvmscope.SamplerCost. */
struct profile_sampler {
    bool known;
    uint64_t lost, handler_ns, handler_p50_ns, handler_p99_ns, later_ns, resumed, faults;
};

/*
 * CPU time that the kernel counted up to time_ns, for a thread without Java code or for the whole
 * process.
 */
struct profile_cpu_time {
    uint64_t time_ns, cpu_ns;
    /* "compilers", "process" ... (doc/format.md, jvmscope.CpuTime), and the thread's name */
    uint32_t what, name;
};

struct profile {
    struct strpool strings;
    VEC(struct profile_method) methods;
    VEC(struct profile_frame) frames;
    VEC(struct profile_node) nodes;
    VEC(struct profile_thread) threads;
    struct profile_series series[PROFILE_METRICS];
    VEC(struct profile_calls) calls;
    /*
     * times of calls are estimated from readings of the CPU clock; otherwise every call was timed
     */
    bool timed_by_readings;
    /*
     * Times come from a text with percentages of whole milliseconds; what it rounds to 0 is
     * unknown.
     */
    bool times_rounded;
    /*
     * Estimates of allocated bytes contain unused rests of threads' allocation buffers, which their
     * standard error does not: recordings of an earlier version.
     */
    bool rests_count;
    bool flight_recording; /* was read from one, which has the waits of Object.wait as well */
    /*
     * The bytes that the program's threads allocated by the VM's own counters, in a recording with
     * samples of allocations; 0: unknown.
     */
    uint64_t allocated;
    VEC(struct profile_left) left;
    VEC(struct profile_site) sites;
    /*
     * Exact counts without samples of the VM: the allocations of the VM itself and of code that
     * cannot be changed are missing.
     */
    bool only_counted;
    /* exact counts have the stack of every object, so that the parts of callers are exact too */
    bool every_stack;
    struct profile_sampler sampler;
    VEC(struct profile_cpu_time) cpu_times;
    /*
     * CPU time of threads without Java code as samples of PROFILE_CPU, for views that request them.
     * The stack consists of the thread's kind and its name.
     */
    struct profile_series vm;
    /*
     * The recording contains nothing but samples and settings, so it need not be searched for
     * threads, calls, requests or coverage.
     */
    bool only_samples;
    /* The types of events that a flight recording contains; known if types_known. */
    struct strpool types;
    bool types_known;
    bool lost_any;           /* the recording reports losses (profile/losses.h), or is damaged */
    uint64_t start_epoch_ns; /* wall-clock time of time 0; 0: unknown */
    uint64_t duration_ns;
    /* Names of the requests in which samples of pprof and OTLP were taken, as such samples say. */
    VEC(uint32_t) requests;
    bool is_sent;   /* pprof or OTLP */
    bool has_live;  /* such a profile has live bytes or objects */
    bool only_live; /* such a profile has only live bytes, which are treated as allocated bytes */
    struct map method_index, frame_index, thread_index;
    /*
     * Nodes that have siblings, by parent and frame, in open addressing. 0 marks a free place,
     * since the root is never looked up.
     */
    uint32_t *node_index;
    /* node_cap is 0 or a power of two; at least a quarter is free */
    size_t node_cap, nodes_indexed;
};

/* Returns an empty profile; NULL when out of memory. */
struct profile *profile_new(void);
void profile_free(struct profile *p);
DEFINE_CLEANUP(struct profile *, profile_free)

int64_t profile_string(struct profile *p, const char *text, size_t len) must_check;
/* Adds a class name, given in its internal form ("java/lang/String"), in the external form. */
int64_t profile_class_name(struct profile *p, const char *internal, size_t len) must_check;
int64_t profile_method(struct profile *p, uint32_t class_name, uint32_t name, uint32_t signature,
                       uint32_t file) must_check;
int64_t profile_frame(struct profile *p, uint32_t method, int32_t line,
                      enum frame_kind kind) must_check;
/* Prefetches what profile_frame will look up. */
void profile_frame_soon(const struct profile *p, uint32_t method, int32_t line,
                        enum frame_kind kind);
/* Returns the frame of a mark with this text. */
int64_t profile_mark(struct profile *p, const char *text) must_check;
int64_t profile_node(struct profile *p, uint32_t parent, uint32_t frame) must_check;
/*
 * profile_open_node returns the node, below a method's node `parent`, for the time of calls that
 * had not returned at the end; profile_is_open, whether a label is that of such nodes. Such a call
 * may have waited all the time, so it must not affect the rank of its method.
 */
int64_t profile_open_node(struct profile *p, uint32_t parent) must_check;
bool profile_is_open(const struct profile *p, uint32_t label);
/*
 * profile_own_frame returns the frame "[jvmscope]" for what the agent runs below a method of the
 * program; profile_own_node, the node with this frame below `parent`.
 */
int64_t profile_own_frame(struct profile *p) must_check;
int64_t profile_own_node(struct profile *p, uint32_t parent) must_check;
/*
 * Adds the thread with this id, unless the profile has it. A non-empty name replaces an earlier
 * one.
 */
int64_t profile_thread(struct profile *p, uint64_t id, const char *name, size_t len) must_check;
/*
 * Adds a sample of a metric, and extends the profile's duration to its time. Returns 0 or -ENOMEM.
 */
int profile_sample(struct profile *p, enum profile_metric metric,
                   struct profile_sample sample) must_check;

/* Returns whether the profile has samples of any metric. */
bool profile_has_samples(const struct profile *p);
/*
 * Returns whether a metric consists of counts, which are known only for the recording as a whole.
 */
bool profile_is_counted(const struct profile *p, enum profile_metric metric);
/* Returns whether samples of a metric have times of their own, by which a part can be selected. */
bool profile_is_timed(const struct profile *p, enum profile_metric metric);

/* Returns the text of a string, given its number. */
static inline struct str profile_text(const struct profile *p, uint32_t string)
{
    return strpool_get(&p->strings, string);
}

/* Returns the frame of a node other than the root. */
static inline const struct profile_frame *profile_node_frame(const struct profile *p, uint32_t node)
{
    return &p->frames.data[p->nodes.data[node].frame];
}

/*
 * Selects samples. A pattern with * or ? must match the whole name, one without matches any part of
 * it (base/pattern.h); NULL matches everything. A class matches when any frame of the stack belongs
 * to it. Times count from the recording's start.
 */
struct profile_filter {
    const char *thread, *class_name;
    uint64_t from_ns, to_ns; /* to_ns = 0: to the end */
    const char *request;     /* of pprof and OTLP, only samples of these requests are loaded */
    bool with_vm;            /* PROFILE_CPU: include threads without Java code */
    /* exclude wall-clock samples of threads that have nothing to do (profile/frame_role.h) */
    bool without_idle;
};

/* Returns the length in ns of the part of a recording that a filter selects; 0: unknown. */
uint64_t profile_span(const struct profile *p, const struct profile_filter *f);

/* One metric of a profile seen through a filter: weights by node. */
struct profile_view {
    const struct profile *profile;
    enum profile_metric metric;
    struct profile_filter filter;
    uint64_t *self, *total; /* indexed by node; total includes the node's descendants */
    uint64_t weight;        /* the weight of all samples that are counted */
    /* the part of `weight` without a method: no frame, or a mark in place of the running one */
    uint64_t unattributed;
    uint64_t own;       /* the weight of what the profiler itself ran in the program's threads */
    uint64_t open;      /* of exact times: the weight of calls that had not returned at the end */
    uint64_t idle;      /* the weight excluded by without_idle */
    uint64_t truncated; /* the weight of samples whose stack continues beyond what was recorded */
    size_t samples;     /* the number of samples that are counted */
    /* 1 for threads and nodes that pass the filter; NULL: all pass */
    uint8_t *thread_counts, *node_counts;
};

/*
 * Computes a view of a metric; filter may be NULL. Returns 0, -ENOMEM, or -ENODATA when the profile
 * has no sample of the metric at all. The profile and the patterns must outlive the view.
 */
int profile_view_init(struct profile_view *ret, const struct profile *p, enum profile_metric metric,
                      const struct profile_filter *filter) must_check;
void profile_view_release(struct profile_view *v);
/*
 * Returns how many threads with a name have samples in a view without a filter; 0 also for lack of
 * memory.
 */
size_t profile_view_threads(const struct profile_view *v);
/*
 * Returns whether the thread and the stack of a sample pass the filter of the view. The time of the
 * sample is not compared.
 */
bool profile_view_passes(const struct profile_view *v, const struct profile_sample *s);

/*
 * Calls visit for each counted sample, in order of arrival, until visit returns a value other than
 * 0. Returns this value, or 0.
 */
int profile_view_each(const struct profile_view *v,
                      int (*visit)(void *context, const struct profile_sample *s), void *context);

/*
 * Like profile_view_each, but calls visit for the samples with merged threads, if the profile has
 * any.
 */
int profile_view_each_merged(const struct profile_view *v,
                             int (*visit)(void *context, const struct profile_sample *s),
                             void *context);

/*
 * Returns an upper bound of the standard error of estimated weights. A sample drawn with the chance
 * p represents 1 / p times its size; the sum of the squares of these weights is no less than the
 * variance, and close to it where p is small.
 */
double profile_standard_error(const struct profile_view *v);

/*
 * An estimate agrees with the VM's count unless they differ by more than ALLOWED_ERRORS standard
 * errors plus ALLOWED_SHARE of the count; the latter covers what the agent's callbacks allocate.
 */
enum { ALLOWED_ERRORS = 4 };

#define ALLOWED_SHARE 0.03

/*
 * Returns the bytes that the VM itself counted, for a view of the sampled allocations of all
 * threads and classes over the whole time; 0: unknown.
 */
uint64_t profile_allocated(const struct profile_view *v);

/*
 * Fewer readings of the CPU clock than these say nothing about the time of a method or stack, and
 * fewer samples of allocations little about its bytes.
 */
enum { FEWEST_READINGS = 10 };

/* The note of such times: COUNT_TEXT of the readings, and FEWEST_READINGS. */
#define PROFILE_READINGS_SHORT "times rest on %s of the CPU clock"
#define PROFILE_READINGS_ROUGH "those from fewer than %d are rough"
#define PROFILE_READINGS_NOTE  PROFILE_READINGS_SHORT ": " PROFILE_READINGS_ROUGH

/* The note of estimated bytes: COUNT_TEXT of the samples. */
#define PROFILE_SAMPLES_NOTE "estimated from %s"

/*
 * Returns the number of samples that were kept of a view's thinned ones, which is approximate if
 * the view is a part; 0 if none was left out, as in all metrics but that of CPU samples.
 */
uint64_t profile_kept(const struct profile_view *v);

/* Returns the weight of all samples of a series. */
uint64_t profile_series_weight(const struct profile_series *series);

/*
 * Returns the number of readings on which the times of calls are based, or of samples on which
 * estimated bytes are based; 0 for other metrics, and where everything was timed or counted.
 */
uint64_t profile_readings(const struct profile *p, enum profile_metric metric);
/*
 * Returns the number of readings or samples in a note that profile_note has written into a file; 0
 * if the note has none.
 */
uint64_t profile_readings_noted(struct str text);
/*
 * Returns the weight below which a method or a stack of the view means nothing: what
 * FEWEST_READINGS readings or samples stand for on average; 0 where figures are based on none.
 */
uint64_t profile_least_weight(const struct profile_view *v);
/*
 * Returns whether the profile has counted places to which more than one stack may lead: the number
 * of objects for each stack is then estimated (doc/allocation-sites.md). A single stack at a place
 * proves nothing, because another stack that is rare may never have been walked.
 */
bool profile_may_share_places(const struct profile *p);
/* The error of these estimates, as it follows "a standard error of at most". */
#define PARTS_ERROR "1.1 % of a count of many megabytes, and 9 % of a small one"
/*
 * Appends a sentence about the measurements on which the view's figures are based; nothing where
 * they are plain counts. Every format that contains the figures contains this note. Returns the
 * length of the sentence's beginning that can stand alone; an explanation follows it. `to` must be
 * empty.
 */
size_t profile_note(const struct profile_view *v, struct buf *to);

/* A method of the ranked table. Recursive calls are counted once in the total. */
struct profile_rank {
    uint32_t label;
    enum frame_kind kind; /* the kind in which most of its total was spent */
    uint64_t self, total;
    bool few; /* self is based on too few readings or samples (profile_least_weight) */
    /* of exact allocation: self includes what is estimated from samples */
    bool estimated;
};

/*
 * Stores all methods that have a weight in *ret, which the caller frees: ordered by self, then by
 * total, then by name, and methods whose self weight is not known after the others. Marks are left
 * out. Returns 0 or -ENOMEM.
 */
int profile_rank(const struct profile_view *v, struct profile_rank **ret,
                 size_t *ret_len) must_check;

/*
 * The stacks of a view with lines and kinds merged, so that frames are methods. Node 0 is the root.
 */
struct profile_tree_node {
    uint32_t parent, first_child, next_sibling; /* children are sorted, the heaviest first */
    uint32_t label;
    enum frame_kind kind; /* the kind in which most of its total was spent */
    uint64_t self, total;
};

struct profile_tree {
    VEC(struct profile_tree_node) nodes;
};

/*
 * Makes the tree of a view. If inverted, running methods are at the root and callers are their
 * children; `self` is then the weight of the stacks whose outermost frame is at the node. Returns 0
 * or -ENOMEM.
 */
int profile_tree_init(struct profile_tree *ret, const struct profile_view *v,
                      bool inverted) must_check;
void profile_tree_release(struct profile_tree *t);
