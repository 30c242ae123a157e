/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How readings of the threads' CPU clocks become times of nodes. Knows no JVM and no timer.
 *
 * A reading gives the CPU time since the thread's previous one to the node that it finds. That is
 * right on average, except at both ends of a thread: the time before the first reading would be
 * too little for a node that the thread visits early, and the time after the last one would be
 * nobody's. Threads that are shorter than a tick would have hardly any time. Therefore the first
 * reading of a thread, which comes after a random part of a tick, also stands for the rest of that
 * tick, as if the thread had begun with a tick. A thread that waits and goes on meets the ticks
 * anew each time: what counts against its tick is then the length of one of its runs. On average
 * over all threads, these rests are as much as all the time after last readings. That time is known
 * exactly, so the rests are enlarged or reduced until they are equal, within limits: the sum of all
 * times is then the CPU time of all threads. What cannot be distributed within the limits is the
 * time without a reading.
 */
#pragma once

#include "agent/capture/times/tree.h"

/* What is known of a thread's clock. The thread's signal handler changes it alone. */
struct times_clock {
    _Atomic uint64_t read_ns; /* CPU time up to the last reading */
    _Atomic uint64_t lost_ns; /* the part of it that was read while no node was known */
    uint64_t switches;        /* how often the thread had stopped running at the start */
    bool read;                /* there has been a reading */
    /* The reading that was the first, until it is settled. */
    struct times_reading *_Atomic first;
    uint64_t first_ns; /* CPU time from the start to the first reading */
    uint64_t run_ns;   /* on average from one switch to the next, until the first reading */
};

/* A first reading whose rest has not been distributed. */
struct times_first {
    struct times_reading *reading;
    uint64_t ns, run_ns;
};

struct times_account {
    uint64_t tick_ns;    /* the kernel's: readings are not more frequent */
    uint64_t rest_ns;    /* time of ended threads after their last readings */
    uint64_t granted_ns; /* the part of it that nodes have got */
    uint64_t lost_ns;    /* of ended threads: read for no node, or never read */
    VEC(struct times_first) firsts;
};

void times_clock_begin(struct times_clock *c, uint64_t cpu_ns, uint64_t switches);
/*
 * Accounts for a reading: `seen` is what it found, or NULL. `switches` matters at the first one
 * only. Runs in the thread's signal handler.
 */
void times_clock_read(struct times_clock *c, struct times_reading *seen, uint64_t cpu_ns,
                      uint64_t switches);
/* Returns the CPU time since the last reading. */
uint64_t times_clock_rest(struct times_clock *c, uint64_t cpu_ns);

/* Begins again, with no thread. */
void times_account_begin(struct times_account *a, uint64_t tick_ns);
/*
 * Adds a thread that has ended with this CPU time. If it had no timer, all its time is lost.
 * Returns 0 or -ENOMEM; the rest of its first reading then stays undistributed.
 */
int times_account_end(struct times_account *a, struct times_clock *c, uint64_t cpu_ns, bool timer);
/* Takes over the first reading of a thread that goes on. Returns 0 or -ENOMEM. */
int times_account_first(struct times_account *a, struct times_clock *c);
/*
 * Distributes what can be, while threads that go on have used rest_ns since their last readings.
 * Returns the time without a reading; `lost_ns` is that of threads that go on.
 */
uint64_t times_account_settle(struct times_account *a, uint64_t rest_ns, uint64_t lost_ns);
