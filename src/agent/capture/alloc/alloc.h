/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface between the parts of exact allocation profiles: points.c numbers the allocating places
 * in bytecode and holds each thread's counters; edit.c inserts the probes; exact.c is the capture
 * and implements the native methods that the probes call occasionally; strata.c chooses the objects
 * whose stacks are sampled; failed.c corrects for objects that were counted but never created;
 * native.c counts what the VM and JNI allocate.
 */
#pragma once

#include "agent/capture/alloc/sites.h"
#include "agent/instrument/instrument.h"
#include "base/map.h"
#include "base/vec.h"

/* What a place allocates. */
enum alloc_kind {
    ALLOC_NEW,   /* instances of one class, or arrays of one class and length; one counter */
    ALLOC_ARRAY, /* arrays of one class; two counters: objects and bytes */
    /*
     * the result of a call, of any class; byte arrays are counted by two counters, other classes
     * get a point each
     */
    ALLOC_OBJECT,
    ALLOC_MULTI, /* multianewarray; counted by a native method */
};

struct alloc_point {
    enum alloc_kind kind;
    uint32_t class;   /* descriptor, in the pool of names */
    uint32_t size;    /* of each object of ALLOC_NEW; 0: not measured yet */
    uint32_t unknown; /* the class was not found */
    bool offered;     /* a probe offers its objects for tracking */
};

enum {
    ALLOC_POINTS_MAX = 1 << 21,
    ALLOC_SLOT_BITS = 16,
    ALLOC_SLOTS = 1 << ALLOC_SLOT_BITS,
    ALLOC_FREE = 1,
    ALLOC_GONE = 2
};

/* A thread's counter. The probes know this layout. An array's second counter holds its bytes. */
struct alloc_counter {
    uint64_t count, next; /* when count reaches `next`, the probe calls sampleStack */
};

/*
 * What is known of a counter from its stack samples. Its counts are divided into strata, and the
 * stack is sampled once in each.
 */
struct alloc_sampling {
    uint32_t point;
    int64_t site;            /* of the last sample; -1: none */
    double weight;           /* the objects of that sample's stratum; 0: none in this session */
    bool several;            /* samples have found more than one site */
    uint64_t objects, bytes; /* added to sites so far */
    uint64_t failed;         /* counted, but never created */
    uint64_t begin;          /* the first count that belongs to this session */
    uint64_t gap, end;       /* of the current stratum; end 0: none yet */
};

/*
 * The counter of a point for the thread that owns the point: the first thread to reach it, until
 * that thread ends. The owner finds it by the point's number alone; other threads use their slot
 * and a block of their own. The probes know this layout.
 */
struct alloc_cell {
    struct alloc_counter counter;
    uint64_t bytes; /* of arrays; a block has its second counter instead */
    uint64_t owner; /* address of the JavaThread; 0: none */
};

_Static_assert(sizeof(struct alloc_cell) == 32, "the probes know the layout");

/* An object that the VM has reported and that a probe may be about to count. */
struct alloc_pending {
    jweak object; /* NULL: there is none */
    int64_t site;
    jlong size;
};

/*
 * The counters of one thread. A block is used by one thread at a time and reused when that thread
 * ends. It is never unmapped.
 */
struct alloc_block {
    struct alloc_counter *counters; /* ALLOC_POINTS_MAX; NULL: the thread uses alloc_cells only */
    VEC(uint32_t) owned;            /* points whose cells this thread owns */
    struct map index;               /* point -> stack samples */
    VEC(struct alloc_sampling) samplings;
    struct alloc_block *next, *next_free;
    /* of a thread that ended when it could not acquire the lock */
    struct alloc_block *next_ended;
    struct alloc_pending pending;
};

struct alloc_slot {
    /* address of the JavaThread, plus 1 while probes of the thread still have to call attend() */
    uint64_t key;
    struct alloc_counter *counters;
    uint64_t unused; /* the probes know the offset of `expected` */
    /* 1 while the thread is about to call Unsafe.allocateInstance in instrumented code */
    uint64_t expected;
};

extern struct alloc_slot *alloc_slots;
extern struct alloc_cell *alloc_cells;
extern struct alloc_block *alloc_blocks; /* including the one for the cells */

/*
 * Maps the tables of points, slots and cells, once, and begins a recording. Returns 0 or -ENOMEM.
 */
int alloc_points_init(void) must_check;
/* Functions up to alloc_points_add require sites_lock(). */
struct alloc_block *alloc_block_take(void);
void alloc_block_give(struct alloc_block *b);
struct alloc_sampling *alloc_sampling_of(struct alloc_block *b,
                                         uint32_t point);               /* NULL: no memory */
struct alloc_slot *alloc_slot_add(uint64_t key, struct alloc_block *b); /* NULL: full */
struct alloc_counter *alloc_counter_of(struct alloc_block *b, uint32_t point);
/* Returns the block that holds a point's counter: `own`, or the cells' if `own` owns the cell. */
struct alloc_block *alloc_block_for(struct alloc_block *own, uint64_t key, uint32_t point);
/* Makes the thread the owner of a point's cell if the cell has none. */
void alloc_own(struct alloc_block *own, uint64_t key, uint32_t point);
/* Returns whether the thread of this block owns the point's cell. */
bool alloc_owns(const struct alloc_block *own, uint32_t point);
/* Gives up the cells of an ended thread. With `forget`, their next counts start a new stratum. */
void alloc_disown(struct alloc_block *own, bool forget);
/*
 * Gives up the block of a thread that ends without the lock: its cells remain as they are, and no
 * thread owns them, until alloc_disown.
 */
