/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the latency of a request went. It is divided back from the request's end: what the last
 * thread that worked for it did, its waits, the queue in which its task lay, and what the thread
 * that submitted the task did before. Where a thread waited for another one that worked for the
 * same request, the other one's time counts. The parts touch, so they add up to the latency.
 */
#pragma once

#include "analysis/critical_path.h"
#include "base/vec.h"
#include "model/requests.h"
#include "model/timeline.h"

enum request_cause {
    CAUSE_CPU,
    CAUSE_RUNNABLE, /* ready to run, without a processor or without a carrier */
    CAUSE_LOCK,     /* monitors: synchronized, Object.wait, Thread.join */
    CAUSE_PARK,     /* java.util.concurrent */
    CAUSE_QUEUE,    /* the task lay in an executor's queue */
    CAUSE_POOL,     /* waiting for a connection of a pool */
    CAUSE_IO,
    CAUSE_FAULT,
    CAUSE_SLEEP,
    CAUSE_GC,
    CAUSE_SAFEPOINT,
    CAUSE_CLASS_LOAD,
    CAUSE_UNKNOWN,
    REQUEST_CAUSES
};

const char *request_cause_name(enum request_cause cause);

struct request_part {
    uint64_t start, end; /* ns since the timeline's origin */
    uint32_t thread;     /* of the timeline, or TL_NONE; of a queue the one that took the task */
    uint32_t node;       /* whose context has stack and object; or TL_NONE */
    uint32_t ends;       /* the node that ended a wait, or TL_NONE */
    uint32_t work;       /* number of requests.works, or REQUEST_NONE */
    enum request_cause cause;
    const char *object; /* class, peer, pool, pause; NULL. Lives as long as timeline and requests */
};

struct request_parts {
    VEC(struct request_part) rows; /* in order of time */
    uint64_t ns[REQUEST_CAUSES];
};

/* Frames of the timeline, or of the requests' samples, innermost first. */
struct frames_ref {
    uint32_t first, n;
    bool sampled;
};

/* What a thread did in a part of some time. */
struct thread_doing {
    uint64_t ns;
    uint32_t thread;
    enum request_cause kind;
    struct frames_ref frames;
};

struct thread_doings {
    VEC(struct thread_doing) rows;
};

struct request_ledger;

/* Both must outlive the ledger. 0 or -ENOMEM. */
int request_ledger_new(struct request_ledger **ret, const struct requests *r,
                       const struct timeline *t) must_check;
void request_ledger_free(struct request_ledger *l);
DEFINE_CLEANUP(struct request_ledger *, request_ledger_free)

/* Divides a request's latency; ret is cleared first and may be used again. 0 or -ENOMEM. */
int request_parts(struct request_ledger *l, const struct request *q,
                  struct request_parts *ret) must_check;
void request_parts_release(struct request_parts *p);
/* CPU time of all threads that worked for it, beside each other too. */
int request_cpu_ns(struct request_ledger *l, const struct request *q, uint64_t *ret) must_check;

/* What the request's own thread did in a part; 0 or -ENOMEM. */
int request_part_stacks(struct request_ledger *l, const struct request_part *p,
                        struct thread_doings *ret) must_check;
/*
 * What those did meanwhile whom a part waited for: the owners of the lock, whoever ended the wait,
 * the worker that was busy while the task lay in the queue. Nothing where that is not known.
 */
int request_part_culprits(struct request_ledger *l, const struct request_part *p,
                          struct thread_doings *ret) must_check;

/* A frame's method, "package.Class.method"; its line, 0 when it is not known. */
const char *frames_method(const struct request_ledger *l, const struct frames_ref *f, uint32_t i,
                          uint32_t *ret_line);
/* The innermost method of the program; the innermost of all when there is none; NULL of no frames.
 */
const char *frames_program(const struct request_ledger *l, const struct frames_ref *f);
