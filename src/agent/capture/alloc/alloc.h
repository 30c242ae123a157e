/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of exact allocation profiles share. points.c: places in bytecode, and each
 * thread's counters of them; edit.c: the probes' insertion; exact.c: the capture, whose native
 * methods the probes call now and then; strata.c: which of a counter's objects has its stack looked
 * at; failed.c: what is counted first and then not made; native.c: what the VM and JNI allocate.
 */
#pragma once

#include "agent/capture/alloc/sites.h"
#include "agent/instrument/instrument.h"
#include "base/map.h"
#include "base/vec.h"

/* What a place allocates. */
enum alloc_kind {
    ALLOC_NEW,   /* instances of one class, arrays of one class and length; one counter */
    ALLOC_ARRAY, /* arrays of one class; two: objects, bytes */
    /*
     * what a call answers, of any class; arrays of bytes count in two, others at a place for each
     * class
     */
    ALLOC_OBJECT,
    ALLOC_MULTI, /* multianewarray; natively */
};

struct alloc_point {
    enum alloc_kind kind;
    uint32_t class;   /* descriptor, in the pool of names */
    uint32_t size;    /* of each of ALLOC_NEW; 0: not measured yet */
    uint32_t unknown; /* the class was not found */
};

enum {
    ALLOC_POINTS_MAX = 1 << 21,
    ALLOC_SLOT_BITS = 16,
    ALLOC_SLOTS = 1 << ALLOC_SLOT_BITS,
    ALLOC_FREE = 1,
    ALLOC_GONE = 2
};

/* A counter of a thread; the probes know the layout. An array's second one counts its bytes. */
struct alloc_counter {
    uint64_t count, next; /* from `next` on the probe calls look() */
};

/*
 * What look() has seen of a counter. Its counts are cut into strata, in each of which the stack is
 * looked at once.
 */
struct alloc_look {
    uint32_t point;
    int64_t site;            /* of the last look; -1: none */
    bool several;            /* it has met more than one */
    uint64_t objects, bytes; /* added to sites so far */
    uint64_t failed;         /* counted, and then not made */
    uint64_t begin;          /* the first count that this session may use */
    uint64_t gap, end;       /* of the stratum; end 0: none yet */
};

/*
 * Of each place the counter of the thread that owns it: the first to come by, until it ends. That
 * thread finds it by the place's number alone; others go by their slot to a block of their own. The
 * probes know the layout.
 */
struct alloc_cell {
    struct alloc_counter counter;
    uint64_t bytes; /* of arrays: where a block has the second counter */
    uint64_t owner; /* address of the JavaThread; 0: none */
};

_Static_assert(sizeof(struct alloc_cell) == 32, "the probes know the layout");

/* A thread's counters; one thread's at a time, and handed on when it ends. Never unmapped. */
struct alloc_block {
    struct alloc_counter *counters; /* ALLOC_POINTS_MAX; NULL: those of alloc_cells */
    VEC(uint32_t) owned;            /* places whose cells are the thread's */
    struct map index;               /* point to look */
    VEC(struct alloc_look) looks;
    struct alloc_block *next, *next_free;
};

struct alloc_slot {
    uint64_t key; /* address of the JavaThread; plus 1 while its thread is to come to attend() */
    struct alloc_counter *counters;
    uint64_t unused; /* the probes know where `expected` lies */
    /* 1 while the thread is about to call Unsafe.allocateInstance in code with probes */
    uint64_t expected;
};

extern struct alloc_slot *alloc_slots;
extern struct alloc_cell *alloc_cells;
extern struct alloc_block *alloc_blocks; /* all of them, that of the cells included */

/* Maps the slots, once. */
int alloc_points_init(void) must_check;
/* The rest up to alloc_points_add is under sites_lock(). */
struct alloc_block *alloc_block_take(void);
void alloc_block_give(struct alloc_block *b);
struct alloc_look *alloc_look_of(struct alloc_block *b, uint32_t point); /* NULL: no memory */
struct alloc_slot *alloc_slot_add(uint64_t key, struct alloc_block *b);  /* NULL: full */
struct alloc_counter *alloc_counter_of(struct alloc_block *b, uint32_t point);
/* Where the thread of this key and block counts a place: in the block, or among the cells. */
struct alloc_block *alloc_block_for(struct alloc_block *own, uint64_t key, uint32_t point);
/* Makes a place's cell the thread's if it is nobody's. */
void alloc_own(struct alloc_block *own, uint64_t key, uint32_t point);
/* The thread ends: its cells are nobody's. What they count next is looked at anew when `forget`. */
void alloc_disown(struct alloc_block *own, bool forget);

