/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that wait, and the waits in which they are. A wait is written when it ends, as one
 * event with a duration; one that has not ended at a flush is written as jvmscope.Waiting.
 */
#pragma once

#include "agent/session/session.h"
#include "agent/vm/thread_table.h"
#include "base/seqlock.h"
#include "jfr/losses.h"

#include <stdatomic.h>

/* A virtual thread's id in the recording is this bit and its Java id. */
#define VIRTUAL_THREAD (UINT64_C(1) << 40)

enum wait_kind {
    WAIT_ENTER,
    WAIT_OBJECT,
    WAIT_PARK,
    WAIT_SLEEP,
    WAIT_IO,
    WAIT_UNMOUNTED,
    WAIT_KINDS
};

/*
 * A wait in progress. Its own thread writes it; start is set last and cleared first. The agent's
 * thread sets `reported`, and replaces `trace` when the stack gets a new id (waiting_keep_stack).
 */
struct wait {
    _Atomic uint64_t start; /* the stamp of what follows (base/seqlock.h): ns; 0: none */
    uint64_t trace, class, owner;
    int64_t timeout;  /* ms of a wait or sleep, ns of a park */
    uint64_t monitor; /* the VM's address of a contended monitor; 0: unknown */
    uint32_t object;  /* identity hash */
    bool owned;       /* parked on a synchronizer that can be owned by a thread */
    bool reported;    /* as jvmscope.Waiting */
    bool plain;       /* only its times are known, to stay within the budget */
};

/* Shorter times without a carrier, in ns, are left in the wait that they follow. */
#define MOUNT_LATE 20000

/* mounts.c: how long a virtual thread had to wait for a carrier. */
struct lateness {
    uint64_t ready, deadline, mounted; /* in ns; 0: unknown */
    uint64_t occupant; /* the thread that had its carrier for most of the time; 0: unknown */
};

/* delays.c: how a platform thread uses its processor. */
struct running_time {
    /* in ns: running without a wait since then; 0: not running, or unknown */
    uint64_t since;
    uint64_t read;                  /* in ns: when the following were read */
    uint64_t cpu, switches, faults; /* since the thread's start; see delays.c */
    uint64_t waited;                /* ns of waits that have ended since */
    uint32_t slept;                 /* how many of these certainly gave up the processor */
    uint32_t watched;               /* for this many more readings Linux's count is used */
    uint64_t watched_until;         /* and until then; in ns */
    uint64_t delay, counted_at;     /* Linux's count, and when it was read; in ns; 0: never */
    bool counted;                   /* it was used for the previous reading */
};

struct waiter {
    uint64_t id; /* the thread's id in the recording */
    /* highest address of the thread's stack seen so far; 0 for virtual threads */
    uint64_t stack;
    /* deadlock=y: base of the stack of a platform thread; 0: not determined yet */
    uint64_t low, high;
    jweak thread; /* deadlock=y: a virtual thread */
    /* in ns: when a virtual thread that is unmounted was given to the scheduler; 0: it was not */
    _Atomic uint64_t ready;
    /* in ns: when its wait times out, for which the timer may itself need a carrier; 0: never */
    _Atomic uint64_t deadline;
    struct lateness late; /* of its last mount */
    /* the thread is virtual and has posted an event of its own in this capture */
    atomic_bool posted;
    bool is_virtual;
    bool in_vm; /* it has waited inside the VM since its start: its first event ends that */
    struct running_time run; /* of a platform thread, also while it carries a virtual one */
    bool was_short;          /* the last wait; see agent/session/budget.h */
    uint64_t entered;        /* in ns: when the last contended monitor was acquired */
    /*
     * locks=, in ns: when the thread began to wait for the monitor of arrived_object; 0: it holds
     * it
     */
    uint64_t arrived;
    uint32_t arrived_object;
    struct held_locks *locks; /* locks=: the monitors that it holds; NULL until the first */
    struct last_stacks *last; /* stack.c; NULL until the first */
    /*
     * natives.c: class of the object it last parked on, whose identity hash is blocker, as the
     * recording knew it in a chunk
     */
    uint64_t blocker_class;
    uint32_t blocker, blocker_chunk;
    uint32_t parks_left_out; /* including those that have already been counted as lost */
    struct wait waits[WAIT_KINDS];
};

