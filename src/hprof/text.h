/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the sections of HPROF's text output (HPROF Agent, "Heap Allocation Profiles" and
 * following; doc/hprof-differences.md). Callers do the ranking and numbering; these functions do
 * the formatting. As in writer.h, the first failure is kept. Must not be used by two threads at
 * once.
 *
 * Names are written unescaped as the program has them: classes and arrays in source form
 * ("java.lang.String", "byte[]"), methods as "pkg.Class.method".
 */
#pragma once

#include "base/buf.h"
#include "hprof/records.h"
#include "hprof/sink.h"

#include <time.h>

struct hprof_text {
    struct hprof_sink sink;
    struct buf out;
    bool lines; /* pass each complete section to the sink immediately; set for a socket */
    int error;
};

/*
 * Writes the first line, the preamble and the separator. `created` is the time in the first line; 0
 * leaves all of this out (cpu=old). Returns 0 or the failure of hprof_text_flush.
 */
int hprof_text_init(struct hprof_text *t, struct hprof_sink sink, time_t created);
/* Passes what is buffered to the sink. Returns 0 or the first failure. */
int hprof_text_flush(struct hprof_text *t);
void hprof_text_release(struct hprof_text *t);

void hprof_text_thread_start(struct hprof_text *t, uint64_t object, uint32_t serial,
                             const char *name, const char *group);
void hprof_text_thread_end(struct hprof_text *t, uint32_t serial);

/*
 * Writes the first line of a TRACE. The caller then writes its frames or, if it has none,
 * hprof_text_trace_empty. With thread 0 the thread is not written.
 */
void hprof_text_trace(struct hprof_text *t, uint32_t serial, uint32_t thread);
void hprof_text_trace_empty(struct hprof_text *t);
/*
 * Writes a frame of a TRACE. A source of NULL is written as "Unknown Source". line: a line number
 * or HPROF_LINE_*, of which HPROF_LINE_COMPILED is written as "Compiled method" and the others as
 * "Unknown line".
 */
void hprof_text_frame(struct hprof_text *t, const char *method, const char *source, int32_t line);

struct hprof_text_site {
    uint32_t rank, trace;
    double self, accumulated; /* in percent, 0 to 100 */
    uint64_t live_bytes, live_objects, alloc_bytes, alloc_objects;
    const char *class_name;
};

/* Begins SITES. order: "live bytes" or "allocated bytes". */
void hprof_text_sites_begin(struct hprof_text *t, const char *order, time_t when);
void hprof_text_site(struct hprof_text *t, const struct hprof_text_site *site);
void hprof_text_sites_end(struct hprof_text *t);
/*
 * Writes a section that we add after SITES: the number of sites below the cutoff, and what they
 * have allocated.
 */
void hprof_text_left_out(struct hprof_text *t, uint64_t sites, uint64_t bytes, uint64_t objects);
/*
 * Write a section that we add after SITES: the standard errors of live figures that are estimates,
 * by rank in SITES, and at its end that of all live bytes (all_bytes). `below` is the number of
 * sites whose live bytes are not above their error, and below_bytes the sum of these bytes.
 */
void hprof_text_live_errors_begin(struct hprof_text *t);
void hprof_text_live_error(struct hprof_text *t, uint32_t rank, uint64_t bytes, uint64_t objects);
void hprof_text_live_errors_end(struct hprof_text *t, unsigned below, uint64_t below_bytes,
                                uint64_t all_bytes);

/*
 * Writes a section that we add after SITES: the estimate of the objects that the counts do not
 * include; for 0 objects, that no samples were taken.
 */
void hprof_text_not_counted(struct hprof_text *t, uint64_t bytes, uint64_t objects);

/* Ranked tables that have the same form. */
enum hprof_ranked {
    HPROF_RANKED_SAMPLES,
    HPROF_RANKED_TIMES,
    HPROF_RANKED_MONITORS,
    /* Samples of elapsed time: HPROF has no name for them, so a line says so before CPU SAMPLES. */
    HPROF_RANKED_WALL
};

