/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a thread be sampled: one slot a kernel thread, with a timer on the thread's CPU clock, or visited by a thread
 * of the agent's own (mode wall, and CPU where the kernel gives no more timers). Part of sampler.c.
 */
#pragma once

#include "agent/sampler/perf.h"
#include "agent/thread_table.h"

#include <stdbool.h>
#include <time.h>

struct slot {
    _Atomic pid_t tid;             /* 0: free */
    struct thread *_Atomic thread; /* NULL: not known yet */
    atomic_bool none;              /* not a thread that Java sees: not sampled */
    _Atomic uint64_t mark;         /* the sample function's: what the thread was last seen doing */
    void *self;                    /* the thread's pointer, once its handler was in the slot */
    bool has_timer;                /* or a perf_event clock */
    bool shifted;                  /* perf: the interval that runs is not a whole one */
    timer_t timer;
    struct perf_clock perf;
    uint64_t due_ns;         /* CPU time of the thread before which what is due has come, but for `since` */
    uint32_t since;          /* intervals since the beat was last shifted */
    _Atomic uint64_t beats;  /* of the timer, that were handled */
    uint64_t armed_ns;       /* when the first beat after the timer was set last was due */
    uint64_t armed_beats;    /* and `beats` then */
    uint64_t shift_round;    /* of slot_shift_later, when it was last shifted */
    uint32_t skips;          /* times in a row that it was not, for a beat under way */
    uint32_t owed;           /* perf: intervals that the next sample stands for besides its own */
    uint64_t cpu_ns;         /* of the thread, at the last visit */
    _Atomic uint32_t weight; /* intervals that the visitor's signals on their way stand for */
    uint32_t repeated;       /* wall: intervals since the last sample, all of them idle */
    bool seen;               /* was visited before */
    bool settling;           /* wall: was signalled at the last visit, which itself used CPU */
};

struct slots_options {
    int signal;
    uint64_t interval_ns;
    bool wall;
    bool perf; /* perf_event's clocks where they can be had, thread CPU timers elsewhere */
    /* Wall: thread was idle for `weight` more intervals, doing what mark says. Not in a signal handler. */
    bool (*idle)(void *context, const struct thread *t, uint64_t mark, uint32_t weight);
    void *context;
    _Atomic uint64_t *skipped;
};

int slots_start(const struct slots_options *o) must_check;
void slots_stop(void);
/* After slots_stop, when no handler is under way any more. */
void slots_release(void);
void slots_work(void);
void slots_count(uint64_t *ret_threads, uint64_t *ret_uncovered);

/* Async-signal-safe. The slot at an address that came with a signal, NULL when it is none. */
struct slot *slot_by_address(const void *address);
struct slot *slot_by_tid(pid_t tid);
struct slot *slot_by_descriptor(int fd);
/* Whether it is the calling thread's; else the signal was late and it is another thread's by now. */
bool slot_is_own(struct slot *slot);
/*
 * After a sample of so many intervals, on its thread: now and then moves the beat, at random and without a change of the
 * rate, so that a program that repeats itself at the interval is not always met at the same place.
 */
void slot_shift(struct slot *slot, uint32_t weight);
/* The same for a thread's timer, not in a handler, at most once in a round. */
void slot_shift_later(struct slot *slot, const struct thread *thread, uint32_t weight, uint64_t round);
/* The Java thread of the calling thread's slot, found by its environment the first time; NULL when it is none. */
struct thread *slot_thread(struct slot *slot);
