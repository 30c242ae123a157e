/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the latency of a request by cause, from the request's end backward: what the last thread
 * that worked for it did, its waits, the queue in which its task lay, and what the thread that
 * submitted the task did before. Where a thread waited for another one that worked for the same
 * request, the other one's time counts. The parts touch, so they add up to the latency.
 */
#pragma once

#include "analysis/critical_path.h"
#include "base/vec.h"
#include "profile/requests.h"
#include "timeline/timeline.h"

enum request_cause {
    CAUSE_CPU,
    CAUSE_RUNNABLE,  /* ready to run, without a processor or without a carrier */
    CAUSE_THROTTLED, /* ready to run, but the container was out of CPU */
    CAUSE_LOCK,      /* monitors: synchronized, Object.wait, Thread.join */
    CAUSE_PARK,      /* java.util.concurrent */
    CAUSE_QUEUE,     /* the task lay in an executor's queue */
    CAUSE_POOL,      /* waiting for a pooled connection */
    CAUSE_IO,
    CAUSE_FAULT, /* pages of memory had to be read from a disk */
    CAUSE_SLEEP,
    CAUSE_GC,
    CAUSE_SAFEPOINT,
    CAUSE_CLASS_LOAD, /* a class was loaded or initialized, by this thread or another one */
    CAUSE_UNKNOWN,
    REQUEST_CAUSES
};

/* The name that a cause has in JSON and in stored profiles. */
const char *request_cause_name(enum request_cause cause);
/* What people read in its place: "waiting for a processor". */
const char *request_cause_text(enum request_cause cause);
/* The text of the cause with this name; the name itself if no cause has it. */
const char *request_cause_text_of(const char *name);

/*
 * Returns whether all parts with this cause count as one cause, even if their objects have
 * different names.
 */
static inline bool request_cause_is_one(enum request_cause cause)
{
    return cause == CAUSE_GC || cause == CAUSE_CLASS_LOAD;
}

struct request_part {
    uint64_t start, end; /* ns since the timeline's origin */
    /* of the timeline, or TL_NONE; for a queue the thread that took the task */
    uint32_t thread;
    uint32_t node;   /* the node whose context has the stack and the object; or TL_NONE */
    uint32_t ends;   /* the node that ended a wait, or TL_NONE */
    uint32_t work;   /* number of requests.works, or REQUEST_NONE */
    uint32_t behind; /* 1 + the thread of the timeline that kept this one waiting; 0: see node */
    enum request_cause cause;
    /* class, peer, pool or pause; or NULL. Lives as long as the timeline and the requests */
    const char *object;
};

struct request_parts {
    VEC(struct request_part) rows; /* in chronological order */
    uint64_t ns[REQUEST_CAUSES];
};

/* Frames of the timeline or of the requests' samples, innermost first. */
struct frames_ref {
    uint32_t first, n;
    bool sampled;
};

/* What a thread did during a part of some time. */
struct thread_activity {
    uint64_t ns;
    uint32_t thread;
    enum request_cause kind;
    struct frames_ref frames;
};

struct thread_activities {
    VEC(struct thread_activity) rows;
};

struct request_ledger;

/*
 * Creates the ledger of requests and their timeline, both of which must outlive it. Returns 0 or
 * -ENOMEM.
 */
int request_ledger_new(struct request_ledger **ret, const struct requests *r,
                       const struct timeline *t) must_check;
void request_ledger_free(struct request_ledger *l);
DEFINE_CLEANUP(struct request_ledger *, request_ledger_free)

/* Divides a request's latency. ret is cleared first and may be reused. Returns 0 or -ENOMEM. */
int request_parts(struct request_ledger *l, const struct request *q,
                  struct request_parts *ret) must_check;
/*
 * Returns how much of ns[CAUSE_CPU] can be time without a processor: the agent does not examine
 * runs of less than 2 ms, nor see delays of less than 0.2 ms in longer runs, and other recorders
 * examine none.
 */
uint64_t request_unexamined_ns(const struct request_ledger *l, const struct request_parts *p);
void request_parts_release(struct request_parts *p);

/*
 * The CPU time of all threads that worked for a request, including those that worked concurrently,
 * until the request ended.
 */
struct request_cpu {
    uint64_t ns;
    /*
     * The part of `ns` in threads that lived long enough to be sampled reliably, and the number of
     * CPU samples in their work for the request.
     */
    uint64_t sampled_ns, samples;
    /*
     * sampled_ns and samples, multiplied by the number of samples left out for each one that was
     * kept
     */
    uint64_t left_out_ns, left_out_samples;
};

/* Computes the CPU time of a request. Returns 0 or -ENOMEM. */
int request_cpu(struct request_ledger *l, const struct request *q,
                struct request_cpu *ret) must_check;

/*
 * Returns how much of ns[CAUSE_CPU] can be waits that were left out to stay within the budget:
 * nothing if none were, and without the time of threads whose CPU samples show how long they ran.
 */
uint64_t request_unconfirmed_ns(const struct request_ledger *l, const struct request *q,
                                const struct request_parts *p);

/*
 * Appends to *ret what the part's thread itself did. Appends nothing for a part in which the task
 * lay in a queue or another thread kept it waiting (request_part_culprits). Returns 0 or -ENOMEM.
 */
int request_part_stacks(struct request_ledger *l, const struct request_part *p,
                        struct thread_activities *ret) must_check;
/*
 * Appends to *ret what the threads for which a part waited did: the owners of the lock, the thread
 * that ended the wait, or the worker that was busy while the task lay in the queue. Appends nothing
 * where that is unknown. Returns 0 or -ENOMEM.
 */
int request_part_culprits(struct request_ledger *l, const struct request_part *p,
                          struct thread_activities *ret) must_check;

/*
 * Returns the method, "package.Class.method", of the i-th frame. Stores its line, 0 when unknown,
 * in *ret_line, which may be NULL.
 */
const char *frames_ref_method(const struct request_ledger *l, const struct frames_ref *f,
                              uint32_t i, uint32_t *ret_line);
/*
 * Returns the program's innermost method, or the innermost method of all when the program has none;
 * NULL when there are no frames.
 */
const char *frames_ref_program(const struct request_ledger *l, const struct frames_ref *f);
