/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads=y: which thread waits for which (TPTP thread profiling, "Extension for TPTP (Profiler)
 * events set"). threads.c is the capture: it handles the threads themselves and waits that have not
 * ended. monitors.c has JVM TI's monitor events, natives.c the native methods that are bound to
 * ours, owner.c finds the owner of a contended monitor. What JFR defines is written as jdk.*
 * events, the rest as jvmscope.* (doc/format.md).
 *
 * A wait is written when it ends, as one event with a duration; a wait that has not ended at a
 * flush is written as jvmscope.Waiting. The stack is walked when a wait begins, never at the
 * "entered" and "waited" events, when the thread holds the monitor.
 */
#pragma once

#include "agent/session/session.h"
#include "agent/vm/thread_table.h"
#include "base/seqlock.h"
#include "jfr/writer.h"

#include <stdatomic.h>

enum wait_kind {
    WAIT_ENTER,
    WAIT_OBJECT,
    WAIT_PARK,
    WAIT_SLEEP,
    WAIT_IO,
    WAIT_UNMOUNTED,
    WAIT_KINDS
};

/* A wait in progress. Written only by its own thread; start is set last and cleared first. */
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
struct running {
    /* in ns: running without a wait since then; 0: not running, or unknown */
    uint64_t since;
    uint64_t read;          /* in ns: when the following were read */
    uint64_t delay;         /* in ns, counted by Linux */
    uint64_t cpu, switches; /* computed from CPU time and waits */
    uint64_t waited;        /* ns of waits that have ended since */
    uint32_t slept;         /* how many of these certainly gave up the processor */
    uint32_t watched;       /* for this many more readings Linux's count is used */
    bool counted;           /* it was used for the previous one */
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
    /* in ns: when its wait ends by itself, for which the timer may itself need a carrier; 0: never
     */
    _Atomic uint64_t deadline;
    struct lateness late; /* of its last mount */
    atomic_bool come;     /* a virtual thread has posted an event of its own */
    bool is_virtual;
    struct running run; /* of a platform thread, also while it carries a virtual one */
    bool was_short;     /* the last wait; see agent/capture/budget/budget.h */
    uint64_t entered;   /* in ns: when the last contended monitor was acquired */
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
    uint32_t parks_left_out; /* with those that were counted as lost */
    struct wait waits[WAIT_KINDS];
};

enum threads_type {
    TYPE_ANALYSIS,
    TYPE_THREAD,
    TYPE_NOTIFY,
    TYPE_START,
    TYPE_INTERRUPT,
    TYPE_UNPARK,
    TYPE_WAITING,
    TYPE_UNMOUNTED,
    TYPE_READY,
    TYPE_DEADLOCK,
    TYPE_IO,
    TYPE_HOLD,
    TYPE_PREEMPTED,
    TYPES
};

struct thread_capture {
    struct jfr_writer *jfr; /* NULL while the capture is off */
    uint32_t types[TYPES];
    jint depth;
    bool instrument;  /* contanalysis */
    bool virtual_too; /* the VM posts events of virtual threads */
    bool mounts;      /* and when they are mounted and unmounted */
    bool watch;       /* deadlock=y: data that only this needs is kept as well */
    jfieldID tid, park_blocker;
    /* waits of which only the end was seen, or threads for which there was no room */
    atomic_uint_fast64_t lost;
};

extern struct thread_capture thread_capture;
extern const struct jfr_type thread_types[TYPES];

/*
 * The calling thread's waits; NULL for the agent's own threads and when the capture is off. thread:
 * the current thread, or NULL.
 */
struct waiter *waiter_self(JNIEnv *jni, jthread thread);

/* Base of a platform thread's stack as far as it is known; 0: unknown. */
uint64_t waiter_stack(const struct thread *t);
/* True when the address is known to be on the thread's stack (deadlock=y). */
bool waiter_stack_has(const struct thread *t, uint64_t address);

/*
 * Calls f for each thread that has waited. thread is a local reference to a virtual thread; it is
 * NULL for platform threads and without deadlock=y. A lock is held during calls for virtual
 * threads.
 */
void waiters_visit(JNIEnv *jni, void (*f)(struct waiter *w, jthread thread, void *arg), void *arg);

/*
 * Encloses everything that our natives do for the capture, but not the wait itself. Returns false
 * when the capture is off. JVM TI's callbacks are counted by vm.c.
 */
bool threads_natives_enter(void);
void threads_natives_leave(void);

/* The id in the recording of a live thread, given its Java id; 0 when unknown. */
uint64_t thread_record_id(uint64_t java_id);
/* The id of a platform thread, or of the virtual thread that is mounted on it now. */
uint64_t thread_running_on(const struct thread *t);
/* The calling thread, a carrier, runs that virtual thread from now on; 0: none. */
void thread_carries(JNIEnv *jni, uint64_t id);
/* The virtual thread that the calling carrier ran for most of the time since then; 0: unknown. */
uint64_t thread_carried_since(uint64_t time);
/* A virtual thread is given to the scheduler now. */
void waiter_ready(JNIEnv *jni, jthread thread);
/* Whichever carrier was known to run `was` runs `now` from now on; 0: none. */
void thread_carried(const struct thread *carrier, uint64_t was, uint64_t now);
/* The same for any thread; a virtual thread is described to the recording. */
uint64_t thread_record(JNIEnv *jni, jthread thread);
/* jvmscope.ThreadObject of a virtual thread that existed before the capture. */
void threads_put_thread_there(JNIEnv *jni, uint64_t id, jthread thread, uint64_t since);

/* objects.c */
uint32_t object_identity(jobject o);
/* The class of an object as a constant of the recording; 0 for NULL. */
uint64_t object_class(JNIEnv *jni, jobject o);
/* A class as a constant. */
uint64_t class_record(JNIEnv *jni, jclass c);
/* Its name, "java.lang.Object"; "?" when unknown. */
void object_class_name(uint64_t class, char *to, size_t size);
/* A new chunk begins, or the recording has ended: what is known of classes is learnt again. */
void objects_forget(void);
/*
 * stack.c: the calling thread's stack as a constant. init must be called before the first one;
 * flush is called ten times a second.
 */
void stack_init(JNIEnv *jni);
void stack_flush(void);
uint64_t stack_here(JNIEnv *jni, struct waiter *w);
/* The same for a wait that begins; 0: it was left out to stay within the budget. */
uint64_t stack_of_wait(JNIEnv *jni, struct waiter *w);
/* A stack of another thread, as read by JVM TI, as a constant. */
uint64_t stack_of_frames(const jvmtiFrameInfo *frames, jint n);
/*
 * The same for a virtual thread that is being unmounted: GetStackTrace knows which of its frames
 * are hidden.
 */
uint64_t stack_unmounting(void);

/*
 * Begins a wait of the calling thread (at how->start, or now when that is 0) and ends it. end
 * returns false when no wait had begun.
 */
void wait_begin(struct waiter *w, enum wait_kind kind, const struct wait *how);
bool wait_end(struct waiter *w, enum wait_kind kind, struct wait *ret, uint64_t *ret_ns);
/*
 * Whether only the times of a wait that begins are kept, to stay within the budget, and whether a
 * wait that has ended is left out altogether, which is counted as a loss.
 */
bool wait_is_plain(const struct waiter *w);
bool wait_left_out(const struct wait *was, uint64_t ns);
/* A wake-up of the calling thread is left out to stay within the budget, which is counted. */
void threads_interaction_left_out(void);
/*
 * The calling thread's waits where to time a park would cost more than it may: a platform thread
 * whose last wait was short. Long ones are found by a clock that is cheap and coarse. NULL: it is
 * timed as others are.
 */
struct waiter *waiter_untimed(JNIEnv *jni);
/* Counts one more as lost, in portions; not between threads_natives_enter and
 * threads_natives_leave. */
void waiter_leaves_out(uint32_t *count, enum jfr_loss loss);

/*
 * jvmscope.Notify, .StartCall, .InterruptCall, .Unpark: actions of the calling thread on other
 * threads.
 */
void threads_put_interaction(enum threads_type type, struct waiter *w, uint64_t trace,
                             uint64_t class, uint32_t object, uint64_t target, bool all);

/*
 * Begins the event of a wait with the fields that all of them have: time, duration, thread, stack
 * and class. False when there is no room.
 */
bool wait_event_begin(struct jfr_event *e, uint32_t type, uint64_t thread, const struct wait *was,
                      uint64_t ns);
/* monitors.c: jdk.JavaMonitorEnter of the calling thread, a wait of ns. */
void threads_put_monitor_enter(uint64_t thread, const struct wait *how, uint64_t ns);

/* natives.c, io.c: the same for sleeps, parks, and the reads that threads_put_wait handles. */
void threads_put_sleep(uint64_t thread, const struct wait *was, uint64_t ns);
void threads_put_park(uint64_t thread, const struct wait *was, uint64_t ns, bool absolute,
                      jlong time);
void threads_put_io_wait(uint64_t thread, const struct wait *was, uint64_t ns);
/* mounts.c: jvmscope.VirtualThreadUnmounted. */
void threads_put_unmounted(uint64_t thread, const struct wait *was, uint64_t ns);
/*
 * Shortens a wait of the calling thread by the time in which it only lacked a carrier, for which
 * jvmscope.VirtualThreadReady is written. timed_out: the wait ended when its time was over.
 */
void mounts_late(struct waiter *w, const struct wait *was, bool timed_out, uint64_t *ns);
/* Since when a thread that is unmounted has been ready; 0: it is not, or not for long. */
uint64_t mounts_ready_since(const struct waiter *w);
void mounts_fields(JNIEnv *jni);

/*
 * owner.c: the owner of the monitor that the calling thread is about to wait for, as an id in the
 * recording; 0: unknown.
 */
void owner_init(JNIEnv *jni);
/* The VM's own structure of the calling thread; 0: unknown. */
uint64_t owner_vm_thread(JNIEnv *jni);
/*
 * The owner of a synchronizer; *ret_owned says whether it is of a kind that has an owner. 0: none,
 * or unknown.
 */
uint64_t owner_of_synchronizer(JNIEnv *jni, jobject synchronizer, bool *ret_owned);
uint64_t owner_of_pending(JNIEnv *jni, jobject monitor, uint64_t *ret_monitor);
/*
 * The owner of a VM monitor, given the monitor's address, which may no longer be valid. False when
 * it cannot be determined: the owner is then assumed to be the same as when the thread began to
 * wait.
 */
bool owner_of_monitor(uint64_t monitor, uint64_t *ret_id);

/*
 * at_start.c: records waits that are in progress when the capture begins, at `since`. Called once
 * natives are bound and events are enabled.
 */
void at_start_record(JNIEnv *jni, uint64_t since);
/*
 * The calling thread has its first event of this capture: the wait that it was in has ended, at
 * `ready`, or now when that is 0.
 */
void at_start_contact(uint64_t id, uint64_t ready);
/* Called before that, in MonitorWaited: whether the wait ended by its timeout. */
void at_start_timed_out(bool timed_out);
void at_start_flush(JNIEnv *jni);
/* Writes jvmscope.Waiting again for those of them that go on. */
void at_start_keep_stacks(void);
void at_start_restate(void);
void at_start_release(void);
/* Whether a thread has posted an event of its own in this capture. */
bool waiter_has_come(uint64_t id);

/* The event of a wait that has ended, of a thread given by its id in the recording. */
void threads_put_wait(uint64_t thread, enum wait_kind kind, const struct wait *was, uint64_t ns,
                      bool timed_out);
/* waiting.c: jvmscope.Waiting, of a wait in progress. False when there is no room. */
bool threads_put_waiting(uint64_t thread, enum wait_kind kind, const struct wait *how);
/*
 * waiting.c: writes jvmscope.Waiting for all waits that began before a time and have not been
 * reported yet.
 */
void waiting_init(struct jfr_writer *jfr);
void waiting_report_all(uint64_t before);
/* waiting.c: the same for all waits, whether they were reported or not, up to a limit. */
void waiting_report_again(void);
/* See keep_stacks in capture.h; of one wait, and of all that go on. */
void wait_keep_stack(struct wait *at);
void waiting_keep_stacks(void);

/*
 * threads/deadlocks.c, deadlock=y. owned says whether an object is a synchronizer that has an
 * owner.
 */
int deadlock_watch_load(struct session *s, struct buf *why) must_check;
/* always: it searches rarely, so that it may run for months. */
int deadlock_watch_start(JNIEnv *jni, bool always, struct buf *why) must_check;
/* In a recording of threads that goes on. */
int deadlock_watch_begin(JNIEnv *jni, struct buf *why) must_check;
void deadlock_watch_status(struct buf *out);
void deadlock_watch_stop(JNIEnv *jni);
bool deadlock_watch_owned(JNIEnv *jni, jobject blocker);
uint64_t deadlock_watch_found(void);

/* mounts.c: when virtual threads are unmounted. on returns whether the VM has these events. */
bool mounts_on(void);
void mounts_off(void);

/*
 * io.c. start must be called before natives_bind, which calls bind where natives of the boot loader
 * may be bound. bind returns how many natives of loaded classes are bound to ours now, or were
 * restored.
 */
void io_start(JNIEnv *jni);
/* Whether a native method of this class ("sun/nio/ch/Net") waits for files or sockets. */
bool io_waits_in(const char *class_name, const char *name);
int io_bind(JNIEnv *jni, bool ours);
void io_stop(void);
/* waiter_self for use in a native method, which a virtual thread may call. */
struct waiter *native_self(JNIEnv *jni);

/*
 * jvmscope.Unpark: the calling thread unparks another one, in a call that lasts from since to
 * until; since 0: in the next call. If it were written too early, it would be attributed to a park
 * that has not ended yet, and the next park would have no cause.
 */
void threads_put_unpark(JNIEnv *jni, struct waiter *w, jobject thread, uint64_t since,
                        uint64_t until);

/* unpark.c: unparks of virtual threads (JDK 21 and later). */
int unparks_on(JNIEnv *jni, struct buf *why) must_check;
void unparks_off(JNIEnv *jni);

/*
 * locks.c, locks=: who holds the monitors of some classes, exactly. wait and waited mark where
 * wait() releases a monitor and acquires it again.
 */
int locks_on(const char *patterns, JNIEnv *jni, struct buf *why) must_check;
void locks_off(JNIEnv *jni);
void locks_wait(struct waiter *w, uint64_t class, uint32_t object, uint64_t now);
void locks_waited(struct waiter *w, uint64_t class, uint32_t object, uint64_t now);
/*
 * The class as a constant if it is recorded, else 0. The calling thread has acquired the monitor,
 * or released it.
 */
uint64_t locks_class(JNIEnv *jni, jclass class);
/*
 * The calling thread is about to enter a monitor. The second returns when that was; 0: unknown, or
 * long ago.
 */
void locks_arriving(struct waiter *w, uint32_t object, uint64_t now);
uint64_t locks_arrived(const struct waiter *w, uint32_t object);
void locks_entered(struct waiter *w, uint64_t class, uint32_t object, uint64_t trace, uint64_t now);
void locks_left(struct waiter *w, uint32_t object, uint64_t now);
/* locks_jni.c */
int locks_jni_on(struct buf *why) must_check;
void locks_jni_off(void);
uint64_t locks_count(void);
uint64_t locks_lost(void);

/*
 * wake_cost.c: the time in ns that a thread spends on waking another one; measured by the call,
 * which takes 2 ms. 0: unknown.
 */
uint64_t wake_cost(void);

/*
 * delays.c: the calling thread, a platform thread, is new, resumes running after a wait of ns,
 * begins to wait, or ends.
 */
void delays_new_thread(struct waiter *w);
void delays_run_begins(struct waiter *w, uint64_t now, uint64_t waited);
void delays_run_ends(struct waiter *w, uint64_t thread, uint64_t now);
/*
 * The calling thread waits from now on, or has done so; w is it or a virtual thread that runs on
 * it.
 */
void delays_wait_begins(struct waiter *w, uint64_t now);
void delays_wait_ends(struct waiter *w, uint64_t now, uint64_t waited);
/* The calling thread, a carrier, has run the thread `was`, which may be itself, and runs another.
 */
void delays_mount(struct waiter *of_carrier, uint64_t was, uint64_t now);

/*
 * natives.c. bind returns the number of natives that are bound to ours now; unbind restores them.
 */
int natives_bind(JNIEnv *jni, bool instrument, struct buf *why) must_check;
void natives_unbind(JNIEnv *jni);
/*
 * Who called start() for the thread with this Java id, and from where; false when that is not
 * known. Answers once for each thread.
 */
bool natives_started_by(uint64_t started, uint64_t *ret_by, uint64_t *ret_trace);

extern const struct vm_callbacks thread_monitor_events;
extern const struct capture capture_threads;
