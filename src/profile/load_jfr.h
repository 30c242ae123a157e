/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a flight recording into a profile, inside profile/: load_jfr.c reads samples and what
 * the recorder says of itself, load_jfr_waits.c waits for monitors, load_jfr_exact.c exact calls
 * and allocation sites, whose events hold differences.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jfr/reader_rows.h"
#include "profile/load.h"
#include "profile/load_jfr_names.h"
#include "profile/load_queue.h"
#include "profile/load_tally.h"

/* The fields that are read from events of which there may be millions. */
enum column {
    STACK,
    SAMPLED_THREAD,
    EVENT_THREAD,
    SAMPLES,
    WEIGHT,
    TLAB_SIZE,
    ALLOCATION_SIZE,
    PERIOD,
    CALLS,
    SELF_TIME,
    RAW_SELF_TIME,
    SLOWEST,
    OPEN_TIME,
    SQUARES,
    COLUMNS
};

/*
 * The kinds of samples that are collected separately until the whole recording is read (settle() in
 * load_jfr.c).
 */
enum kind { CPU, TIMED, NOT_WALKED, ELAPSED, SAMPLED, TLAB, LOCKS, KINDS };

/*
 * jvmscope.AllocatedBytes so far, in bytes. The events of a chunk are not in the order of time, but
 * what a recording has counted only grows.
 */
struct allocated {
    const struct rec_chunk *chunk; /* of the last event that was read */
    uint64_t events, chunks;
    /*
     * the sum of the file's other recordings; the largest count in this one's earlier chunks, and
     * in this chunk
     */
    uint64_t others, earlier, here;
    int64_t last_ns, sampled_ns; /* the last event, and the last sample of allocations */
    bool whole;                  /* the file has an event from the beginning of the recording */
};

/* All calls of a method up to a moment. */
struct load_total {
    struct profile_calls calls;
    int64_t at_ns;
    bool unread; /* time that belongs to no method, which is written without calls */
};

/*
 * What the latest events of a site and thread state. at_ns: when the latest one was written.
 * live_ns: when the latest one with live figures was, from which the errors are.
 */
struct load_site_part {
    int64_t at_ns, live_ns;
    double objects_error, bytes_error;
    bool estimated, uncollected;
};

/* What is known of a thread's waits for monitors. */
struct load_wait {
    int64_t start_ns; /* of the last wait that was reported while it went on; 0: none was */
    int64_t ended_ns; /* of the last wait that has ended: when it began */
    uint32_t node;    /* the stack of the former */
};

/* Sums over the threads of a site: the squares of the errors, and how many threads have a mark. */
struct load_site_sum {
    double objects_squares, bytes_squares;
    uint32_t estimated, uncollected;
};

/* What the events of one sample have in common, besides their stack. */
struct load_same {
    int64_t start_ns;
    uint64_t thread;
};

/* CPU samples that also stand for others (load_jfr_thinned.c). */
struct load_thinned {
    bool any;            /* the budget left some out */
    struct load_same of; /* the last sample of several events */
    uint64_t run;        /* the number of its events so far */
    uint64_t repeated;   /* the events beyond one for each sample */
    double squares;      /* the sum of the squares of these numbers, less the number of events */
};

struct reading {
    struct load *l;
    struct profile *p;
    int64_t start_ns;   /* the start of the recording */
    int64_t ceiling_ns; /* in a part of a recording, its end: what ends later has not ended */
    struct names names;
    struct sum_options how;
    /*
     * for wall-clock samples, whose threads are kept separate because whether a thread is idle may
     * depend on its name
     */
    struct sum_options by_thread;
    struct sums sums[KINDS];
    struct load_queue queue; /* of samples of the sums of threads and cells */
    struct tally tallies[KINDS];
    struct load_thinned thinned;
    /* the previous row that was a sample, with its node */
    struct load_same last;
    int64_t last_node;
    struct allocated allocated;
    bool ours;          /* our agent recorded, with sampled allocation */
    bool rests_count;   /* by the VM's version: as in struct profile; see read_vm() */
    uint64_t period_ns; /* of the samples by CPU timers */
    struct map sites;   /* node and class to the site */
    VEC(struct load_site_sum) site_sums; /* of each site */
    struct map site_parts;               /* site and thread to the part */
    VEC(struct load_site_part) parts;
    int64_t sampler_ns;            /* the time of the latest jvmscope.SamplerCost */
    struct map calls;              /* node and thread to the row of calls */
    VEC(uint64_t) call_times;      /* of each row of calls: when it was last reported */
    struct map total_of;           /* node and thread to the row of totals */
    VEC(struct load_total) totals; /* totals of methods; the node has one frame */
    /*
     * node and thread to the amount that is still to be subtracted from its samples, see
     * add_change()
     */
    struct map pending;
    VEC(struct load_wait) waits; /* by the number of the thread */
    int64_t waits_end_ns;        /* when the last wait for a monitor ended */
};

