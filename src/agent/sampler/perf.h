/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the sampling of one thread with the kernel's perf_event clock. It counts the time that the
 * thread runs, in user and in kernel mode, and unlike a thread CPU timer it does not depend on the
 * scheduler's tick. At each interval the kernel writes its own part of the stack into a ring, which
 * the thread's signal handler reads. Used only where the kernel allows its mode to be counted
 * (kernel.perf_event_paranoid, CAP_PERFMON); elsewhere the clock would stop in system calls and
 * give no CPU profile.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PERF_KERNEL_FRAMES = 60 }; /* the ring holds eight samples of this depth */

/* A zeroed struct means: no clock. */
struct perf_clock {
    int fd;             /* 0 if there is no clock */
    void *_Atomic ring; /* read by the thread itself, in its handler */
};

/* Checks whether the kernel allows this process a clock. Returns 0 or a negative errno. */
int perf_clock_check(void) must_check;

/*
 * Opens a thread's clock, which does not run until perf_clock_start, so that the descriptor is
 * registered before the first signal, which is due after first_ns of the thread's CPU time. Returns
 * 0 or a negative errno, -EMFILE also when half of the process's descriptors would be ours.
 */
int perf_clock_open(struct perf_clock *c, pid_t tid, int signal, uint64_t first_ns) must_check;
/*
 * Starts the clock. The thread gets one signal, with the descriptor in si_fd; perf_clock_period
 * starts the intervals. Returns 0 or a negative errno.
 */
int perf_clock_start(const struct perf_clock *c) must_check;
/* Stops the clock. Signals may still be pending, and their handlers may read the ring. */
void perf_clock_stop(struct perf_clock *c);
/*
 * Stops the clock and unmaps the ring. Call it on the thread itself or when no handler is running.
 */
void perf_clock_release(struct perf_clock *c);

/*
 * Takes the records written since the last call; for the thread's handler. Returns the number of
 * intervals, or 0 when an earlier call has taken them. ips receives the kernel's frames in the last
 * record, innermost first, and *ret_n their number.
 */
uint32_t perf_clock_take(struct perf_clock *c, uint64_t ips[PERF_KERNEL_FRAMES], uint32_t *ret_n);
/* Sets the length of the intervals from now on; for the thread's handler. */
void perf_clock_period(const struct perf_clock *c, uint64_t interval_ns);
