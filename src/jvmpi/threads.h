/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of threads, and the brackets around every report. */
#pragma once

#include "base/vec.h"
#include "jvmpi/layer.h"

/* Adds all existing threads to the table and reports them. */
void threads_replay(JNIEnv *env);

static inline void layer_report_end(struct my *own)
{
    if (--own->reports > 0)
        return;
    own->report += 2;
    if (likely(own->thread_reports))
        atomic_store_explicit(own->thread_reports, own->report, memory_order_release);
}

/*
 * Each event is sent between these calls. Where an event defines an id, they also enclose the
 * decision that this thread reports it, so that no id counts as reported whose event is left out at
 * the end. Returns false, and needs no layer_report_end, when the thread must report nothing any
 * more. own: the calling thread's, for this function and those below.
 */
static inline bool layer_report_begin(struct my *own)
{
    own->reports++;
    if (likely(own->thread_reports))
        atomic_store_explicit(own->thread_reports, own->report | 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    int stage = atomic_load_explicit(&layer.stage, memory_order_relaxed);
    if (likely(stage == STAGE_OPEN) || own->ending || own->asked ||
        (stage == STAGE_CLOSING && own->reports > 1))
        return true;
    layer_report_end(own);
    return false;
}

/*
 * Checks again a thread that was not seen before. Returns false when its events must be left out,
 * because its THREAD_END was sent, or because it is attaching itself and its Thread object is not
 * complete. Threads of the VM (compilers, for example), which JVM TI does not report, are reported
 * now.
 */
bool thread_check(JNIEnv *env);

static inline bool thread_ready(const struct my *own, JNIEnv *env)
{
    return likely(own->known_env == env) || thread_check(env);
}

/*
 * Handles the begin of the calling thread. Also called for a thread that JVM TI does not report in
 * time.
 */
void thread_begin(JNIEnv *env, jthread thread);
/*
 * Returns whether an event of JVM TI is one of a virtual thread, which has no JNIEnv and may change
 * its carrier between two events.
 */
bool layer_thread_is_virtual(JNIEnv *env, jthread thread);

struct reported_thread {
    JNIEnv *env;
    jobjectID id;
    jthread thread; /* a local reference; NULL when the object of one that JVM TI forgot is gone */
    bool hidden;    /* JVM TI does not list it */
};

typedef VEC(struct reported_thread) reported_thread_vec;

/*
 * Lists the threads whose start was reported to the agent and whose end was not; JVM TI leaves out
 * those of the VM's own, and those whose end it does not report, which are marked. Call it between
 * layer_known_freeze and layer_known_unfreeze; it waits for the starts and ends that are being
 * reported. *ret must be released also when -ENOMEM is returned.
 */
int threads_reported(JNIEnv *self, reported_thread_vec *ret) must_check;
void threads_release(JNIEnv *self, reported_thread_vec *list);

typedef VEC(jobject) object_vec;

/*
 * JVM TI's walks do not visit the VM's own threads, whose Thread objects may not be reachable from
 * anything else that they visit. Between these calls references of the layer make them reachable:
 * the objects of the hidden threads of a list, or of all threads (NULL). Returns false when out of
 * memory; threads_hide must be called anyway.
 */
bool threads_show(JNIEnv *self, const reported_thread_vec *list, object_vec *held) must_check;
void threads_hide(JNIEnv *self, object_vec *held);
/* Records on which object the calling thread waits in Object.wait; NULL: no longer on any. */
void thread_waits_on(JNIEnv *env, jobject object);
/* Records that the calling thread has taken a raw monitor. */
void thread_took_monitor(void);
/* Returns the object on which a thread waits in Object.wait, as far as that is known, or NULL. */
jobjectID thread_waited_object(JNIEnv *env);
/* Sends THREAD_START for the id of a thread's object for which layer_get_thread_object answers. */
jint layer_request_thread_start(JNIEnv *env, jobjectID id);
/*
 * Returns the thread object of an environment as a local reference, or NULL when there is no such
 * thread.
 */
jthread layer_thread_of(JNIEnv *self, JNIEnv *env);
JNIEnv *env_of(JNIEnv *self, jthread thread);
/*
 * Returns whether the thread's start was reported and its end was not. A thread that attaches
 * itself runs Java (its constructor) before.
 */
bool thread_known(JNIEnv *env);
void layer_set_thread_local_storage(JNIEnv *env, void *value);
void *layer_get_thread_local_storage(JNIEnv *env);
jint layer_get_thread_status(JNIEnv *env);
jboolean thread_has_run(JNIEnv *env);
void layer_suspend_thread(JNIEnv *env);
void layer_resume_thread(JNIEnv *env);
/* Resumes everything that JVMPI has suspended, because nobody else will do so after the end. */
void threads_resume_all(void);
/*
 * Called when the VM begins to end, on the thread that ends it. Since JDK 26 that thread then waits
 * for all callbacks, for a minute at most, and answers no other thread meanwhile, so no callback
 * may wait for a thread that requests something from it. Therefore the layer closes now. Suspended
 * threads are resumed, and none is suspended any more.
 */
void layer_vm_ends(JNIEnv *env);

/* Returns whether this VM waits for callbacks when it ends (layer_vm_ends). */
static inline bool layer_end_waits(void)
{
    return vm.version >= 26;
}

void layer_suspend_thread_list(jint n, JNIEnv **list, jint *results);
void layer_resume_thread_list(jint n, JNIEnv **list, jint *results);
jint layer_create_system_thread(char *name, jint priority, void (*f)(void *));
/*
 * Returns the id of a thread's object, or NULL when the thread has not begun or has ended: when it
 * is not in the agent's table. A thread that asks for itself in its THREAD_END has not ended.
 */
jobjectID layer_get_thread_object(JNIEnv *env);
jlong layer_get_current_thread_cpu_time(void);
void layer_profiler_exit(jint code);
/*
 * GetOwnedMonitorInfo, within which the calling thread is quiet (my.h). The caller deletes the
 * references and frees the array with vm_free.
 */
jvmtiError thread_owned_monitors(jthread thread, jint *ret_n, jobject **ret_owned);
extern const struct vm_callbacks thread_events;
