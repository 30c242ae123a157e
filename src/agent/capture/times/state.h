/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of cpu=times share: cpu_times.c is the capture, edit.c inserts the probes,
 * natives.c has the probes' native methods and the CPU timers, and costs.c measures what the probes
 * cost. The tree of calls itself is tree.h, and its report is report.h; both know nothing of this.
 */
#pragma once

#include "agent/capture/times/report.h"
#include "agent/instrument/instrument.h"
#include "agent/vm/thread_table.h"

#include <pthread.h>

/* The class of the probes. */
#define TIMES_PROBE "java/lang/JvmscopeTimes"

extern struct cpu_times {
    struct times_tree tree;
    /*
     * Protects the contexts and slots of the tree, and which threads have them. Probes that need
     * neither a new node nor a context work without it.
     */
    pthread_mutex_t lock;
    bool elapsed;   /* clock=elapsed: each call reads the clock */
    bool by_thread; /* thread=y: a context is not used by another thread again */
    /* Offsets of fields of Thread and VirtualThread; carrier is 0 without virtual threads. */
    int64_t eetop, carrier, thread_id;
    struct times_report_costs costs;
    /* What is not counted: threads without a timer or a slot, and threads without a context. */
    _Atomic uint64_t no_timer, no_slot, no_context;
} cpu_times;

/* ---- edit.c */

/* Inserts the probes into methods, and those of virtual threads into VirtualThread. */
extern const struct instrument_client times_client;

/* ---- natives.c */

/* Gives up the slot of a thread that ends. */
extern const struct thread_listener times_listener;
/*
 * Prepares for threads, once in the process: it is never undone, because a late signal of a deleted
 * timer must still find its handler and its data. Returns 0 or -ENOMEM.
 */
int times_threads_prepare(void) must_check;
/*
 * Settles what the readings of the clocks stand for (readings.h). Returns the CPU time without a
 * reading. For reports: times_merge comes next.
 */
uint64_t times_threads_settle(void);
/* Ends the timers and slots of all threads. Requires the lock. */
void times_threads_forget(void);
/*
 * Says that the calling thread measures the cost of probes (on), or has done so. If it is one of
 * the agent's or the VM's, it runs no method that is timed, so its CPU time is not the program's.
 */
void times_threads_measuring(bool on);

/* ---- costs.c: what the probes cost; the best measurements are in cpu_times.costs */

/* Begins without any measurement. `probes` is the class of the probes. Returns 0 or -ENOMEM. */
int times_costs_begin(jclass probes) must_check;
/* Forgets the context that the measurements used, because a new tree begins. Requires the lock. */
void times_costs_leave_tree(void);
/* Measures again, and keeps what is better than before. */
void times_costs_measure(JNIEnv *jni);
/* Measures in less time, and not at all once several attempts have found nothing better. */
void times_costs_refine(JNIEnv *jni);