/*
 * The numbers of n places in a method body, the same for the same body: the first, or -ENOBUFS,
 * -ENOMEM. *ret_new tells that they are to be described by alloc_point_set. Any thread.
 */
int64_t alloc_points_add(struct str class_name, const struct edit *e, uint32_t n, bool *ret_new);
/* A place of its own, for objects of one class that a call answers; -ENOBUFS. */
int64_t alloc_point_new(enum alloc_kind kind, const char *descriptor);
void alloc_point_set(uint32_t number, enum alloc_kind kind, const char *descriptor, size_t len);
struct alloc_point *alloc_point(uint32_t number);
const char *alloc_point_class(uint32_t number); /* stays */
uint32_t alloc_points_count(void);

/* Which objects are followed until they die. */
enum alloc_follow {
    FOLLOW_SAMPLES, /* those that the VM samples: the probes get no object */
    FOLLOW_LOOKS,   /* one at each look (JDK 8) */
    FOLLOW_ALL,     /* live=exact, heap=all */
};

/* instrument.h's edit. */
int alloc_edit(const struct instrument_class *c, struct edit *e);
extern enum alloc_follow alloc_follow; /* set before instrumentation begins */

/*
 * Adds to a site; what has none is in alloc_no_room. Under sites_lock(), as the rest of strata.c
 * unless it says otherwise.
 */
void alloc_add(int64_t site, double objects, double bytes);
extern uint64_t alloc_no_room; /* objects, and threads, that have no place */
/* Brings the sites up to date with all counters. */
void alloc_settle(JNIEnv *jni);
/* The looks are nobody's: what comes next is looked at. The owner may be running. */
void alloc_forget(struct alloc_block *b);
void alloc_forget_look(struct alloc_block *b, struct alloc_look *l);
void alloc_forget_all(void); /* takes the lock itself */
/*
 * A counter has reached its next value: begins a stratum if the last one has ended. True when the
 * stack is to be looked at now.
 */
bool alloc_look_due(struct alloc_look *l, struct alloc_counter *c);
/* 0 .. n - 1, on the calling thread; any thread, no lock. */
uint64_t alloc_random_below(uint64_t n);

/* What a class that `new` names lets it do. */
enum alloc_class_state {
    ALLOC_CLASS_READY,
    ALLOC_CLASS_BEGINS, /* is about to be initialised, or another thread does it */
    ALLOC_CLASS_WITHIN, /* this thread does it */
    ALLOC_CLASS_FAILED, /* throws */
};

enum alloc_class_state alloc_class_state(JNIEnv *jni, jclass class);
/* A look at a place whose class is not READY; under the lock. */
void alloc_begun(JNIEnv *jni, struct alloc_block *b, uint32_t point, jclass class,
                 enum alloc_class_state state);
/* Takes back what was not made, and measures what was. Without the lock, while alloc_busy. */
void alloc_settle_begun(JNIEnv *jni);
/*
 * Learns the size of a place's instances; class NULL: looks for it. Not under the lock, while
 * alloc_busy.
 */
void alloc_measure(JNIEnv *jni, uint32_t point, jclass class);
uint64_t alloc_no_size(bool forget); /* places whose class was not to be measured */
/* Counts an object once, by the calling thread's stack. */
void alloc_count(JNIEnv *jni, jobject object);
/* True while the agent itself allocates on this thread. */
extern __thread bool alloc_busy;
/* JNI's functions that allocate, and Unsafe.allocateInstance, are replaced and put back. */
int alloc_native_on(JNIEnv *jni, struct buf *why) must_check;
void alloc_native_off(JNIEnv *jni);
bool alloc_expected(void); /* and no more */
uint64_t alloc_slot_key(JNIEnv *jni);

/*
 * The VM's samples, from the first interval on; alloc_samples_threads is to be told of new threads.
 */
extern const struct thread_listener alloc_samples_threads;
void alloc_samples_begin(void);
void JNICALL alloc_on_sample(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                             jclass class, jlong size);