#define HPROF_TEXT_WALL "SAMPLES OF ELAPSED TIME (cpu=wall), waiting threads included:"

/* Begins a ranked table. total: the number of samples, or milliseconds. */
void hprof_text_ranked_begin(struct hprof_text *t, enum hprof_ranked kind, uint64_t total,
                             time_t when);
/* Writes a row of a ranked table. name: the trace's first method, or the monitor's class. */
void hprof_text_ranked(struct hprof_text *t, enum hprof_ranked kind, uint32_t rank, double self,
                       double accumulated, uint64_t count, uint32_t trace, const char *name);
void hprof_text_ranked_end(struct hprof_text *t, enum hprof_ranked kind);

/*
 * Begins the table of cpu=old, "count callee caller time". Names are "Class.method(descriptor)"; a
 * caller of NULL is unknown.
 */
void hprof_text_old_begin(struct hprof_text *t);
void hprof_text_old(struct hprof_text *t, uint64_t count, const char *callee, const char *caller,
                    uint64_t ms);

/*
 * Write a WAIT and a WAITED line, which appear between others as they happen. descriptor: the
 * monitor's class ("Ljava/lang/Object;"). timeout_ms, time_ms: milliseconds. Thread 0 is unknown.
 */
void hprof_text_wait(struct hprof_text *t, const char *descriptor, int64_t timeout_ms,
                     uint32_t thread);
void hprof_text_waited(struct hprof_text *t, const char *descriptor, int64_t time_ms,
                       uint32_t thread);

void hprof_text_monitors_begin(struct hprof_text *t);
/* Writes a thread of MONITOR DUMP. state: JVMTI_THREAD_STATE bits. */
void hprof_text_monitors_thread(struct hprof_text *t, uint32_t thread, uint32_t trace,
                                uint32_t state);
/*
 * Writes a monitor of MONITOR DUMP. owner: the thread, or 0 when the monitor is not owned. entries:
 * how often the owner has entered the monitor.
 */
void hprof_text_monitor(struct hprof_text *t, const char *descriptor, uint32_t owner,
                        uint32_t entries, const uint32_t *enterers, size_t n_enterers,
                        const uint32_t *waiters, size_t n_waiters);
void hprof_text_monitors_end(struct hprof_text *t);

/* Begins a heap dump. The format has only references that are not null. */
void hprof_text_heap_begin(struct hprof_text *t, uint64_t objects, uint64_t bytes, time_t when);
/*
 * Writes a root. a: the thread's serial number, or the id of a JNI global reference. b: the trace,
 * or the frame's number in the thread's trace, or -1. name is used for a system class only.
 */
void hprof_text_root(struct hprof_text *t, enum hprof_sub_tag kind, uint64_t object, uint64_t a,
                     uint32_t b, const char *name);
void hprof_text_class(struct hprof_text *t, uint64_t id, const char *name, uint32_t trace);
/*
 * Writes a reference of a class. what: "super", "loader", "signers" or "domain". Ids of 0 are left
 * out.
 */
void hprof_text_class_link(struct hprof_text *t, const char *what, uint64_t id);
void hprof_text_static(struct hprof_text *t, const char *name, uint64_t id);
void hprof_text_constant(struct hprof_text *t, uint32_t index, uint64_t id);
void hprof_text_object(struct hprof_text *t, uint64_t id, uint64_t size, uint32_t trace,
                       const char *class_name, uint64_t class_id);
void hprof_text_field(struct hprof_text *t, const char *name, uint64_t id);
/*
 * Writes an array of n elements. class_name is the array's own class. class_id is 0 for arrays of
 * primitives.
 */
void hprof_text_array(struct hprof_text *t, uint64_t id, uint64_t size, uint32_t trace, uint32_t n,
                      const char *class_name, uint64_t class_id);
void hprof_text_element(struct hprof_text *t, uint32_t index, uint64_t id);
void hprof_text_heap_end(struct hprof_text *t);
