/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the VM. Every live Java thread has an entry, which is created by ThreadStart on
 * the thread itself or, when the agent attaches, by enumerating the threads. Entries are never
 * unmapped: a signal handler with a pointer to the entry of an ended thread sees a different
 * serial. Serial numbers are HPROF's thread serials and the recording's thread ids.
 */
#pragma once

#include "agent/vm/vm.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { THREAD_UNKNOWN = 200000, THREADS_MAX = 1 << 16 };

struct thread {
    _Atomic uint32_t serial; /* 0: free */
    _Atomic pid_t tid;       /* 0: unknown so far */
    JNIEnv *_Atomic env;     /* NULL: not a Java thread, or ended */
    uint64_t java_id;        /* Thread.getId(); 0 before the thread is initialized */
    char *name, *group, *parent_group;
    _Atomic uint64_t ended_ns; /* 0: alive */
    bool own;                  /* belongs to the agent */
    _Atomic bool counted; /* a capture keeps counts under its serial after the thread has ended */
};

/* Maps the table; once. Returns 0, or -ENOMEM. */
int threads_init(void) must_check;
extern const struct vm_callbacks threads_events; /* active from OnLoad or attach until the end */
/*
 * Declares that a thread about to be started is the agent's own, so that its entry says so from its
 * first event on. Several threads may be declared at a time. Returns 0, or -ENOMEM when the VM
 * gives no reference or too many are pending.
 */
int threads_own(JNIEnv *jni, jthread thread) must_check;
/* Undoes threads_own for a thread that was not started. */
void threads_disown(JNIEnv *jni, jthread thread);
/*
 * Declares that the calling thread, which is about to attach itself to the VM, is the agent's own.
 */
void threads_own_here(void);
/* Adds the threads that already exist (at attach, and in VMInit). */
void threads_add_existing(JNIEnv *jni);

/*
 * Returns the calling thread's entry, created if necessary; NULL when the table is full. Not in a
 * signal handler.
 */
struct thread *threads_self(JNIEnv *jni);

/*
 * Returns whether a kernel thread has been a Java thread, even if its entry was removed: the VM's
 * last thread continues for a while after that. threads_forget_tid is called when the kernel thread
 * has ended. Any thread.
 */
bool threads_had_tid(pid_t tid);
void threads_forget_tid(pid_t tid);
/* Returns the index of an entry in the table, below THREADS_MAX. */
uint32_t thread_index(const struct thread *t);
/* Returns a number above the indices of all entries that were ever used. Any thread. */
uint32_t threads_used(void);
/*
 * Returns the entry with this serial number, also of a thread that has ended; NULL when it was
 * removed.
 */
struct thread *threads_by_serial(uint32_t serial);
/* Returns the entry of a live thread with this Java id; NULL when it has none. */
struct thread *threads_by_java_id(uint64_t id);
/* Returns the entry of a live thread, found by its Java id; NULL when the thread has none. */
struct thread *threads_find(JNIEnv *jni, jthread thread);
/*
 * Searches live entries and returns the one with a JNIEnv; NULL when there is none.
 * Async-signal-safe.
 */
struct thread *threads_by_env(JNIEnv *env);
/* Iterates over live entries: for (struct thread *t = NULL; (t = threads_next(t));). */
struct thread *threads_next(struct thread *after);

/*
 * Called for a thread that starts or ends, on that thread, and for each thread that
 * threads_add_existing finds.
 */
struct thread_listener {
    void (*started)(struct thread *t, JNIEnv *jni, jthread thread);
    void (*ended)(struct thread *t, JNIEnv *jni);
};

/*
 * Adds a listener, which must remain valid until threads_unlisten. Returns 0, or -ENOSPC when eight
 * listeners exist.
 */
int threads_listen(const struct thread_listener *l) must_check;
/* Removes a listener and waits for callbacks in progress. Must not be called from a callback. */
void threads_unlisten(const struct thread_listener *l);
/*
 * Removes threads that ended before ns. First calls `last`, unless it is NULL, for each one that is
 * counted. Requires the session's lock.
 */
void threads_forget_before(uint64_t ns, void (*last)(void *context, const struct thread *t),
                           void *context);
