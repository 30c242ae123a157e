/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control of the program's threads and classes (jvmscope control), only in a session with
 * allow-control=y: one table row for each verb. Verbs run on the VM's attach listener thread. Each
 * action is written as one jvmscope.Control event. The end of the session undoes what can be
 * undone: threads are resumed, breakpoints and verbose flags are removed. A class stays redefined.
 */
#pragma once

#include "agent/inspect/inspect.h"

#include <stdint.h>

/*
 * Carries out "suspend\tmain": a verb and its operands, separated by tabs. `out` receives a JSON
 * object with a sentence as "done" or, for `list`, with the halted threads and the breakpoints.
 * Returns 0, or a negative errno with a sentence in `why` (none for -ENOMEM).
 */
int control_execute(JNIEnv *jni, const char *text, struct buf *out, struct buf *why) must_check;

/* ---- internal to this folder ---- */

enum { CONTROL_OPERANDS = 4, HALTED_MAX = 64, BREAKPOINTS_MAX = 64 };

struct control_call {
    struct inspection *i;
    char *operands[CONTROL_OPERANDS];
    int count;
    struct buf *done; /* the sentence of the answer */
    jthread waits;    /* step: a thread that is running now and will stop */
};

/* A thread that is held by us. Under control_lock. */
struct halted {
    jthread thread; /* a global reference; NULL: unused entry */
    char *name;
    const char *why; /* "suspended", "breakpoint", "step" */
};

/* Acquire and release the lock of the halted threads, the breakpoints and the steps. */
void control_lock(void);
void control_unlock(void);
/*
 * Adds a thread to the table, or changes why it is held if it is in the table. Returns its entry,
 * or NULL if there are too many, the session has ended, or memory runs out. `why` must be a
 * constant. Requires the lock.
 */
struct halted *halted_add(JNIEnv *jni, jthread t, const char *name, const char *why);
/* Returns the entry of a thread, or NULL when it is not held by us. Requires the lock. */
struct halted *halted_find(JNIEnv *jni, jthread t);

/* Writes a jvmscope.Control event. Requires the lock. */
void control_record(const char *thread, const char *command, const char *outcome);
/*
 * Writes `what` and the reason for the error to c->i->why. Returns -EBUSY for a suspended thread,
 * otherwise -ENOTSUP; 0, and writes nothing, if e is not an error.
 */
int control_error(struct control_call *c, const char *what, jvmtiError e) must_check;
/* Writes "pkg.Class.method:12" to `to`. */
void control_place(JNIEnv *jni, jmethodID m, jlocation at, char *to, size_t size);
/* Writes the place of a thread's top frame to `to`, as control_place does. */
void control_where(struct inspection *i, jthread t, char *to, size_t size);
/*
 * Returns whether a breakpoint or step must not stop the calling thread t, because t carries out a
 * verb or is one of the agent's.
 */
bool control_is_ours(JNIEnv *jni, jthread t);

/*
 * Carry out the verb that the function is named after, with c->operands. Write the answer's
 * sentence to c->done. Return 0, or a negative errno with a sentence in c->i->why.
 */
int control_suspend(struct control_call *c);
int control_resume(struct control_call *c);
int control_interrupt(struct control_call *c);
int control_stop_thread(struct control_call *c);
int control_pop(struct control_call *c);
int control_return(struct control_call *c);
int control_set(struct control_call *c);
int control_break(struct control_call *c);
int control_clear(struct control_call *c);
int control_step(struct control_call *c);
int control_redefine(struct control_call *c);
int control_verbose(struct control_call *c);

/*
 * Returns the thread that an operand names if we hold it and it is really suspended; otherwise
 * NULL, with a sentence in c->i->why.
 */
jthread control_halted_thread(struct control_call *c, const char *operand);
/*
 * Resumes a thread and removes it from the table, even if the VM refuses to resume it. Requires the
 * lock; with it, waits up to a second for a thread that is about to suspend itself. Returns the
 * error of ResumeThread.
 */
jvmtiError control_release(struct inspection *i, struct halted *h);

/* The callbacks of breakpoints and steps. */
extern const jvmtiEventCallbacks control_stop_events;
/* Writes the breakpoints as a member of the object of the answer to `list`. */
void control_put_breakpoints(struct inspection *i);
/* Ends the step in progress and removes all breakpoints. */
void control_stops_end(jvmtiEnv *ti, JNIEnv *jni);
/* Switches off the verbose flags that control_verbose has switched on. */
void control_verbose_end(jvmtiEnv *ti);
