/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's perf_event clock of one thread as what drives its sampling: it counts the time that the thread runs, in user
 * and kernel mode alike, and is no beat of the scheduler's tick as thread CPU timers are. At each interval it notes the
 * kernel's part of the stack in a ring that the thread's signal handler reads. Used where the kernel lets us see its side
 * (kernel.perf_event_paranoid, CAP_PERFMON); where it does not, a clock that stops in system calls would be no CPU profile.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PERF_KERNEL_FRAMES = 60 }; /* eight samples of that depth fit into the ring */

/* Zeroed is none. */
struct perf_clock {
    int fd;             /* 0: none */
    void *_Atomic ring; /* read by the thread itself, in its handler */
};

/* What this process may have: 0 or negative errno. */
int perf_clock_check(void) must_check;

/*
 * A thread's clock, which stands until perf_clock_start: whoever handles its signals knows its descriptor before the first.
 * 0 or negative errno (-EMFILE also when half of the process's descriptors would be ours).
 */
int perf_clock_open(struct perf_clock *c, pid_t tid, int signal, uint64_t first_ns) must_check;
/*
 * Makes the thread be signalled once, after `first` nanoseconds of its CPU time, with the descriptor in si_fd; the intervals
 * begin with perf_clock_period. 0 or negative errno.
 */
int perf_clock_start(const struct perf_clock *c) must_check;
/* No signal comes any more but those on their way, whose handler may still read the ring. */
void perf_clock_stop(struct perf_clock *c);
/* The same, and takes the ring away: on the thread itself, or when no handler is under way. */
void perf_clock_release(struct perf_clock *c);

/*
 * In the thread's handler: takes what was noted since the last call. Answers how many intervals that were, 0 when an earlier
 * call has taken them; the kernel's frames of the last one in ips, innermost first, their number in *ret_n.
 */
uint32_t perf_clock_take(struct perf_clock *c, uint64_t ips[PERF_KERNEL_FRAMES], uint32_t *ret_n);
/* In the thread's handler: signals from now on, at intervals of this length. */
void perf_clock_period(const struct perf_clock *c, uint64_t interval_ns);
