/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation sites: what heap=sites and alloc= count, by class and stack, and the sections and
 * events that report it. Figures are doubles: whole numbers where every object was counted, weights
 * where an object represents others (Horvitz and Thompson, 1952). Tracked objects are held by weak
 * references; after a collection their weights show what is alive.
 *
 * Stacks are kept by line: a bytecode index is replaced by that of the first instruction of its
 * line, so that a place in a method is the same site before and after instrumentation moves it. One
 * lock protects the table, and reports run one at a time.
 */
#pragma once

#include "agent/session/session.h"
#include "agent/vm/thread_table.h"
#include "base/map.h"
#include "jfr/losses.h"
#include "unwind/walk.h"

struct estimate {
    double objects, bytes;
};

/*
 * The part of strata that no tracked object represents, or if a tracked one represents more than
 * was counted, that difference, which is negative.
 */
struct site_rest {
    double objects, settled; /* settled: how many of their counted objects are in `allocated` */
    double squares;          /* of what no object represents, for the variance */
    double most;             /* the largest one that no object represents */
    double size;             /* bytes of an object */
};

struct site {
    struct estimate allocated; /* counted */
    /*
     * objects of `allocated` that only the VM reported, although probes count such calls: the call
     * is in code without probes
     */
    double without_probe;
    struct estimate sampled;  /* estimated from the VM's samples, where nothing is counted */
    struct estimate live;     /* as of the last report */
    struct estimate variance; /* of `live` */
    /* estimated from the VM's samples, where nothing is counted or tracked */
    struct estimate sampled_live, sampled_variance;
    /*
     * Sums of squares, for the variance: of the number of objects, and of the bytes, that each
     * tracked object represents or represented until it died. Objects that represent only
     * themselves are left out.
     */
    struct estimate squares;
    struct site_rest cut; /* strata that the end of their thread cut short */
    /* The variance of `allocated` that comes from dividing a place's count among stacks. */
    struct estimate division;
    double followed; /* objects that are, or were until they died, tracked individually */
    uint32_t held;   /* while objects are thinned out: how many of this site are tracked */
    uint32_t seen;   /* how many of these have been handled so far */
    bool released;   /* the last one handled is no longer tracked */
    double most;     /* the largest number of objects that a tracked object has represented */
    bool tracked;    /* an object has been tracked */
    struct estimate reported; /* `allocated` as of the last incremental report */
    struct estimate reported_live;
    bool live_is_reported; /* an event has reported what is alive */
};

struct site_frame {
    uint64_t method;
    int64_t bci;
};

enum { SITE_DEPTH_MAX = 1024, SITE_SKIP_FEW = 3, SITE_SKIP_MAX = 8 };

/*
 * Begins a session's table. exact: every object that can be counted is counted, and samples
 * estimate the others; all: every object is tracked.
 */
void sites_begin(const struct options *o, bool exact, bool all);
void sites_end(void);
/*
 * Forgets all counts and tracked objects; the sites and their numbers remain valid. Requires the
 * lock. Afterwards, without the lock, call sites_drop_forgotten.
 */
void sites_start_again(void);
void sites_drop_forgotten(JNIEnv *jni);

/*
 * Changes when stored numbers of sites become invalid: when the depth of stacks changes and when
 * the table is emptied. Never 0; constant while the lock is held.
 */
uint32_t sites_round(void);
/* Returns the number of frames that a site keeps: that of depth=, or what a front end requested. */
uint32_t sites_depth(void);
bool sites_by_thread(void); /* thread=y */

/* What is on top of a stack that allocates. */
enum site_top {
    SITE_TOP_OTHER,
    SITE_TOP_AT_CALL, /* a method that is counted at its call site (Object.clone ...) */
    SITE_TOP_NATIVE,  /* such a method, and it is native: the VM reports the object */
};

/*
 * Reads the calling thread's stack without the frames of the probes, of methods that are counted at
 * their call site, and of the VM's code between a lambda expression and its object. Stores what is
 * on top in *ret_top, which may be NULL. Returns the number of frames.
 */
uint32_t sites_stack(JNIEnv *jni, struct site_frame frames[SITE_DEPTH_MAX], enum site_top *ret_top);
/*
 * Like sites_stack, but also returns the words that determine the frames; ret_words may be NULL
 * (own_stack.h).
 */
uint32_t sites_stack_words(JNIEnv *jni, struct site_frame frames[SITE_DEPTH_MAX],
                           enum site_top *ret_top, struct walk_words *ret_words);
/* Returns whether a stack leads through a probe class: what it allocates is not the program's. */
bool sites_is_ours(JNIEnv *jni, const struct site_frame *frames, uint32_t n);
/*
 * Finds or adds the site of a class, given by its signature "Lp/C;", and a stack. Returns the
 * site's number, or -1 if there is no room. Requires the lock.
 */