void alloc_orphan(struct alloc_block *own);

/*
 * Assigns numbers to n points of a method body; the same body always gets the same numbers. Returns
 * the first number, or -ENOBUFS or -ENOMEM. *ret_new means that the caller must describe the points
 * with alloc_point_set. Callable from any thread.
 */
int64_t alloc_points_add(struct str class_name, const struct edit *e, uint32_t n, bool *ret_new);
/*
 * Makes a separate point for objects of one class that a call returned. Returns its number, or
 * -ENOBUFS.
 */
int64_t alloc_point_new(enum alloc_kind kind, const char *descriptor);
void alloc_point_set(uint32_t number, enum alloc_kind kind, const char *descriptor, size_t len);
struct alloc_point *alloc_point(uint32_t number);
const char *alloc_point_class(uint32_t number); /* remains valid */
uint32_t alloc_points_count(void);

/* Which objects are followed until they die. */
enum alloc_follow {
    FOLLOW_STACKS, /* one for each stack sample: each, within the budget of sites.h */
    FOLLOW_ALL,    /* live=exact, heap=all */
};

/* Inserts the probes into a class (the function `edit` of instrument.h). */
int alloc_edit(const struct instrument_class *c, struct edit *e);
extern enum alloc_follow alloc_follow; /* set before instrumentation starts */

/*
 * Adds to a site. What does not fit is added to alloc_no_room. Everything in strata.c requires
 * sites_lock(), unless stated otherwise.
 */
void alloc_add(int64_t site, double objects, double bytes);
extern uint64_t alloc_no_room; /* objects, and threads, for which there was no room */
/* Updates the sites from all counters. */
void alloc_settle(JNIEnv *jni);
/*
 * Returns the variance of the live objects, or bytes, of a site, from the sums of the squares of
 * what its tracked objects represent, and from that of its division among stacks.
 */
double alloc_variance(const struct site *s, double live_squares, double squares, double division);
/*
 * Corrects the live figures of sites, once they are counted, by what strata that have not ended
 * represent.
 */
void alloc_complete_live(void);
/*
 * Detach stack samples from their thread, so that the next count is sampled: those of all counters
 * of a block, of the counter with the samples l, and of all blocks. The owner may be running.
 */
void alloc_forget(struct alloc_block *b);
void alloc_forget_sampling(struct alloc_block *b, struct alloc_sampling *l);
void alloc_forget_all(void);
/*
 * Forgets all that was counted and followed before the recording, which begins now. Under the lock;
 * sites_drop_forgotten must follow.
 */
void alloc_start_again(void);
/*
 * Called when a counter has reached its `next` value. Begins a new stratum if the last one has
 * ended. Returns true when the stack should be sampled now.
 */
bool alloc_sample_due(struct alloc_sampling *l, struct alloc_counter *c);
/*
 * Returns the size in bytes of a point's objects, on average if they are arrays. Requires the lock.
 */
uint64_t alloc_size_of(uint32_t point, const struct alloc_counter *c);
/* Returns a random number in 0 .. n - 1. Any thread, no lock. */
uint64_t alloc_random_below(uint64_t n);

/* The state of the class that a `new` instruction names. */
enum alloc_class_state {
    ALLOC_CLASS_READY,
    ALLOC_CLASS_BEGINS, /* not initialized, or being initialized by another thread */
    ALLOC_CLASS_WITHIN, /* being initialized by this thread */
    ALLOC_CLASS_FAILED, /* initialization has failed: the instruction throws */
};

enum alloc_class_state alloc_class_state(JNIEnv *jni, jclass class);
/* Records a stack sample at a point whose class is not READY. Requires the lock. */
void alloc_begun(JNIEnv *jni, struct alloc_block *b, uint32_t point, jclass class,
                 enum alloc_class_state state);
/*
 * Objects counted so far stay counted, even if they turn out never to have been created. Under the
 * lock.
 */
void alloc_begun_forget(void);
/*
 * Subtracts objects that were never created, and measures the others: those of the thread that has
 * the block `own`, or all if it is NULL. Returns false when that thread could not acquire the lock
 * (sites_lock_patiently). Without the lock, while alloc_busy.
 */
bool alloc_settle_begun(JNIEnv *jni, const struct alloc_block *own);
/*
 * Determines the instance size at a point; with class NULL, finds the class first. Not under the
 * lock; while alloc_busy.
 */
void alloc_measure(JNIEnv *jni, uint32_t point, jclass class);
uint64_t alloc_no_size(bool forget); /* points whose class could not be measured */
/* Counts a single object under the calling thread's stack. */
void alloc_count(JNIEnv *jni, jobject object);
/* true while the agent itself is allocating on this thread */
extern __thread bool alloc_busy;
/*
 * Replaces the JNI functions that allocate and Unsafe.allocateInstance, and restores them. `on`
 * returns 0 or a negative errno with a sentence in why.
 */
int alloc_native_on(JNIEnv *jni, struct buf *why) must_check;
void alloc_native_off(JNIEnv *jni);
/* returns the calling thread's `expected` (struct alloc_slot) and clears it */
bool alloc_expected(void);

/*
 * The VM's own sampling, starting with the first interval. alloc_samples_threads must be called for
 * new threads.
 */
extern const struct thread_listener alloc_samples_threads;
void alloc_samples_begin(void);
void JNICALL alloc_on_sample(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                             jclass class, jlong size);
