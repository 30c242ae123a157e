/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu=samples and cpu=wall. cpu_samples.c is the capture, cpu_events.c writes the samples into a
 * recording, cpu_counts.c counts them for HPROF's CPU SAMPLES section. Private to this folder.
 */
#pragma once

#include "agent/sampler/sampler.h"
#include "agent/sampler/tasks.h"
#include "agent/session/session.h"

extern struct cpu_capture {
    bool wall;
    bool sampling; /* the sampler is running */
    bool follows;  /* virtual threads are followed, for their names */
    bool lives;    /* the time for which virtual threads are not mounted is counted */
    uint64_t unmounted_ms;
    bool uncovered_reported;
    bool in_ring;   /* the recording is always on */
    bool listens;   /* to compilations */
    int perf_error; /* a negative errno: why there are no kernel frames, which were wanted; or 0 */
    uint64_t reported_ns;
} cpu;

/* ---- cpu_events.c: recordings ---- */

/* Declares the events. Returns 0 or a negative errno. */
int cpu_events_load(struct jfr_writer *w) must_check;
/* Starts writing samples to w, and resets the counts of the previous recording. */
void cpu_events_start(struct jfr_writer *w);
/* From now on, leaves out samples that were taken after end_ns. */
void cpu_events_shut(uint64_t end_ns);
void cpu_events_release(void);
/* Writes jvmscope.Missing: the samples lack `what`, for this reason. */
void cpu_events_report_missing(struct jfr_writer *w, const char *what, const char *reason);
/* The sampler's functions (sampler.h); cpu_events_record runs in the signal handler. */
bool cpu_events_record(void *context, const struct sample *s);
void cpu_events_record_unsignalled(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                                   uint32_t weight);
void cpu_events_record_kept(void *context, const struct sample *s);
bool cpu_events_record_idle(void *context, const struct thread *t, uint64_t mark, uint32_t weight);
/* Writes jvmscope.SamplerCost and reports the losses. */
void cpu_events_report_cost(void);
/* Writes jvmscope.CpuTime. */
void cpu_events_report_time(const struct task_time *t);
/*
 * Writes the CPU time of threads that are not sampled. Called from time to time, and with `end` for
 * the rest.
 */
void cpu_events_report_times(const struct session *s, bool end);

/* ---- cpu_counts.c: HPROF outputs ---- */

void cpu_counts_start(struct session *s);
void cpu_counts_release(void);
/* These are the sampler's functions (sampler.h); context is the JNIEnv. */
bool cpu_counts_keep(void *context, const struct sample *s);
void cpu_counts_count_kept(void *context, const struct sample *s);
void cpu_counts_count_unsignalled(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                                  uint32_t weight);
bool cpu_counts_count_idle(void *context, const struct thread *t, uint64_t mark, uint32_t weight);
/* Writes the section and starts counting again. */
void cpu_counts_dump(struct session *s);
/* Executes a command of the front end: writes the section, or switches sampling on and off. */
void cpu_counts_request(struct session *s, const struct hprof_request *r);
