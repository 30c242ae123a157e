/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Triggers the sampling of threads. Each kernel thread has a slot with a timer on its CPU clock, or
 * is visited by a thread of the agent (mode WALL, and mode CPU when the kernel provides no more
 * timers). Part of sampler.c.
 */
#pragma once

#include "agent/sampler/perf.h"
#include "agent/vm/thread_table.h"

#include <stdbool.h>
#include <time.h>

struct sampler_slot {
    _Atomic pid_t tid;             /* 0 if the slot is free */
    struct thread *_Atomic thread; /* NULL if not known yet */
    atomic_bool none;              /* not a Java thread; not sampled */
    _Atomic uint64_t mark;         /* set by the sample function: what the thread was last doing */
    _Atomic uint64_t sampled_ns;   /* when its last sample was taken */
    _Atomic uint32_t serial;       /* of the Java thread; 0 if not known */
    void *self;     /* pthread_self() of the thread, once its handler has used the slot */
    bool has_timer; /* or a perf_event clock */
    bool shifted;   /* perf: the current interval does not have the usual length */
    timer_t timer;
    struct perf_clock perf;
    /* The CPU time of the thread up to which intervals were accounted for, except `since`. */
    uint64_t due_ns;
    uint32_t since;         /* intervals since the tick was last shifted */
    _Atomic uint64_t ticks; /* ticks of the timer that were handled */
    uint64_t armed_ns;      /* when the first tick after the last setting of the timer was due */
    uint64_t armed_ticks;   /* the value of `ticks` then */
    uint64_t shift_round;   /* the round in which slot_shift_later last shifted the tick */
    /* how many times in succession slot_shift_later did not, because a tick was pending */
    uint32_t skips;
    uint32_t left_out;       /* perf: additional intervals that the next sample stands for */
    uint64_t cpu_ns;         /* the thread's CPU time at the last visit */
    _Atomic uint32_t weight; /* intervals that the visitor's pending signals stand for */
    uint32_t repeated;       /* wall: intervals since the last sample, all idle */
    uint64_t upto_ns;        /* wall: the time up to which intervals were accounted for */
    uint64_t begun_ns;       /* the thread's CPU time when its sampling began */
    uint32_t unsignalled; /* intervals that ended during the sampling and that no signal reported */
    bool waited;          /* slots_work has left the slot for its next call */
    bool seen;            /* it was visited before */
    bool settling;        /* wall: the last visit sent a signal, whose handling used CPU time */
    /* wall: the last signal interrupted a blocking call, to which the thread returns */
    atomic_bool blocked;
};

struct slots_options {
    int signal;
    uint64_t interval_ns;
    bool wall;
    bool perf; /* use perf_event clocks where available, else thread CPU timers */
    /*
     * Wall: the thread was idle for `weight` more intervals and is still doing what mark says. Not
     * called in a signal handler.
     */
    bool (*idle)(void *context, const struct thread *t, uint64_t mark, uint32_t weight);
    /*
     * When the sampling of a thread ended, this many of its intervals had ended without a signal.
     * CPU: because the kernel checks timers at its own ticks, and only those of threads that run
     * then. Wall: because the visitor had not visited it again. mark: what the thread was doing in
     * its last sample; 0: it had none. Not called in a signal handler.
     */
    void (*unsignalled)(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                        uint32_t weight);
    void *context;
    _Atomic uint64_t *coalesced;
};

/*
 * Begins to trigger samples of all threads and of those that start later. Returns 0 or a negative
 * errno; slots_stop is needed in either case.
 */
int slots_start(const struct slots_options *o) must_check;
/* Removes all timers and ends the visiting thread. */
void slots_stop(void);
/*
 * Reports, through `unsignalled`, the intervals that no signal reported. Call it after slots_stop
 * and the last slot_shift_later.
 */
void slots_settle(void);
/* Unmaps the rings of perf_event clocks. Call it after slots_stop, when no handler is running. */
void slots_release(void);
/* Does what sampler_work does for threads. */
void slots_work(void);
/* Stores how many threads are sampled, and for how many of them the kernel provided no timer. */
void slots_count(uint64_t *ret_threads, uint64_t *ret_uncovered);
/*
 * Returns the CPU time in ns that Java threads have used while they were sampled, since
 * slots_start.
 */
uint64_t slots_java_ns(void);

/* Returns the clock of a kernel thread's CPU time. */
clockid_t slot_clock(pid_t tid);
/*
 * Returns whether a thread of the process has a slot and is not known yet to be a Java thread or
 * another one, which its first sample will show.
 */
bool slot_is_open(pid_t tid);

/*
 * Returns the slot at an address that a signal has brought, or NULL when no slot is there.
 * Async-signal-safe.
 */
struct sampler_slot *slot_by_address(const void *address);
/* Returns the slot of a kernel thread, or NULL. */
struct sampler_slot *slot_by_tid(pid_t tid);
/* Returns the slot of the perf_event clock with a descriptor, or NULL. Async-signal-safe. */
struct sampler_slot *slot_by_descriptor(int fd);
/*
 * Returns whether the slot belongs to the calling thread. A late signal may refer to a slot that
 * another thread uses by now.
 */
bool slot_is_own(struct sampler_slot *slot);
/*
 * Occasionally shifts the thread's tick by a random amount without changing the rate, so that a
 * program with the same period as the interval is not always sampled at the same place. Called on
 * the thread, in its handler, after a sample of `weight` intervals.
 */
void slot_shift(struct sampler_slot *slot, uint32_t weight);
/*
 * Like slot_shift, for a thread's timer and outside a handler; shifts at most once in a round.
 * mark: what the sample found the thread doing, which is kept in the slot, or 0.
 */
void slot_shift_later(struct sampler_slot *slot, const struct thread *thread, uint32_t serial,
                      uint64_t mark, uint32_t weight, uint64_t round);
/*
 * Returns the Java thread of the calling thread's slot, which the first call finds by its JNIEnv,
 * or NULL when the calling thread is not a Java thread.
 */
struct thread *slot_thread(struct sampler_slot *slot);
