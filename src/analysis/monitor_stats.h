/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of "Monitor statistics" (TPTP thread profiling, "Information depicted in views", 2.2
 * and 2.3): threads, classes for the selected threads, and blocks and waits by calling method.
 */
#pragma once

#include "analysis/holds.h"
#include "analysis/request_groups.h"
#include "base/vec.h"
#include "timeline/timeline.h"

struct wait_times {
    uint64_t count, total_ns, max_ns;
    /*
     * the part of `count` whose whole duration is unknown, because the recording, or the selected
     * part of it, began or ended meanwhile
     */
    uint64_t cut;
    /* of the others; 0 if there are none */
    uint64_t min_ns, avg_ns, p50_ns, p90_ns, p99_ns;
    /* of count: those that ended by an inferred cause, and those whose cause is unknown */
    uint64_t inferred, unknown;
};

struct thread_stats {
    uint32_t thread;
    uint64_t blocked, blocked_ns; /* for locks, including reacquisition after wait() */
    /* for objects, joins, sleep and park; without idle waits unless the filter includes them */
    uint64_t waited, waited_ns;
    uint64_t idle, idle_ns; /* waits for work (timeline/idle.h) */
    uint64_t io, io_ns;
    /* how often it was ready but had no carrier or processor; this does not count as waiting */
    uint64_t ready, ready_ns;
};

struct class_stats {
    uint32_t class; /* number of a string */
    struct wait_times block, wait;
    uint32_t objects, threads;
};

/* Blocks or waits for objects of one class in one calling method. */
struct site_stats {
    uint32_t class, method; /* numbers of strings; method is TL_NONE when it was not recorded */
    uint32_t line, stack;   /* of the first occurrence */
    bool block;             /* true for blocks, false for waits */
    bool idle;              /* a wait of threads that had nothing to do; of the first occurrence */
    /* when the first occurrence began within the selected part, and the thread's id */
    uint64_t since_ns, since_thread;
    struct wait_times times;
    uint32_t objects, threads;
};

/* Exact holds of one class that were acquired in one method. */
struct hold_stats {
    uint32_t class, method; /* numbers of strings; method is TL_NONE when it was not recorded */
    uint64_t count, total_ns, min_ns, max_ns;
    uint32_t objects, threads;
};

struct monitor_stats {
    VEC(struct thread_stats) threads; /* all, by number */
    VEC(struct class_stats) classes;  /* the largest blocked time first */
    VEC(struct site_stats) sites;     /* the largest total first */
    /*
     * of the counted waits of at least over_ns: all; those with a known cause; those whose cause
     * was inferred
     */
    uint64_t intervals, caused, inferred;
    uint64_t idle, idle_ns; /* of the selected threads */
    /* what is selected but for its length: as long as min_ns says (idle waits included); shorter */
    uint64_t waits, shorter;
    /* the blocks that are no waits to enter: notified threads that get their monitor back */
    uint64_t back, back_ns;
    uint64_t implied; /* events of the whole timeline without a node (graph_is_implied) */
    /* waits that began before the selected part of the time */
    uint64_t began_before;
    /*
     * waits for monitors whose owners were unknown when they began; the parts of these in virtual
     * threads, and in progress when the recording began
     */
    uint64_t owner_unknown, owner_unknown_virtual, owner_unknown_at_start;
};

struct stats_filter {
    const uint8_t *threads;            /* per thread: whether it is selected; NULL selects all */
    const uint8_t *objects;            /* per object: whether it is selected; NULL selects all */
    const struct request_times *times; /* counts waits that begin in them; NULL: all */
    /*
     * counts waits that overlap this range, with the time that they have in it; to = 0: no upper
     * end
     */
    uint64_t from, to;
    uint64_t min_ns;  /* waits that are shorter as a whole do not count */
    uint64_t over_ns; /* threshold for the members intervals, caused and inferred */
    /* treat idle waits as waits, which then appear among sites and classes */
    bool idle;
    /*
     * fills only the table of threads and the sums, because those of classes and sites take most of
     * the time
     */
    bool only_threads;
};

/* Computes the tables of the waits that a filter selects. Returns 0 or -ENOMEM. */
int monitor_stats(const struct timeline *t, const struct stats_filter *f,
                  struct monitor_stats *ret) must_check;

/*
 * The recorded holds of the selected threads and objects that overlap the range from `from` to
 * `to`, with the time that they have in it, the largest total first. The caller releases the
 * vector.
 */
struct hold_table {
    VEC(struct hold_stats) rows;
};

/* Computes this table. Returns 0 or -ENOMEM. */
int hold_stats(const struct timeline *t, const struct holds *h, const struct stats_filter *f,
               struct hold_table *ret) must_check;

void monitor_stats_release(struct monitor_stats *s);
