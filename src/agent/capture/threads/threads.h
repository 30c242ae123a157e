/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads=y: which thread waits for which (TPTP thread profiling, "Extension for TPTP (Profiler)
 * events set"). threads.c is the capture; each other file of this folder has its own header. Events
 * that JFR defines are written as jdk.* events, all others as jvmscope.* (doc/format.md).
 *
 * A wait is written when it ends, as one event with a duration; a wait that has not ended at a
 * flush is written as jvmscope.Waiting. The stack is walked when a wait begins, never at the
 * "entered" and "waited" events, when the thread holds the monitor.
 */
#pragma once

#include "agent/capture/threads/waiters.h"
#include "jfr/writer.h"

enum threads_type {
    TYPE_ANALYSIS,
    TYPE_THREAD,
    TYPE_NOTIFY,
    TYPE_START,
    TYPE_INTERRUPT,
    TYPE_UNPARK,
    TYPE_WAITING,
    TYPE_UNMOUNTED,
    TYPE_READY,
    TYPE_DEADLOCK,
    TYPE_IO,
    TYPE_HOLD,
    TYPE_PREEMPTED,
    TYPE_PAGE_FAULTS,
    TYPES
};

struct thread_capture {
    struct jfr_writer *jfr; /* NULL while the capture is off */
    uint32_t types[TYPES];
    jint depth;
    bool instrument;  /* calls of notify, start and interrupt are recorded */
    bool virtual_too; /* the VM posts events of virtual threads */
    bool mounts;      /* the VM also posts events when they are mounted and unmounted */
    bool watch;       /* deadlock=y: data that only this needs is kept as well */
    jfieldID tid, park_blocker;
};

extern struct thread_capture thread_capture;
extern const struct jfr_type thread_types[TYPES];

/*
 * Encloses everything that our natives do for the capture, but not the wait itself. Returns false
 * unless the recording has begun. early: also before that, for calls that only describe something
 * to the recording, because a probe makes each of them once. JVM TI's callbacks are counted by
 * vm.c.
 */
bool threads_natives_enter(void);
bool threads_natives_enter_early(void);
void threads_natives_leave(void);

/*
 * Writes jvmscope.Notify, .StartCall, .InterruptCall or .Unpark: an action of the calling thread on
 * another thread.
 */
void threads_put_interaction(enum threads_type type, struct waiter *w, uint64_t trace,
                             uint64_t class, uint32_t object, uint64_t target, bool all);
/* Counts a wake-up by the calling thread that is left out to stay within the budget. */
void threads_interaction_left_out(void);

extern const struct capture capture_threads;
