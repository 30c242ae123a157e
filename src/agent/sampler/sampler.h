/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples threads by a signal to the thread itself. In mode CPU a timer on each thread's own CPU clock sends it, so a thread
 * that does not run is not sampled and costs nothing; in mode WALL a thread of the agent's own goes round and leaves alone
 * those that have not run since it came by last: their stack is the one they had.
 *
 * The handler's rules: async-signal-safe calls alone, no object reference, its buffers are taken from a pool, errno is
 * preserved. It stays installed for ever: a signal that comes late must not meet the default action.
 */
#pragma once

#include "agent/sampler/stack.h"
#include "agent/thread_table.h"

#include <stdbool.h>
#include <stdint.h>

struct sample {
    struct thread *thread;
    uint32_t serial; /* of the thread */
    uint64_t id;     /* of the thread in a recording: the virtual thread's while it carries one */
    uint32_t weight; /* intervals that it stands for, 1 or more */
    uint64_t time_ns;
    int n;                  /* frames; or -1 - enum walk_failure */
    bool truncated;         /* the stack is deeper than the depth asked for */
    bool idle;              /* WALL: the thread waits in a system call */
    _Atomic uint64_t *mark; /* WALL: a word that stays with the thread; what `idle` gets */
    struct jfr_frame *frames;
};

struct sampler_options {
    bool wall;
    bool perf;   /* CPU: perf_event's clock drives (perf.h) */
    bool kernel; /* its kernel frames are wanted */
    uint64_t interval_ns;
    uint32_t depth;
    bool later;          /* CPU, stacks of stack_vm: copied in the handler, walked by sampler_drain, which gets the samples */
    stack_walk_fn *walk; /* NULL: no signals; JVM TI gives the stacks (jvmti.h) */
    /* Gets each sample, in the signal handler mostly; async-signal-safe. False: keep it for sampler_drain. */
    bool (*now)(void *context, const struct sample *s);
    /* WALL: a thread went on doing what *mark says for weight intervals; not in a handler. False: ask again later. */
    bool (*idle)(void *context, const struct thread *t, uint64_t mark, uint32_t weight);
    void *context;
    unsigned keep; /* samples that can wait for sampler_drain */
};

enum { COST_BUCKETS = 256, COST_STEP_NS = 250 };

struct sampler_counters {
    uint64_t samples;               /* weights, failures included */
    uint64_t failed[WALK_FAILURES]; /* weights */
    uint64_t truncated;
    uint64_t lost;             /* weights: no free buffer */
    uint64_t skipped;          /* WALL: repeated without a signal */
    uint64_t threads;          /* being sampled */
    uint64_t uncovered;        /* of those, without a timer of their own: the kernel gave none */
    uint64_t handler_ns;       /* of all handlers, from the mean of those that were measured */
    uint64_t handler_measured; /* calls, one of eight by chance */
    uint64_t handler_max_ns;
    uint64_t later_ns;           /* CPU time of walking and passing on what handlers have copied */
    uint64_t cost[COST_BUCKETS]; /* measured calls by their time, COST_STEP_NS each; the last one and beyond */
};

/* Starts on the threads of the table and on all to come. One at a time. Negative errno with a sentence in why. */
int sampler_start(const struct sampler_options *o, JNIEnv *jni, struct buf *why) must_check;
/* Stops: when it returns no handler of this run is inside `now`, no timer and no thread is left. */
void sampler_stop(void);
/* After the last sampler_drain: frees what handlers have left. */
void sampler_release(void);
/* Gives the samples that were kept to f, outside signal handlers. */
void sampler_drain(void (*f)(void *context, const struct sample *s), void *context);
/* Ten times a second: removes timers of threads that are none of Java's, tells the idle threads' samples. */
void sampler_work(void);
void sampler_counters(struct sampler_counters *ret);
/* The handler time that share (0 to 1) of the measured calls stay below. */
uint64_t sampler_cost_percentile(const struct sampler_counters *c, double share);
