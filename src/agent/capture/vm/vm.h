/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VM's own activity, with events=y: collections, safepoints, compilations and figures of the
 * process. JDK 9 and later write these in the unified log, which goes to memory that the agent
 * reads (log.h). On JDK 8, and where there is no such log, collections are taken from JVM TI's
 * events and safepoints from the VM's counters. Everything here but gc_starts and gc_ends,
 * vm_records_pauses and the counting of loaders.c runs on the agent's thread, under the session's
 * lock.
 */
#pragma once

#include "agent/session/session.h"
#include "hotspot/unified_log.h"
#include "jfr/writer.h"

/* Returns whether this row writes jdk.GCPhasePause, so that other rows need not. Any thread. */
bool vm_records_pauses(void);

struct vm_activity {
    struct jfr_writer *jfr;
    uint32_t totals_type, compiled_type, discarded_type, trap_type, process_type, pool_type,
        loading_type;
};

extern struct vm_activity vm_activity;

/* ---- safepoints.c ---- */

void safepoints_reset(void);
/* Reads a line with the tag safepoint. */
void safepoints_line(const struct log_line *line);
/* Reads the counters, where there is no log. */
void safepoints_read(uint64_t now);

/*
 * safepoints_now returns the counters. safepoints_collection handles a collection that began at a
 * safepoint, when they were these (gc.c); collections come in order of time.
 */
struct safepoint_counters {
    int64_t count, time_ns, sync_ns;
};

struct safepoint_counters safepoints_now(void);
void safepoints_collection(uint64_t start_ns, const struct safepoint_counters *at,
                           const char *cause);
/* Writes the totals since the VM began, if they have changed or `always`. */
void safepoints_totals(bool always);
/*
 * Writes the first totals. The log must be open already, so that it contains a line for each later
 * safepoint.
 */
void safepoints_begin(void);
/* Returns whether the log had a line for each safepoint between the first totals and the last. */
bool safepoints_logged(void);

/* ---- collections.c: what the log reports ---- */

void collections_reset(void);
void collections_line(const struct log_line *line);
/* Ends collections of which the log reports no end, and all of them at the end of a recording. */
void collections_idle(uint64_t now, bool all);

/* Begins to compare the pauses in the log with the VM's own counters. */
void collections_count(void);
/* Returns how many pauses the VM has counted since then; it counts a pause when it begins. */
uint64_t collections_counted(void);
/*
 * Reports collections for which the log had no line as lost, except for `may_arrive` lines that may
 * still arrive.
 */
void collections_compare(struct jfr_writer *w, uint64_t counted, uint64_t may_arrive);

struct collection {
    uint32_t id;
    uint64_t start_ns, end_ns, pauses_ns, longest_ns;
    char name[32], cause[64];
};

/* Writes jdk.GarbageCollection. */
void collection_put(const struct collection *c);
void collection_put_heap(uint32_t id, uint64_t ns, const char *when, uint64_t used,
                         uint64_t capacity);
void collection_put_phase(uint32_t type, uint32_t id, uint64_t start_ns, uint64_t duration_ns,
                          const char *name, size_t len);

/* ---- gc.c: what JVM TI and the counters report ---- */

void gc_reset(bool active);
/* These handle JVM TI's events at a safepoint, on any thread. */
void gc_starts(void);
void gc_ends(void);
void gc_flush(void);
/* Returns the name that JFR gives to the collector of the young or the old generation. */
const char *gc_name(bool old);

/* ---- compilers.c: what the log reports ---- */

void compilers_reset(void);
/*
 * compilers_line reads a line with the tags jit,compilation; compilers_trap, one with the tag
 * deoptimization.
 */
void compilers_line(const struct log_line *line);
void compilers_trap(const struct log_line *line);
/* Writes the traps that were summed up since the last call. */
void compilers_flush(void);

/* ---- figures.c: once a second ---- */

void figures_reset(void);
void figures_flush(uint64_t now, bool at_once);
void figures_restate(void);

/* ---- pools.c: parts of the VM's memory, every two seconds ---- */

void pools_reset(void);
void pools_flush(JNIEnv *jni, uint64_t now, bool at_once);

/* ---- loaders.c: classes that loaders of each class have loaded and unloaded ---- */

/* Returns the number of loaders of this class (com.acme.Loader), or of the VM's own (NULL). */
uint32_t loaders_number(const char *class_name);
/* May be called on any thread, also at a safepoint. */
void loaders_loaded(uint32_t number);
void loaders_unloaded(uint32_t number);
/* Forgets what was counted before a recording. */
void loaders_reset(void);
/* Writes what has been counted since the last call. */
void loaders_flush(uint64_t now);