/* Makes room for the waits of platform threads. Returns 0 or -ENOMEM. */
int waiters_init(void) must_check;
/* Frees all waits. No event may arrive any more. */
void waiters_release(void);

/* Returns the current platform thread; NULL for the agent's own threads. */
struct thread *waiters_platform_self(JNIEnv *jni);
/*
 * Called in ThreadStart and ThreadEnd. What the calling thread does after ThreadEnd is done by the
 * VM and not by the program.
 */
void waiters_thread_starts(void);
void waiters_thread_ends(void);
/* Forgets the waits of a virtual thread that ends. */
void waiters_remove_virtual(JNIEnv *jni, uint64_t java_id);
/* Returns what Thread.getId returns. */
uint64_t waiters_java_id(JNIEnv *jni, jthread thread);

/*
 * Returns the calling thread's waits; NULL for the agent's own threads and when the capture is off.
 * thread: the current thread, or NULL.
 */
struct waiter *waiter_self(JNIEnv *jni, jthread thread);

/* Returns the base of a platform thread's stack as far as it is known; 0: unknown. */
uint64_t waiter_stack(const struct thread *t);
/* Returns whether it is known where a platform thread's stack is (deadlock=y): from low to below
 * high. */
bool waiter_stack_known(const struct thread *t, uint64_t *ret_low, uint64_t *ret_high);

/*
 * Calls f for each thread that has waited. thread is a local reference to a virtual thread; it is
 * NULL for platform threads and without deadlock=y. A lock is held during calls for virtual
 * threads; those whose lock cannot be had (patience.h) are left out.
 */
void waiters_visit(JNIEnv *jni, void (*f)(struct waiter *w, jthread thread, void *arg), void *arg);
/* Returns whether all of these locks can be had. */
bool waiters_reachable(void);

/* Returns the id in the recording of a live thread, given its Java id; 0 when unknown. */
uint64_t thread_record_id(uint64_t java_id);
/* Returns the id of any thread; describes a virtual thread to the recording. */
uint64_t thread_record(JNIEnv *jni, jthread thread);
/* Records that a virtual thread is given to the scheduler now. */
void waiter_ready(JNIEnv *jni, jthread thread);
/* Returns whether a thread has posted an event of its own in this capture. */
bool waiter_has_posted(uint64_t id);

/*
 * wait_begin begins a wait of the calling thread, at how->start or, when that is 0, now. wait_end
 * ends it, and stores it in *ret and its length in *ret_ns; it returns false when no wait had
 * begun.
 */
void wait_begin(struct waiter *w, enum wait_kind kind, const struct wait *how);
bool wait_end(struct waiter *w, enum wait_kind kind, struct wait *ret, uint64_t *ret_ns);
/*
 * To stay within the budget: wait_is_plain returns whether only the times of a wait that begins are
 * kept, wait_left_out whether a wait that has ended, after ns, is left out altogether, which it
 * counts as a loss (never one that was reported: it would seem to go on), and wait_lacks whether
 * one that is not left out lacks its stack or its object although it was long: these can be read
 * when it has ended.
 */
bool wait_is_plain(const struct waiter *w);
bool wait_left_out(const struct wait *was, uint64_t ns);
bool wait_lacks(const struct wait *was, uint64_t ns);

/*
 * Returns the calling thread's waits if a park is not to be timed because that would exceed the
 * budget: for a platform thread whose last wait was short. A cheap clock still finds parks that are
 * long. NULL: the park is timed as usual.
 */
struct waiter *waiter_untimed(JNIEnv *jni);
/*
 * Counts one more wait as left out, and reports them as lost in portions. Must not be called
 * between threads_natives_enter and threads_natives_leave.
 */
void waiter_leaves_out(uint32_t *count, enum jfr_loss loss);
