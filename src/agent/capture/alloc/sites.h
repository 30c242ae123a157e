/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation sites: what heap=sites and alloc= count, by class and stack, and the sections and
 * events made of it. Figures are doubles: whole numbers where every object was counted, weights
 * where objects stand for others (Horvitz and Thompson, 1952). Objects that are followed are held
 * by weak references, so that after a collection their weights say what lives.
 *
 * Stacks are kept by line: a bytecode index is that of its line's first instruction, so that the
 * same place in a method is one site before and after instrumentation moves it. The table is under
 * one lock; reports run one at a time.
 */
#pragma once

#include "agent/session.h"
#include "agent/thread_table.h"
#include "base/map.h"
#include "jfr/losses.h"

struct estimate {
    double objects, bytes;
};

struct site {
    struct estimate allocated; /* counted */
    struct estimate sampled;   /* of the VM's samples; what is known where nothing is counted */
    struct estimate live;      /* of the last report */
    /* of `live`, from what is followed and stands for more than itself */
    struct estimate variance;
    double followed;      /* objects that are, or were until they died, each one followed */
    uint32_t held;        /* by thinning out alone */
    bool met;             /* an object has been followed */
    struct estimate told; /* allocated, at the last incremental report */
    struct estimate told_live;
    bool live_is_told; /* an event says what lives */
};

struct site_frame {
    uint64_t method;
    int64_t bci;
};

enum { SITE_DEPTH_MAX = 1024, SITE_SKIP_FEW = 3, SITE_SKIP_MAX = 8 };

/*
 * Begins a session's table. exact: objects are counted, and samples only say what lives; all: every
 * object is followed.
 */
void sites_begin(const struct options *o, bool exact, bool all);
void sites_end(void);

/* Frames that a site has: of depth=, or what a front-end asked for. */
uint32_t sites_depth(void);
bool sites_by_thread(void); /* thread=y */
/*
 * The calling thread's stack without the probes' frames and then without the methods that are
 * counted where they are called (Object.clone ...; *ret_at_call tells, may be NULL). Answers how
 * many frames.
 */
uint32_t sites_stack(JNIEnv *jni, struct site_frame frames[SITE_DEPTH_MAX], bool *ret_at_call);
/*
 * The same for a class by signature, "Lp/C;": the site's number, -1 when there is no room. Under
 * the lock.
 */
int64_t sites_find(const char *signature, const struct thread *self,
                   const struct site_frame *frames, uint32_t n);
struct site *sites_at(int64_t number); /* under the lock */
void sites_lock(void);
void sites_unlock(void);
/*
 * An object of `size` bytes that stands for `weight`, followed until it dies; takes the reference
 * over. Under the lock. When there are SITES_HELD_MAX, half of those of sites with many are let go,
 * and the others stand for twice as many.
 */
void sites_follow(JNIEnv *jni, int64_t site, jweak object, double weight, jlong size);

/*
 * The probability that an object of `size` bytes is sampled at an interval in bytes; the interval
 * unless more is said.
 */
enum { SITES_INTERVAL = 512 << 10 };

/*
 * The budget: so many objects are followed one by one from the start, then a thousand a second; so
 * many at a time.
 */
enum { SITES_FREE = 1 << 15, SITES_HELD_MAX = 1 << 17, SITES_HELD_FEW = 64 };

/* Whether every object is to be followed still; without the lock. */
bool sites_follow_each(void);

double sites_chance(jlong size, uint64_t interval);

/* Brings the counts up to date; under the lock. */
typedef void sites_settle(JNIEnv *jni);

void sites_report(struct session *s, JNIEnv *jni, unsigned flags, double cutoff,
                  sites_settle *settle);
/*
 * capture.h's save: what was allocated. What lives is known after a collection alone, which only a
 * report asks for.
 */
uint64_t sites_save(struct session *s, JNIEnv *jni, sites_settle *settle);
void sites_request(struct session *s, JNIEnv *jni, const struct hprof_request *r,
                   sites_settle *settle);
/*
 * heap=all: the traces of objects in a heap dump that the VM has just written: address to trace
 * serial, of all that are followed. -EAGAIN when the collector has been at work since, so that
 * addresses are no longer those of the dump.
 */
int sites_traces(struct session *s, JNIEnv *jni, struct map *ret) must_check;
/*
 * The VM's end: collects and notes what lives, for the report that comes when no collection may be
 * asked for any more.
 */
void sites_ending(JNIEnv *jni);
/* Forgets what has died, and tells the recording (NULL: none) what was lost. */
void sites_flush(JNIEnv *jni, struct jfr_writer *w);
void sites_status(struct buf *out);
