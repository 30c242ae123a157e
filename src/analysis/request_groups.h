/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the slow requests of a name are slow: their causes compared with those of the typical ones.
 */
#pragma once

#include "analysis/request_estimate.h"
#include "analysis/request_ledger.h"

struct group_options {
    double share;     /* the slowest share of the requests of a name counts as slow */
    uint64_t over_ns; /* or, if not 0, all that took longer */
};

/* How much of the slow requests' time one thread and method (the culprit) explains. */
struct group_culprit {
    const char *thread;      /* the thread with the largest part of it; NULL: unknown */
    uint32_t threads;        /* the number of threads that did the same */
    const char *method;      /* the program's innermost method, or NULL */
    enum request_cause kind; /* what the thread did there most of the time */
    struct frames_ref frames;
    double ns; /* for each slow request */
};

struct group_cause {
    enum request_cause cause;
    const char *object;         /* class, peer, pool; or NULL */
    double slow_ns, typical_ns; /* for each request */
    double share;               /* share of the difference of the means */
    /* Half of 95 % intervals; 0 where the details of all requests were kept. */
    double slow_error_ns, typical_error_ns, share_error;
    uint32_t slow_requests, typical_requests; /* those in the group that had this cause */
    bool uncertain;             /* the difference is below its error, or too few requests show it */
    uint32_t largest;           /* in how many of group.slow no other cause took more time */
    double most_of, most_error; /* the same for all slow requests, estimated */
    struct group_culprit own;   /* where the slow requests' own threads were */
    struct group_culprit culprit; /* what they waited for */
    const char *busy_with;        /* for a queue: the request that kept the worker busy, or NULL */
};

struct request_group {
    uint32_t name;     /* number of requests.names */
    uint64_t limit_ns; /* the least latency of a slow request */
    uint64_t all;      /* slow requests, kept or not */
    uint64_t wanted;   /* how many the share asked for; `all` differs where latencies are equal */
    uint32_t kept;     /* those in the recording: the last ones of the name in by_name */
    /* Indices of requests.list. Where more than a few are slow, only those with a weight. */
    VEC(uint32_t) slow, typical;
    bool equal;                         /* all slow ones count the same, whatever their weight */
    double slow_weight, typical_weight; /* sums */
    double slow_mean_ns, typical_mean_ns;
    double slow_error_ns, typical_error_ns; /* of the means: half of 95 % intervals */
    /*
     * The largest share first, or what is left of it when the error is subtracted. Those that are
     * uncertain come after those that certainly made requests slow.
     */
    VEC(struct group_cause) causes;
};

/*
 * Returns 0, -ENOENT (no request of the name is slow) or -ENOMEM. Texts live as long as the ledger,
 * the timeline and the requests.
 */
int request_group(struct request_ledger *l, const struct requests *r, const struct timeline *t,
                  uint32_t name, const struct group_options *o,
                  struct request_group *ret) must_check;
void request_group_release(struct request_group *g);

/*
 * What the requests of a name spent their time on: sums over those with a weight, multiplied by it.
 */
struct name_sums {
    uint64_t requests; /* how many have a weight */
    double weight, latency_ns, cpu_ns, ns[REQUEST_CAUSES];
    /*
     * Half the 95 % intervals of the means, and the number of requests that had the cause. CPU time
     * that CPU samples do not confirm has an error for that, too.
     */
    double cpu_error_ns, error_ns[REQUEST_CAUSES];
    uint32_t with[REQUEST_CAUSES];
};

/*
 * Sums this up for each of requests.names. Returns 0 or -ENOMEM; the caller frees the array.
 */
int request_sums(struct request_ledger *l, const struct requests *r,
                 struct name_sums **ret) must_check;

/*
 * When threads worked for some requests: sorted by thread, then by time; the intervals of a thread
 * do not overlap.
 */
struct request_time {
    uint64_t thread;
    int64_t start_ns, end_ns;
};

struct request_times {
    VEC(struct request_time) rows;
    size_t requests; /* the number of requests */
};

/*
 * Computes this for all requests in the recording or, with o, for the slow ones of each name.
 * Returns 0 or -ENOMEM.
 */
int request_times(const struct requests *r, const struct group_options *o,
                  struct request_times *ret) must_check;
bool request_times_hold(const struct request_times *t, uint64_t thread, int64_t time_ns);
void request_times_release(struct request_times *t);
