/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording says about the VM's own activity: collections, safepoints, compilations and
 * figures of the process, from our recorder (doc/vm.md) or the JDK's. Times are ns since 1970,
 * durations ns.
 */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum { VM_NONE = UINT32_MAX }; /* of a text: there is none */

struct rec_event;

struct vm_safepoint {
    uint64_t id;
    int64_t start_ns;
    uint64_t sync_ns, total_ns;
    uint32_t operation; /* text */
    /*
     * if reaching the safepoint took long: the thread that was last seen running meanwhile, and its
     * stack
     */
    uint32_t late_thread, late_first, late_n; /* frames, innermost first */
};

struct vm_frame {
    uint32_t method, line; /* line 0: unknown */
};

struct vm_pause {
    int64_t start_ns;
    uint64_t duration_ns;
    uint32_t name;
    uint32_t collection; /* its number in the recording */
    bool concurrent;     /* a phase that runs concurrently with the program */
};

struct vm_collection {
    uint32_t id;
    int64_t start_ns;
    uint64_t duration_ns, pauses_ns, longest_ns;
    uint32_t name, cause;
    bool has_heap, ours; /* ours: from our recorder, which records no addresses */
    bool no_before;      /* only what the heap held after the collection is known */
    uint64_t before, after, capacity;
};

struct vm_compilation {
    int64_t start_ns;
    uint64_t duration_ns; /* 0: unknown */
    uint32_t method;
    uint32_t level;
    bool osr, failed;
};

/* A method that was deoptimized for one reason, or whose code was discarded. */
struct vm_deoptimization {
    uint32_t method, reason, action;
    int32_t line, bci; /* -1: unknown */
    uint64_t count;
    int64_t first_ns, last_ns;
    /* the code as a whole was discarded; the reason is known if the JDK records it */
    bool discarded;
};

/* Numbers that describe the process at a time. */
enum vm_figure_kind {
    VM_CPU_USER, /* share of all processors, in millionths */
    VM_CPU_SYSTEM,
    VM_CPU_MACHINE,
    VM_RSS,
    VM_THREADS,
    VM_CLASSES_LOADED, /* counted from the start of the VM, like all up to VM_THREADS_STARTED */
    VM_CLASSES_UNLOADED,
    VM_COMPILATIONS,
    VM_COMPILE_TIME,
    VM_BAILOUTS,
    VM_INVALIDATED,
    VM_CODE_BYTES, /* bytes of compiled code so far */
    VM_THREADS_STARTED,
    /* counted from the start of the container, like all up to VM_MEMORY_FAILURES */
    VM_THROTTLED_SLICES,
    VM_SLICES,
    VM_THROTTLED_TIME,
    VM_MEMORY_FAILURES,
    VM_MEMORY,
    VM_FILES,
    VM_FILES_LIMIT,
    VM_STEAL_TIME,
    VM_PRESSURE_CPU,
    VM_PRESSURE_MEMORY,
    VM_PRESSURE_IO,
    VM_OLD_GENERATION,
    VM_FIGURES
};

/* A figure as it was read at one time. */
struct vm_reading {
    int64_t ns;
    uint64_t value;
    enum vm_figure_kind kind;
};

/* A part of the VM's memory: of the heap, the code cache, the metaspace. */
struct vm_pool {
    uint32_t name;
    int64_t first_ns, last_ns;
    uint64_t used_first, used, used_most, committed;
    uint64_t max; /* 0: none, or unknown */
};

/* Class loaders of one class. */
struct vm_loader {
    uint32_t name; /* the name of the class; "bootstrap" for the VM's own loader */
    uint64_t loaded, unloaded;
};

/* Summary of the readings of one kind of figure. */
struct vm_figure {
    uint64_t n;
    int64_t first_ns, last_ns;
    uint64_t first, last, low, high;
    double sum;
    uint64_t grown; /* the sum of all increases from one to the next */
};

/* A time in which the container had used up its CPU quota. */
struct vm_throttle {
    int64_t from_ns, to_ns; /* between two readings */
    uint64_t throttled_ns;
};

struct vm_activity_filter {
    uint64_t from_ns, to_ns; /* from the start of the recording; to_ns 0: to the end */
};

struct vm_totals {
    uint64_t count, time_ns, sync_ns;
};

struct vm_activity {
    struct strpool strings;
    int64_t start_ns, end_ns;            /* of the recording */
    VEC(struct vm_safepoint) safepoints; /* by time, like all lists */
    VEC(struct vm_pause) pauses;
    /* parts of pauses, and what was done concurrently with the program */
    VEC(struct vm_pause) phases;
    VEC(struct vm_frame) frames;
    VEC(struct vm_collection) collections;
    VEC(struct vm_compilation) compilations;
    VEC(struct vm_deoptimization) deoptimizations; /* the most frequent first */
    VEC(struct vm_throttle) throttles;
    VEC(struct vm_pool) pools;       /* by name */
    VEC(struct vm_loader) loaders;   /* the one that loaded most first */
    VEC(struct vm_reading) readings; /* of all figures */
    struct vm_figure figures[VM_FIGURES];
    bool safepoint_ends; /* some event says when a safepoint ended */
    /* safepoints that were reached faster were not recorded; 0: all were recorded */
    uint64_t safepoint_least_ns;
    /* What the VM counted itself, in the whole recording; only without a filter. */
    bool has_totals;
    struct vm_totals totals;
    uint64_t memory_limit; /* of the container; 0: none, or unknown */
    uint64_t cpu_quota_us, cpu_period_us;
    uint64_t cut_at; /* not 0: the file is cut or damaged there */
};

/*
 * Reads the VM's activity from a recording. Returns 0, or a negative errno with the reason in why.
 */
int vm_activity_load(struct vm_activity *ret, const char *path,
                     const struct vm_activity_filter *filter, struct buf *why) must_check;
void vm_activity_release(struct vm_activity *v);
/* Returns a text by its number, "" for VM_NONE. */
const char *vm_activity_text(const struct vm_activity *v, uint32_t text);
/*
 * These functions (vm_activity_pools.c) add what an event states about a part of the memory, the
 * metaspace, or the loading of classes. They return 0 or -ENOMEM.
 */
int vm_activity_add_pool(struct vm_activity *v, const struct rec_event *e) must_check;
int vm_activity_add_metaspace(struct vm_activity *v, const struct rec_event *e) must_check;
int vm_activity_add_loader(struct vm_activity *v, const struct rec_event *e) must_check;
/* Sorts the parts of the memory by name, and the class loaders by how many classes they loaded. */
void vm_activity_sort_pools(struct vm_activity *v);
/* Returns whether the recording contains any activity or figure of the VM. */
bool vm_activity_any(const struct vm_activity *v);