/* ---- load_jfr.c */

/*
 * load_node returns the node of an event's stack, load_node_of_row that of a row's stack (0 when
 * the event has none), load_thread_of_row a row's thread. These are numbers of the profile, or
 * -ENOMEM or -E2BIG.
 */
int64_t load_node(struct reading *r, const struct rec_object *o) must_check;
int64_t load_node_of_row(struct reading *r, const struct rec_row *row) must_check;
int64_t load_thread_of_row(struct reading *r, const struct rec_row *row) must_check;

/*
 * Returns the time of start_ns from the start of the recording in ns; 0 for an event that began
 * earlier, such as a wait for a lock. Extends the profile's duration to this time.
 */
uint64_t load_since_start(struct reading *r, int64_t start_ns) must_check;

/*
 * Adds a sample of a kind. node and thread: as the functions above return them, which may be an
 * error. Returns 0 or a negative errno.
 */
int load_sample(struct reading *r, enum kind kind, int64_t start_ns, int64_t node, int64_t thread,
                uint64_t weight) must_check;

/* ---- load_jfr_waits.c */

/*
 * Notes a wait for a monitor that has ended, and reduces it to what lies in the recording and in
 * the selected part, as the monitor statistics do (analysis/monitor_stats.c). A wait that lies
 * outside is left as it is. Returns 1, 0 for a wait that does not count because it was over before
 * the part that the file is, or a negative errno.
 */
int load_wait_ended(struct reading *r, int64_t thread, int64_t *start_ns,
                    uint64_t *weight) must_check;

/*
 * Notes a wait that was reported while it went on (jvmscope.Waiting), if it is for a monitor.
 * Returns 0 or a negative errno.
 */
int load_wait_in_progress(struct reading *r, const struct rec_row *row) must_check;

/*
 * Adds the waits for monitors that have not ended when the recording does, up to its end. Call it
 * when all events are read. Returns 0 or a negative errno.
 */
int load_open_waits(struct reading *r, int64_t end_ns) must_check;

/* ---- load_jfr_thinned.c */

/* Notes an event of LOSSES_SELECT. */
void load_loss(struct reading *r, const struct rec_row *row);

/* Notes an event of the same CPU sample as the event before it. */
void load_thinned(struct reading *r, const struct load_same *of);

/* Sets what the CPU samples, which are all read, say about their error. */
void load_settle_thinned(const struct load_thinned *t, struct profile_series *series);

/* ---- load_jfr_exact.c */

/*
 * Subtracts the amounts in `pending` from the latest allocation samples of their node and thread,
 * and removes samples whose weight is 0 then.
 */
void load_subtract_pending(struct reading *r);

/*
 * Stores the total calls of a method up to an event. Such totals are saved from time to time when
 * there are many stacks; the latest one counts. Returns 0 or a negative errno.
 */
int load_total(struct reading *r, const struct rec_row *row) must_check;

/*
 * In a recording that was cut, adds the calls that the totals of methods include and the calls by
 * stack do not, as calls whose callers are unknown. Returns 0 or a negative errno.
 */
int load_settle_totals(struct reading *r) must_check;

/*
 * Decides on the times of calls once all are read, and makes the samples of views from them, where
 * the time of calls that have not returned is shown under a separate mark. Call it after
 * load_settle_totals. Returns 0 or -ENOMEM.
 *
 * Which part of the probes' cost lies in a method and which in its caller is not known, so a time
 * without that cost may be below zero, and its caller's is then too large by as much. A time below
 * zero is set to zero, and the difference is subtracted from the nearest caller. What is left when
 * no caller remains is dropped: the probes have cost less than was measured. No time is negative
 * afterwards, and every table, tree and format shows the same sum.
 */
int load_settle_times(struct reading *r) must_check;

/*
 * Adds the exact calls of an event, which are those since the previous event of its stack and
 * thread, to the row of these in the profile's `calls`. Returns 0 or a negative errno.
 */
int load_calls(struct reading *r, const struct rec_row *row) must_check;

/*
 * Adds a method that was left without probes, and the reason, to the profile's `left`. Returns 0 or
 * -ENOMEM.
 */
int load_left(struct reading *r, const struct rec_object *o) must_check;

/*
 * Adds an allocation site or, if the profile has the site already, the changes that the event
 * states. Returns 0 or a negative errno.
 */
int load_site(struct reading *r, const struct rec_row *row, const struct rec_event *e) must_check;
