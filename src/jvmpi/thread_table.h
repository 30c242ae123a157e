/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of threads by their JNIEnv. It is read without a lock, so that thread-local storage
 * works in signal handlers. An entry is taken when a thread is first seen and reused after its end.
 */
#pragma once

#include "jvmpi/layer.h"
#include <sys/types.h>

/*
 * An agent's handler changes its table of threads under a lock. If the handler hangs, the table
 * counts as changed once the handler has acquired a raw monitor (TABLE_CHANGED).
 */
enum thread_table_state { TABLE_UNCHANGED, TABLE_CHANGING, TABLE_CHANGED };

struct thread_entry {
    _Atomic(JNIEnv *) env; /* NULL if the entry is free */
    struct thread_entry *_Atomic next;
    void *_Atomic local;
    jweak object;                           /* protected by `threads` */
    jobjectID id;                           /* id of the object */
    atomic_bool suspended;                  /* suspended by JVMPI */
    struct thread_entry *_Atomic suspender; /* the thread that suspended it, if it has an entry */
    atomic_bool locked;                     /* it holds a lock of the layer, or waits for one */
    atomic_bool reported;                   /* THREAD_START has reported it */
    atomic_bool ending;                     /* its handler of THREAD_END runs or has returned */
    /*
     * Odd while the thread reports something (layer_report_begin); each report has another number.
     */
    _Atomic unsigned reporting;
    atomic_bool asked;        /* a request has reported it to the agent */
    atomic_bool settling;     /* it is in layer_reports_settle */
    atomic_bool leaving;      /* it waits for the end of the VM */
    _Atomic uintptr_t awaits; /* what it waits for in flights.c, or 0 */
    /* Whether THREAD_START or THREAD_END is being sent: see thread_table_state. */
    _Atomic int agent_table;
    _Atomic pid_t tid;           /* of the kernel; 0 until the thread itself has used its entry */
    _Atomic(jobjectID) waits_on; /* in Object.wait, or NULL */
    bool was_suspended;
    jint status;                 /* at the last suspension */
    jlong cpu_ns, cpu_before_ns; /* at the last suspension and the one before; -1 if none */
};

/* The calling thread's entry, or NULL. */
extern __thread struct thread_entry *my_entry;

struct thread_entry *thread_find(JNIEnv *env);
/*
 * Returns true when the thread's THREAD_END was sent, or is being sent and has apparently been
 * handled. The calling thread has ended as soon as its own THREAD_END is being sent.
 */
bool thread_has_ended(struct thread_entry *t);
/*
 * Returns the entry of the environment env, which is created if necessary, or NULL when out of
 * memory. Stores in *ret_new whether it was created now.
 */
struct thread_entry *thread_enter(JNIEnv *self, JNIEnv *env, jthread object, bool *ret_new);
/* Frees the entry of env, the calling thread's environment. */
void thread_leave(JNIEnv *self, JNIEnv *env);
/* Makes the calling thread use this entry, or none (NULL), from now on. */
void thread_use(struct thread_entry *t);
/*
 * Returns the next entry, also one without an environment, or the first for NULL; NULL at the end.
 * *bucket is the function's own.
 */
struct thread_entry *thread_next(struct thread_entry *t, unsigned *bucket);
/*
 * Clears `suspended`, and wakes the thread if it waits for that before it takes a lock of the
 * layer.
 */
void thread_clear_suspended(struct thread_entry *t);
/* Returns whether JVMPI has suspended the thread of this environment. */
bool thread_is_suspended(JNIEnv *env);
void thread_table_lock(void);
void thread_table_unlock(void);
