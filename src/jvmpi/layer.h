/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JVMPI over JVM TI. What the files of the layer share. Rules:
 *
 * - Object ids are small counters, never reused: the tags of the layer's own JVM TI environment, but for the newest objects.
 * - An event is sent on the thread that caused it; FREE, CLASS_UNLOAD and GC events by one thread of the layer's (memory.c).
 * - The layer holds no lock of its own while the agent is inside NotifyEvent.
 */
#pragma once

#include "agent/vm.h"
#include "jvmpi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

extern JVMPI_Interface jvmpi_interface;

struct layer {
    _Atomic uint64_t enabled; /* a bit an event */
    atomic_bool live;         /* VMInit's replay has begun */
    atomic_bool down;         /* JVM_SHUT_DOWN was sent */
};

extern struct layer layer;

/* Above 0 while the layer itself calls Java on this thread: what that allocates and enters is not told of. */
extern __thread int quiet;
extern __thread int telling; /* above 0 within NotifyEvent */

static inline bool event_enabled(jint type)
{
    return atomic_load_explicit(&layer.enabled, memory_order_relaxed) >> type & 1;
}

/* Sends an event; env_id is filled in. Drops it when there is no agent, or after the shutdown. */
void notify(JNIEnv *env, JVMPI_Event *event);

/*
 * Locks under which the VM is called. A thread that the agent suspends may stop in such a call: it is not left suspended while
 * it holds one, for whoever wants it then would wait for ever.
 */
void layer_lock(pthread_mutex_t *mutex);
void layer_unlock(pthread_mutex_t *mutex);

/* ---- entry.c ---- */
jint enable_event(jint type, void *arg);
jint disable_event(jint type, void *arg);
jint request_event(jint type, void *arg);
/* JVM_SHUT_DOWN, and no event after it. */
void layer_end(JNIEnv *env);

/* ---- interface.c ---- */
extern __thread bool ending; /* this thread ends the VM */
#ifdef JVMPI_MUTANTS
bool mutant_event(jint type);
void mutate(void);
#else
static inline bool mutant_event(jint type)
{
    return false;
}

static inline void mutate(void)
{
}
#endif

/* ---- ids.c ---- */
/* The id of an object, given on first sight; NULL for null. Any thread that is attached. */
jobjectID id_of(jobject object);
/* The same, and *ret_new tells whether it was given now. */
jobjectID id_of_new(jobject object, bool *ret_new);
/* The same for an object that the calling thread has just been told of by SampledObjectAlloc. */
jobjectID id_of_allocated(JNIEnv *env, jobject object, bool *ret_new);
/* Around what names objects by walking the heap. */
void ids_sweep_begin(void);
void ids_sweep_end(void);
/* Reserves an id for a heap callback, which must not lock; or n that follow one another, of which it answers the first. */
jlong next_id(void);
jlong next_ids(jlong n);
jlong last_id_given(void);
/* Nobody else names objects meanwhile. */
void ids_lock(void);
void ids_unlock(void);
/* A local reference to the object, NULL: dead or unknown. */
jobject object_of(JNIEnv *env, jobjectID id);
/* Makes object_of quick for this one, until id_drop; the reference stays the caller's. */
void id_keep(jobjectID id, jweak ref);
void id_drop(jobjectID id);

/* ---- classes.c ---- */
void classes_replay(JNIEnv *env);
void send_class_load(JNIEnv *env, jclass class);
jint request_class_load(JNIEnv *env, jobjectID id);
/* True when the id was a class's; it is then forgotten. Sends CLASS_UNLOAD if that is enabled. */
bool class_freed(JNIEnv *env, jlong id);
/* How many classes were linked since the start: a clock for whoever needs them to stay as they are. */
uint64_t classes_linked(void);
jobjectID get_method_class(jmethodID method);
extern const struct vm_callbacks class_load_events, class_hook_events, class_watch_events;