int64_t sites_find(const char *signature, struct thread *self, const struct site_frame *frames,
                   uint32_t n);
/*
 * Returns the bytecode index of the innermost frame of a site, or -1 if it has no frames. Requires
 * the lock.
 */
int64_t sites_line_of(int64_t number);
struct site *sites_at(int64_t number); /* under the lock */
/*
 * An object was counted because the VM reported it, at a call that has no probe: what compiled code
 * creates there, the VM does not report. Requires the lock.
 */
void sites_without_probe(int64_t number);
void sites_lock(void);
/*
 * Acquires the lock on threads of the program, which must not wait for long (patience.h). Returns
 * false when the lock could not be acquired; `bytes` of objects are then counted as lost.
 */
bool sites_lock_patiently(double bytes) must_check;
/* The argument of sites_lock_patiently for an object of unknown size. */
#define SITES_SIZE_UNKNOWN (-1.0)
/*
 * Makes the VM take one in 4^level of its usual samples; 0: all of them. The weights of the samples
 * are adjusted.
 */
void alloc_samples_reduce(unsigned level);
void sites_unlock(void);
/* Returns whether the table's lock can be acquired (the function `reachable` of capture.h). */
bool sites_reachable(void);
/*
 * Tracks an object of `size` bytes that represents `weight` until it dies; takes ownership of the
 * reference. Requires the lock. When SITES_HELD_MAX objects are tracked, half of those of frequent
 * sites are dropped and the remaining ones represent twice as many.
 */
void sites_follow(JNIEnv *jni, int64_t site, jweak object, double weight, jlong size);
/*
 * An object that is to be tracked has been counted at a site. expected: adds it, as a dead object,
 * to the sums of squares from which the error is computed; false: removes it again, just before
 * sites_follow adds it. Requires the lock.
 */
void sites_expect(int64_t site, double weight, uint32_t size, bool expected);
/*
 * Of two successive strata of a counter, one was attributed to this site and the other one to
 * another. It has `weight` objects of about `size` bytes. Requires the lock.
 */
void sites_divide(int64_t site, double weight, double size);
/*
 * Does what sites_follow does for an object that the VM has sampled, in addition to exact counts.
 */
void sites_follow_sample(JNIEnv *jni, int64_t site, jweak object, double weight, jlong size);

/* The VM's usual sampling interval in bytes. */
enum { SITES_INTERVAL = 512 << 10 };

/*
 * How many objects are tracked. The first SITES_FREE objects always are. After that, objects are
 * tracked only if their place has allocated fewer than SITES_FEW: another SITES_FREE of them, and
 * then one per millisecond of the session. At most SITES_HELD_MAX are tracked at a time; when they
 * are thinned out, sites with at most SITES_HELD_FEW keep all of theirs.
 */
enum {
    SITES_FREE = 1 << 15,
    SITES_FEW = 1 << 14,
    SITES_HELD_MAX = 1 << 17,
    SITES_HELD_FEW = 64,
};

/*
 * Returns whether the next object of a place that has allocated `n` objects is tracked. Without the
 * lock.
 */
bool sites_follow_each(uint64_t n);

/* Returns the probability that the VM samples an object of `size` bytes at an interval in bytes. */
double sites_chance(jlong size, uint64_t interval);

/* Adds to the sites what has been counted since the last call. Requires the lock. */
typedef void sites_settle(JNIEnv *jni);

/* Collects and counts what is alive, for the dump that follows. */
void sites_prepare(JNIEnv *jni, enum dump_reason reason);
/*
 * Writes the sites (the function `dump` of capture.h), ordered by their live bytes, or by allocated
 * bytes if those were requested.
 */
void sites_dump(struct session *s, JNIEnv *jni, sites_settle *settle);
/*
 * Writes what was allocated (the function `save` of capture.h). What is alive is known only after a
 * collection, which only a report requests.
 */
uint64_t sites_save(struct session *s, JNIEnv *jni, sites_settle *settle, bool *ret_all);
void sites_request(struct session *s, JNIEnv *jni, const struct hprof_request *r,
                   sites_settle *settle);
/*
 * Stores the allocation traces of the objects in a heap dump that the VM has just written
 * (heap=all), as address -> trace serial for all tracked objects. Returns 0, or a negative errno;
 * -EAGAIN when the collector has run since, so that addresses have changed.
 */
int sites_traces(struct session *s, JNIEnv *jni, struct map *ret) must_check;
/*
 * Collects and records what is alive at the end of the VM, for the report that is written when a
 * collection can no longer be requested.
 */
void sites_ending(JNIEnv *jni);
/* Forgets dead objects, and reports losses to the recording (NULL: none). */
void sites_flush(JNIEnv *jni, struct jfr_writer *w);
void sites_status(struct buf *out);
