/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains why the slow requests of a name are slow, by comparing their causes with those of the
 * typical ones.
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
    double doubt_ns; /* of the difference, by which causes are ranked; cpu_excess_doubt for cpu */
    uint32_t slow_requests, typical_requests; /* those in the group that had this cause */
    bool uncertain; /* the difference is below its error, or too few requests show it */
    bool hidden;    /* it is uncertain only because of waits that were left out */
    /* the number of requests of request_group.slow in which no other cause took more time */
    uint32_t largest;
    double most_of, most_error;   /* `largest` for all slow requests, estimated */
    struct group_culprit own;     /* where the slow requests' own threads were */
    struct group_culprit culprit; /* what they waited for */
    const char *busy_with;        /* for a queue: the request that kept the worker busy, or NULL */
};

struct request_group {
    uint32_t name;     /* number of requests.names */
    uint64_t limit_ns; /* the least latency of a slow request */
    uint64_t all;      /* slow requests, kept or not */
    /* the number that `share` amounts to; `all` differs when latencies are equal */
    uint64_t wanted;
    /* those that the recording contains: the last ones of the name in requests.by_name */
    uint32_t kept;
    /* Indices of requests.list. Where more than a few are slow, only those with a weight. */
    VEC(uint32_t) slow, typical;
    bool equal;                         /* all slow ones count the same, whatever their weight */
    double slow_weight, typical_weight; /* sums */
    double slow_mean_ns, typical_mean_ns;
    double slow_error_ns, typical_error_ns; /* of the means: half of 95 % intervals */
    /*
     * How much of a request's time that is shown as CPU time can be waits that were left out to
     * stay within the budget. It is also the error of the causes that it may be and that have no
     * row (hidden_waits_can_be).
     */
    double slow_hidden_ns, typical_hidden_ns;
    /*
     * The largest share first, or what is left of it when the error is subtracted. Those that are
     * uncertain come after those that certainly made requests slow.
     */
    VEC(struct group_cause) causes;
};

/*
 * Explains the slow requests of a name. Texts live as long as the ledger, the timeline and the
 * requests. Returns 0, -ENOENT (no request of the name is slow) or -ENOMEM.
 */
int request_group(struct request_ledger *l, const struct requests *r, const struct timeline *t,
                  uint32_t name, const struct group_options *o,
                  struct request_group *ret) must_check;
void request_group_release(struct request_group *g);

/*
 * Chooses the slow and the typical requests of a name and sets the members of g that describe
 * these, up to `equal`. Returns 0, -ENOENT (no request of the name is slow) or -ENOMEM.
 */
int request_choose(const struct requests *r, uint32_t name, const struct group_options *o,
                   struct request_group *g) must_check;

/* Sums of the time of a name's requests by cause, over those with a weight and multiplied by it. */
struct name_sums {
    uint64_t requests; /* how many have a weight */
    double weight, latency_ns, cpu_ns, ns[REQUEST_CAUSES];
    /*
     * Half the 95 % intervals of the means, and the number of requests that had the cause. The
     * error of CPU time also covers the time that CPU samples do not confirm.
     */
    double cpu_error_ns, error_ns[REQUEST_CAUSES];
    double cpu_doubt_ns; /* decides in place of error_ns[CAUSE_CPU] whether cpu is uncertain */
    uint32_t with[REQUEST_CAUSES];
};

/*
 * Computes these sums for each of requests.names. Returns 0 or -ENOMEM; the caller frees the array.
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
 * Computes the times for all requests in the recording or, if o is not NULL, for the slow ones of
 * each name. Returns 0 or -ENOMEM.
 */
int request_times(const struct requests *r, const struct group_options *o,
                  struct request_times *ret) must_check;
/* Returns whether a thread worked for one of the requests at this time, in ns since 1970. */
bool request_times_hold(const struct request_times *t, uint64_t thread, int64_t time_ns);
void request_times_release(struct request_times *t);