/* ---- threads.c ---- */
void threads_replay(JNIEnv *env);
jint request_thread_start(JNIEnv *env, jobjectID id);
/* The thread's object of an environment, as a local reference; NULL: no such thread. */
jthread thread_of(JNIEnv *self, JNIEnv *env);
JNIEnv *env_of(JNIEnv *self, jthread thread);
/* Tells of the calling thread, should the VM not have: the one that shuts it down. */
void threads_meet(JNIEnv *env);
/* Its start was told of and its end was not. A thread that attaches itself runs Java (its constructor) before. */
bool thread_known(JNIEnv *env);
void set_thread_local_storage(JNIEnv *env, void *value);
void *get_thread_local_storage(JNIEnv *env);
jint get_thread_status(JNIEnv *env);
jboolean thread_has_run(JNIEnv *env);
void suspend_thread(JNIEnv *env);
void resume_thread(JNIEnv *env);
void suspend_thread_list(jint n, JNIEnv **list, jint *results);
void resume_thread_list(jint n, JNIEnv **list, jint *results);
jint create_system_thread(char *name, jint priority, void (*f)(void *));
jobjectID get_thread_object(JNIEnv *env);
jlong get_current_thread_cpu_time(void);
void profiler_exit(jint code);
extern const struct vm_callbacks thread_events;

/* ---- monitors.c ---- */
JVMPI_RawMonitor raw_monitor_create(char *name);
void raw_monitor_enter(JVMPI_RawMonitor m);
void raw_monitor_exit(JVMPI_RawMonitor m);
void raw_monitor_wait(JVMPI_RawMonitor m, jlong ms);
void raw_monitor_notify_all(JVMPI_RawMonitor m);
void raw_monitor_destroy(JVMPI_RawMonitor m);
/* Appends their records of the monitor dump. */
void raw_monitors_put(struct buf *out);
extern const struct vm_callbacks contended_enter_events, contended_entered_events, wait_events, waited_events;

/* ---- memory.c ---- */
void memory_replay(JNIEnv *env);
int memory_start(JNIEnv *env);
void memory_stop(void);
jint request_object_alloc(JNIEnv *env, jobjectID id);
void disable_gc(void);
void enable_gc(void);
void run_gc(void);
jint enable_allocations(bool on);
/* Objects whose end is to be told of, if anybody wants to hear it. */
void memory_ended(const jlong *ids, size_t n);
/* An object that was just made: OBJECT_ALLOC, if it has not been told of. */
void allocation(JNIEnv *env, jobject object);
extern const struct vm_callbacks free_events, gc_events;

/* ---- monitor_dump.c ---- */
jint request_monitor_dump(JNIEnv *env);

/* ---- traces.c ---- */
void get_call_trace(JVMPI_CallTrace *trace, jint depth);

/* ---- heap_dump.c ---- */
jint request_heap_dump(JNIEnv *env, jint level);

/* ---- object_dump.c ---- */
jint request_object_dump(JNIEnv *env, jobjectID id);

/* ---- references.c ---- */
struct reference {
    jobject ref;
    jlong id;
    bool taken; /* for whoever lists them */
};

jint references_on(JNIEnv *env);
/* The global references that were made since GLOBALREF events came on, by id; to be freed. 0 when there are none. */
size_t references_list(struct reference **ret);
/* The layer's own references, of which no event tells. */
jweak layer_weak(JNIEnv *env, jobject object);
void layer_delete_weak(JNIEnv *env, jweak ref);

/* ---- methods.c ---- */
jint methods_enable(JNIEnv *env);
jint instructions_enable(JNIEnv *env);
extern const struct vm_callbacks compiled_load_events, compiled_unload_events;

/* ---- contended_exit.c, sleep.c, allocations.c ---- */
jint contended_exit_enable(JNIEnv *env);
jint sleep_enable(JNIEnv *env);
jint allocations_enable(JNIEnv *env);
