/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the VM. Every Java thread that lives has an entry, made by ThreadStart on the
 * thread itself, or by looking around when the agent comes late. Entries are never freed memory: a
 * signal handler that holds one of an ended thread sees another serial. Serial numbers are HPROF's
 * thread serials and the recording's thread ids.
 */
#pragma once

#include "agent/vm.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { THREAD_UNKNOWN = 200000, THREADS_MAX = 1 << 16 };

struct thread {
    _Atomic uint32_t serial; /* 0: free */
    _Atomic pid_t tid;       /* 0: not known yet */
    JNIEnv *_Atomic env;     /* NULL: not a Java thread, or ended */
    uint64_t java_id;        /* Thread.getId(); 0 before the thread is ready */
    char *name, *group, *parent_group;
    _Atomic uint64_t ended_ns; /* 0: lives */
    bool own;                  /* the agent's */
};

/* Maps the table; once. -ENOMEM. */
int threads_init(void) must_check;
extern const struct vm_callbacks threads_events; /* always on from OnLoad or attach */
/*
 * A thread that is about to be started is the agent's own: its entry says so from its first event
 * on. Several may be on their way. 0, or -ENOMEM when the VM gives no reference or too many are on
 * their way.
 */
int threads_own(JNIEnv *jni, jthread thread) must_check;
/* A thread given to threads_own was not started after all. */
void threads_disown(JNIEnv *jni, jthread thread);
/* The calling thread, which is about to attach itself to the VM, is the agent's own. */
void threads_own_here(void);
/* Enters the threads that are there already (attach, and VMInit). */
void threads_look_around(JNIEnv *jni);

/*
 * The calling thread's entry, made if need be; NULL when the table is full. Not in a signal
 * handler.
 */
struct thread *threads_self(JNIEnv *jni);

/*
 * Whether the kernel's thread has been a Java thread's, though its entry may be gone: the VM's last
 * thread goes on for a while as none. Forgotten when the kernel's thread has ended. Any thread.
 */
bool threads_had_tid(pid_t tid);
void threads_forget_tid(pid_t tid);
/* An entry's place in the table, below THREADS_MAX. */
uint32_t thread_index(const struct thread *t);
struct thread *threads_by_serial(uint32_t serial);
/* The entry of any live thread; NULL when it has none. */
struct thread *threads_find(JNIEnv *jni, jthread thread);
/* Async-signal-safe; a scan of live entries. NULL when there is none. */
struct thread *threads_by_env(JNIEnv *env);
/* Visits live entries: for (struct thread *t = NULL; (t = threads_next(t));). */
struct thread *threads_next(struct thread *after);

/*
 * Called for a thread that starts or ends, on that thread, and for each that is there at
 * threads_look_around.
 */
struct thread_listener {
    void (*started)(struct thread *t, JNIEnv *jni, jthread thread);
    void (*ended)(struct thread *t, JNIEnv *jni);
};

int threads_listen(const struct thread_listener *l) must_check; /* -ENOSPC beyond eight */
/* waits for those inside; not in a callback */
void threads_unlisten(const struct thread_listener *l);
/* Forgets threads that ended before ns. Under the session's lock. */
void threads_forget_before(uint64_t ns);
