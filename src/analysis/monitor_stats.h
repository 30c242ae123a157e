/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of "Monitor statistics" (TPTP thread profiling, "Information depicted in views", 2.2
 * and 2.3): threads, classes for the threads selected, then blocks and waits by calling method.
 */
#pragma once

#include "analysis/holds.h"
#include "base/vec.h"
#include "model/timeline.h"

struct wait_times {
    uint64_t count, total_ns, min_ns, max_ns;
    uint64_t p50_ns, p90_ns, p99_ns;
    /* of count: ended by a cause that was concluded; by none that is known */
    uint64_t inferred, unknown;
};

struct thread_stats {
    uint32_t thread;
    uint64_t blocked, blocked_ns; /* for locks, and reacquiring */
    /* for objects, joins, sleep, park; not idle, unless the filter counts that too */
    uint64_t waited, waited_ns;
    uint64_t idle, idle_ns; /* waited for something to do (model/idle.h) */
    uint64_t io, io_ns;
};

struct class_stats {
    uint32_t class; /* string */
    struct wait_times block, wait;
    uint32_t objects, threads;
};

/* Blocks or waits for objects of one class at one calling method. */
struct site_stats {
    uint32_t class, method; /* strings; method TL_NONE: not recorded */
    uint32_t line, stack;   /* of the first one */
    bool block;             /* else a wait */
    bool idle;              /* a wait of threads that had nothing to do */
    struct wait_times times;
    uint32_t objects, threads;
};

/* Exact holds of one class taken at one method. */
struct hold_stats {
    uint32_t class, method; /* strings; method TL_NONE: not recorded */
    uint64_t count, total_ns, min_ns, max_ns;
    uint32_t objects, threads;
};

struct monitor_stats {
    VEC(struct thread_stats) threads; /* all, in order of their numbers */
    VEC(struct class_stats) classes;  /* the largest blocked time first */
    VEC(struct site_stats) sites;     /* the largest total first */
    uint64_t intervals, caused,
        /* waits of at least over_ns that count: all, with a known cause, of these concluded */
        inferred;
    uint64_t idle, idle_ns; /* of the threads selected */
};

struct stats_filter {
    const uint8_t *threads; /* per thread: selected; NULL for all */
    const uint8_t *objects; /* per object; NULL for all */
    uint64_t from, to;      /* waits that overlap; to 0: no end */
    uint64_t min_ns;        /* shorter waits do not count */
    uint64_t over_ns;       /* for intervals, caused and inferred */
    bool idle;              /* idle waits are waits, and have sites and classes */
};

int monitor_stats(const struct timeline *t, const struct stats_filter *f,
                  struct monitor_stats *ret) must_check;

/*
 * The holds that were recorded, those that end between from and to; the largest total first. The
 * caller releases the vector.
 */
struct hold_table {
    VEC(struct hold_stats) rows;
};

int hold_stats(const struct timeline *t, const struct holds *h, const struct stats_filter *f,
               struct hold_table *ret) must_check;

void monitor_stats_release(struct monitor_stats *s);
