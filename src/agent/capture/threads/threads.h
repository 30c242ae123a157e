/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads=y: who waits for whom (TPTP thread profiling, "Extension for TPTP (Profiler) events
 * set"). threads.c is the capture: threads themselves, and the waits that go on; monitors.c has JVM
 * TI's monitor events, natives.c the native methods that are bound to ours, owner.c the owner of a
 * contended monitor. What JFR has goes as jdk.*, the rest as jvmscope.* (doc/format.md).
 *
 * A wait is written when it ends, as one event with a duration; one that goes on at a flush is
 * written as jvmscope.Waiting. No stack is walked at entered and waited, where the thread holds the
 * monitor: the stack is that of the beginning.
 */
#pragma once

#include "agent/session.h"
#include "agent/thread_table.h"
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

/* A wait that goes on. Written by its thread alone; start is set last and cleared first. */
struct wait {
    _Atomic uint64_t start; /* ns; 0: none */
    uint64_t trace, class, owner;
    int64_t timeout;  /* ms of a wait or sleep, ns of a park */
    uint64_t monitor; /* the VM's of a contended enter; 0: not known */
    uint32_t object;  /* identity hash */
    bool owned;       /* parked on a synchronizer that a thread can own */
    bool told;        /* as jvmscope.Waiting */
};

/* delays.c: how a platform thread runs. */
struct running {
    uint64_t since;         /* ns: it runs without a wait; 0: it does not, or that is not known */
    uint64_t read;          /* ns: when the following were read */
    uint64_t delay;         /* ns, counted: as Linux has it */
    uint64_t cpu, switches; /* otherwise */
    uint64_t waited;        /* ns of waits that ended since */
    uint32_t slept;         /* of these, how many surely gave up the processor */
    uint32_t watched;       /* so many readings are of what Linux counts */
    bool counted;           /* the last one was */
};

struct waiter {
    uint64_t id; /* the thread's in the recording */
    /* highest address of the thread's stack seen so far; 0 for virtual threads */
    uint64_t stack;
    /* deadlock=y: where the stack of a platform thread lies; 0: not asked yet */
    uint64_t low, high;
    jweak thread;       /* deadlock=y: a virtual thread */
    atomic_bool come;   /* a virtual thread has had an event of its own */
    struct running run; /* of a platform thread */
    uint64_t entered;   /* ns: when the last contended monitor was had */
    /* locks=, ns: when the thread came to the monitor of arrived_object; 0: it has it */
    uint64_t arrived;
    uint32_t arrived_object;
    struct held_locks *locks; /* locks=: what it holds; NULL until the first */
    struct last_stacks *last; /* stack.c; NULL until the first */
    /* natives.c: of what it parked on last, whose identity hash is blocker */
    uint64_t blocker_class;
    uint32_t blocker;
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
    bool watch;       /* deadlock=y: what only that needs is kept too */
    jfieldID tid, park_blocker;
    atomic_uint_fast64_t lost; /* waits of which only an end was seen, or no room for a thread */
};

extern struct thread_capture thread_capture;
extern const struct jfr_type thread_types[TYPES];

/*
 * The calling thread's waits; NULL for the agent's own threads, and when the capture is off.
 * thread: it, or NULL.
 */
struct waiter *waiter_self(JNIEnv *jni, jthread thread);

/* Where the stack of a platform thread begins, as far as seen; 0: not seen. */
uint64_t waiter_stack(const struct thread *t);
/* True when that is known to be an address of the thread's stack (deadlock=y). */
bool waiter_stack_has(const struct thread *t, uint64_t address);

/*
 * Calls f for each thread that has waited. thread is a local reference to a virtual one, NULL for
 * platform threads and without deadlock=y; for virtual threads a lock is held.
 */
void waiters_visit(JNIEnv *jni, void (*f)(struct waiter *w, jthread thread, void *arg), void *arg);

/*
 * Around everything that natives of ours do for the capture, but not around what they wait for:
 * false when the capture is off. JVM TI's callbacks are counted by vm.c.
 */
bool natives_enter(void);
void natives_leave(void);

/* The id in the recording of a thread that lives, by its Java id; 0 when none is known. */
uint64_t thread_record_id(uint64_t java_id);
/* The id of a platform thread, or of the virtual thread that it carries now. */
uint64_t thread_running_on(const struct thread *t);
/* The calling thread, a carrier, carries that virtual thread from now on; 0: none. */
void thread_carries(JNIEnv *jni, uint64_t id);
/* Any carrier carries `now`, if it was known to carry `was`; 0: none. */
void thread_carried(const struct thread *carrier, uint64_t was, uint64_t now);
/* The same of any thread; a virtual one is made known. */
uint64_t thread_record(JNIEnv *jni, jthread thread);
/* jvmscope.ThreadObject of a virtual thread that was there before the capture. */
void put_thread_there(JNIEnv *jni, uint64_t id, jthread thread, uint64_t since);

/* objects.c */
uint32_t object_identity(jobject o);
/* The class of an object as a constant of the recording; 0 for NULL. */
uint64_t object_class(JNIEnv *jni, jobject o);
/* A class as a constant. */
uint64_t class_record(JNIEnv *jni, jclass c);
/* Its name, "java.lang.Object"; "?" when it is not known. */
void object_class_name(uint64_t class, char *to, size_t size);
void objects_release(void);
/*
 * stack.c: the calling thread's stack as a constant. init is before the first one; flush is called
 * ten times a second.
 */
void stack_init(JNIEnv *jni);
void stack_flush(void);
uint64_t stack_here(JNIEnv *jni, struct waiter *w);
/* A stack of another thread that JVM TI has read, as a constant. */
uint64_t stack_of_frames(const jvmtiFrameInfo *frames, jint n);
/*
 * The same of a virtual thread that leaves its carrier: GetStackTrace knows which of its frames are
 * not shown.
 */
uint64_t stack_unmounting(void);

/*
 * Begins (at how->start, or now when that is 0) and ends a wait of the calling thread; end answers
 * false when none had begun.
 */
void wait_begin(struct waiter *w, enum wait_kind kind, const struct wait *how);
bool wait_end(struct waiter *w, enum wait_kind kind, struct wait *ret, uint64_t *ret_ns);

/* jvmscope.Notify, .StartCall, .InterruptCall, .Unpark: what the calling thread does to others. */
void put_interaction(enum threads_type type, struct waiter *w, uint64_t trace, uint64_t class,
                     uint32_t object, uint64_t target, bool all);

/*
 * Begins the event of a wait with what all of them have: when, how long, who, where and the class.
 * False without room.
 */
bool wait_event_begin(struct jfr_event *e, uint32_t type, uint64_t thread, const struct wait *was,
                      uint64_t ns);
/* monitors.c: jdk.JavaMonitorEnter of the calling thread, a wait of so many ns. */
void put_monitor_enter(uint64_t thread, const struct wait *how, uint64_t ns);

/* natives.c, io.c: the same of sleeps, parks, and of what put_wait knows of reads. */
void put_sleep(uint64_t thread, const struct wait *was, uint64_t ns);
void put_park(uint64_t thread, const struct wait *was, uint64_t ns, bool absolute, jlong time);
void put_io_wait(uint64_t thread, const struct wait *was, uint64_t ns);
/* mounts.c: jvmscope.VirtualThreadUnmounted. */
void put_unmounted(uint64_t thread, const struct wait *was, uint64_t ns);

/*
 * owner.c: who owns the monitor that the calling thread is about to wait for; its id in the
 * recording, 0: not known.
 */
void owner_init(JNIEnv *jni);
/* The VM's own structure of the calling thread; 0: not known. */
uint64_t owner_vm_thread(JNIEnv *jni);
/*
 * Who has a synchronizer that has an owner; *ret_owned tells whether it is such a one. 0: nobody,
 * or not known.
 */
uint64_t owner_of_synchronizer(JNIEnv *jni, jobject synchronizer, bool *ret_owned);
uint64_t owner_of_pending(JNIEnv *jni, jobject monitor, uint64_t *ret_monitor);
/*
 * Who owns a monitor of the VM's, by its address, which may be gone. False when that cannot be
 * said: the owner is what it was when the thread began to wait.
 */
bool owner_of_monitor(uint64_t monitor, uint64_t *ret_id);

/*
 * at_start.c: waits that go on when the capture begins, at `since`. Once natives are bound and
 * events are on.
 */
void at_start_look(JNIEnv *jni, uint64_t since);
/* The calling thread has its first event of this capture: what it waited for before has ended. */
void at_start_contact(uint64_t id);
/* Before that, in MonitorWaited: whether it ended by its timeout. */
void at_start_timed_out(bool timed_out);
void at_start_flush(JNIEnv *jni);
void at_start_release(void);
/* Whether a thread has had an event of its own in this capture. */
bool waiter_has_come(uint64_t id);

/* The event of a wait that has ended, of a thread by its id in the recording. */
void put_wait(uint64_t thread, enum wait_kind kind, const struct wait *was, uint64_t ns,
              bool timed_out);
/* waiting.c: jvmscope.Waiting, of a wait that goes on. False when there is no room. */
bool put_waiting(uint64_t thread, enum wait_kind kind, const struct wait *how);
/*
 * waiting.c: writes jvmscope.Waiting of all waits that began before a time and were not told yet.
 */
void waiting_init(struct jfr_writer *jfr);
void tell_all_waiting(uint64_t before);

/*
 * threads/deadlocks.c, deadlock=y. owned tells whether an object is a synchronizer that has an
 * owner.
 */
int watch_load(struct session *s, struct buf *why) must_check;
int watch_start(JNIEnv *jni, struct buf *why) must_check;
void watch_stop(JNIEnv *jni);
bool watch_owned(JNIEnv *jni, jobject blocker);
uint64_t watch_found(void);

/*
 * mounts.c: when virtual threads leave their carriers. on answers whether the VM has these events.
 */
bool mounts_on(void);
void mounts_off(void);

/*
 * io.c. start is before natives_bind, which calls bind where natives of the boot loader may be
 * bound: it answers how many natives of loaded classes are ours now, or were given back.
 */
void io_start(JNIEnv *jni);
/* Whether a native method of this class ("sun/nio/ch/Net") waits for files or sockets. */
bool io_waits_in(const char *class_name, const char *name);
int io_bind(JNIEnv *jni, bool ours);
void io_stop(void);
/* waiter_self in a native method, which may be called by a virtual thread. */
struct waiter *native_self(JNIEnv *jni);

/*
 * jvmscope.Unpark: the calling thread unparks another one, in a call that lasts from since to
 * until; since 0: in one that comes next. Told too early it would count for a park that has not
 * ended yet, and the next one have no cause.
 */
void put_unpark(JNIEnv *jni, struct waiter *w, jobject thread, uint64_t since, uint64_t until);

/* unpark.c: unparks of virtual threads (21 on). */
int unparks_on(JNIEnv *jni, struct buf *why) must_check;
void unparks_off(JNIEnv *jni);

/*
 * locks.c, locks=: who holds the monitors of some classes, exactly. wait and waited are where
 * wait() lets a monitor go and has it again.
 */
int locks_on(const char *patterns, JNIEnv *jni, struct buf *why) must_check;
void locks_off(JNIEnv *jni);
void locks_wait(struct waiter *w, uint64_t class, uint32_t object, uint64_t now);
void locks_waited(struct waiter *w, uint64_t class, uint32_t object, uint64_t now);
/*
 * The class as a constant when it is asked for, else 0. The calling thread has a monitor, or has
 * let it go.
 */
uint64_t locks_class(JNIEnv *jni, jclass class);
/* The calling thread is about to enter a monitor; when that was, 0: not known, or long ago. */
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
 * wake_cost.c: what it takes a thread to wake another one, ns; measured now, in 2 ms. 0: not known.
 */
uint64_t wake_cost(void);

/*
 * delays.c: the calling thread, a platform thread, is new, runs from now on, after a wait of so
 * many ns, or waits or ends.
 */
void delays_new_thread(struct waiter *w);
void delays_run_begins(struct waiter *w, uint64_t now, uint64_t waited);
void delays_run_ends(struct waiter *w, uint64_t now);

/* natives.c. bind answers the number of natives that are ours now; unbind gives them back. */
int natives_bind(JNIEnv *jni, bool instrument, struct buf *why) must_check;
void natives_unbind(JNIEnv *jni);

extern const struct vm_callbacks thread_monitor_events;
extern const struct capture capture_threads;
