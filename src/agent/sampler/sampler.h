/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples threads by a signal to the thread itself. In mode CPU a timer on each thread's own CPU
 * clock sends it, so a thread that does not run is not sampled and costs nothing. In mode WALL a
 * thread of the agent visits all threads in turn; it sends no signal to those that have not run
 * since its last visit, because their stack is unchanged.
 *
 * The handler makes only async-signal-safe calls, uses no object references, takes its buffers from
 * a pool, and preserves errno. It is never uninstalled, because a late signal would then cause the
 * default action.
 */
#pragma once

#include "agent/sampler/trace_context.h"
#include "agent/stacks/stack.h"
#include "agent/vm/thread_table.h"

#include <stdbool.h>
#include <stdint.h>

struct sample {
    struct thread *thread;
    uint32_t serial; /* serial number of the thread */
    uint64_t id; /* the thread's id in a recording; that of the virtual thread it carries, if any */
    uint32_t weight; /* the number of intervals that the sample stands for */
    uint64_t time_ns;
    int n;                  /* the number of frames, or -1 - enum walk_failure */
    bool truncated;         /* the stack is deeper than the requested depth */
    bool idle;              /* WALL: the thread waits in a system call */
    _Atomic uint64_t *mark; /* a word kept with the thread, passed to `idle` and `unsignalled` */
    struct jfr_frame *frames;
    struct trace_context context; /* only of samples taken in a handler */
};

struct sampler_options {
    bool wall;
    bool perf;   /* CPU: use perf_event clocks (perf.h) */
    bool kernel; /* record their kernel frames */
    uint64_t interval_ns;
    uint32_t depth;
    bool contexts; /* read what the program's tracer publishes, where the handler walks */
    /*
     * CPU with stack_vm: the handler copies stacks; sampler_drain walks them and receives the
     * samples.
     */
    bool later;
    stack_walk_fn *walk; /* NULL: no signals; JVM TI provides the stacks (jvmti.h) */
    /*
     * Called for each sample, mostly in the signal handler; must be async-signal-safe. Returns
     * false to keep the sample for sampler_drain.
     */
    bool (*on_sample)(void *context, const struct sample *s);
    /*
     * WALL: the thread has continued to do what *mark says for `weight` intervals. Not called in a
     * handler. Returns false to be called again later.
     */
    bool (*idle)(void *context, const struct thread *t, uint64_t mark, uint32_t weight);
    /*
     * CPU: at its end a thread had used `weight` intervals that no signal reported. mark is 0 when
     * no sample of it has a stack; time_ns is when it was last sampled. Not called in a handler.
     */
    void (*unsignalled)(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                        uint32_t weight);
    void *context;
    unsigned keep; /* the number of samples that can be kept for sampler_drain */
};

enum { COST_BUCKETS = 256, COST_STEP_NS = 250 };

struct sampler_counters {
    uint64_t samples;               /* sum of weights, including failures */
    uint64_t failed[WALK_FAILURES]; /* sum of weights */
    uint64_t truncated;
    uint64_t lost;             /* sum of weights: no buffer was free */
    uint64_t coalesced;        /* WALL: intervals added to the last sample without a signal */
    uint64_t threads;          /* threads being sampled */
    uint64_t uncovered;        /* those for which the kernel provided no timer */
    uint64_t handler_ns;       /* of all handlers, estimated from the mean of the measured ones */
    uint64_t handler_measured; /* the number of calls measured, a random one of eight */
    uint64_t handler_max_ns;
    uint64_t later_ns; /* CPU time for walking and passing on what handlers have copied */
    /*
     * The number of measured calls by duration, in steps of COST_STEP_NS; the last element includes
     * longer ones.
     */
    uint64_t cost[COST_BUCKETS];
};

/*
 * Starts sampling the threads of the table and all later ones. Only one sampling can run at a time.
 * Returns 0 or a negative errno with a sentence in why.
 */
int sampler_start(const struct sampler_options *o, JNIEnv *jni, struct buf *why) must_check;
/*
 * Stops sampling: no timer and no thread is left on return. Waits for up to two seconds until no
 * handler of this run is inside `on_sample`.
 */
void sampler_stop(void);
/*
 * Reports, through `unsignalled`, the intervals that no signal reported. Call it after the last
 * sampler_drain.
 */
void sampler_settle(void);
/*
 * Frees the memory of the sampling, which must have been stopped. If a handler is still running,
 * most of it stays.
 */
void sampler_release(void);
/*
 * Walks the stacks that handlers have copied, and passes these samples and those that were kept to
 * f. Call it outside signal handlers.
 */
void sampler_drain(void (*f)(void *context, const struct sample *s), void *context);
/*
 * Makes the memory for copied stacks resident, of which sampler_start makes only a little resident.
 */
void sampler_fill(void);

/*
 * Removes the timers of threads that are not Java threads, reports the samples of idle threads, and
 * finds libraries that publish contexts. Call it ten times a second.
 */
void sampler_work(void);
/*
 * Records from now on, until the next sampler_start, one in n of each thread's ticks, chosen at
 * random, which then represents n intervals. Has no effect unless sampler_can_thin.
 */
void sampler_keep_one_of(uint32_t n);
/*
 * Returns whether ticks can be left out, which is so for CPU samples that are taken in signal
 * handlers of the threads' timers.
 */
bool sampler_can_thin(void);
/* Stores the counts since sampler_start. */
void sampler_counters(struct sampler_counters *ret);
/*
 * Stores the CPU time in ns of the signal handlers and of walking the stacks that they copy.
 * Unlike sampler_counters it takes no longer when there are many threads.
 */
void sampler_cost(uint64_t *ret_handler_ns, uint64_t *ret_later_ns);
/* Returns the CPU time in ns in which Java threads were sampled by signals; 0 without signals. */
uint64_t sampler_java_ns(void);
/* Returns the handler time that a share (0 to 1) of the measured calls did not exceed. */
uint64_t sampler_cost_percentile(const struct sampler_counters *c, double share);
