/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JVMPI on top of JVM TI: declarations shared by the files of the layer. Rules:
 *
 * - Object ids are small counters that are never reused. They are the tags of the layer's own JVM
 *   TI environment, except for the newest objects.
 * - When the defining events are enabled, an id is reported once, before any event names it
 *   (section 1.4). report_object, report_class and thread_begin provide ids for events; id_of
 *   provides them for answers and sends nothing.
 * - An event is sent on the thread that caused it. FREE, CLASS_UNLOAD and GC events are sent by one
 *   thread of the layer (memory.c).
 * - The layer holds no lock of its own while the agent is inside NotifyEvent.
 */
#pragma once

#include "agent/vm/vm.h"
#include "base/vec.h"
#include "jvmpi.h"
#include "jvmpi/flights.h"
#include "jvmpi/my.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

extern JVMPI_Interface jvmpi_interface;

enum {
    STAGE_OPEN,
    /* JVM_SHUT_DOWN comes next; other threads finish what they report and begin nothing new. */
    STAGE_CLOSING,
    /* Events of other threads are left out, except those that the agent requests. */
    STAGE_CLOSED,
};

/* An object that a heap walk has seen or given an id. */
struct found {
    jlong id, class_id, size;
};

typedef VEC(struct found) found_vec;
int found_compare(const void *left, const void *right); /* by id, for qsort and bsearch */

/* What a dump names, sorted by id. */
struct dumped {
    found_vec objects;
};

struct layer {
    _Atomic uint64_t enabled; /* one bit for each event */
    atomic_bool live;         /* VMInit's replay has begun */
    /* The replay is in progress; events of other threads are left out. */
    atomic_bool replaying;
    atomic_int stage; /* STAGE_OPEN ... */
    atomic_bool down; /* JVM_SHUT_DOWN was sent */
};

extern struct layer layer;

static inline bool event_enabled(jint type)
{
    return atomic_load_explicit(&layer.enabled, memory_order_relaxed) >> type & 1;
}

/*
 * Sends an event after setting its env_id. Drops it when there is no agent, after the shutdown, or
 * when the agent does not know the thread.
 */
void layer_notify(JNIEnv *env, JVMPI_Event *event);
/* Like layer_notify. own: the calling thread's. */
void layer_notify_as(struct my *own, JNIEnv *env, JVMPI_Event *event);

/*
 * Like layer_notify, for an event that names an object by its id. While the handler runs, the
 * thread finds the object by its id even where JVM TI's walks do not reach it: they leave out the
 * references that native code holds for a thread whose latest Java frame is no native method, and
 * the arguments of native methods.
 */
void layer_notify_naming(JNIEnv *env, JVMPI_Event *event, jobjectID id, jobject object);
/* own: the calling thread's. */
void layer_notify_naming_as(struct my *own, JNIEnv *env, JVMPI_Event *event, jobjectID id,
                            jobject object);
/* Returns the object with this id that an event in progress on this thread names, or NULL. */
jobject layer_named(jobjectID id);

/*
 * For locks that are held while the VM is called. A thread that the agent suspends may stop in such
 * a call. It is not left suspended while it holds such a lock, because other threads would then
 * wait for the lock forever.
 */
void layer_lock(pthread_mutex_t *mutex);
void layer_unlock(pthread_mutex_t *mutex);

/* ---- entry.c ---- */
jint enable_event(jint type, void *arg);
jint disable_event(jint type, void *arg);
jint request_event(jint type, void *arg);
/* Sends JVM_SHUT_DOWN; no event follows it. */
void layer_end(JNIEnv *env);
/* The handler of JVM_SHUT_DOWN wants the VM to exit with this status. */
void layer_exit_with(jint code);

/* ---- interface.c ---- */
/* Does not return after JVM_SHUT_DOWN, where the table's functions must not; see there. */
void layer_hold(void);
#ifdef JVMPI_MUTANTS
bool mutation_of_event(jint type);
void mutate(void);
/*
 * Return true when the mutation of this name is requested (see interface.c); the second only each
 * eighth time.
 */
bool mutation(const char *name);
bool mutation_eighth(const char *name);
#else
static inline bool mutation(const char *name)
{
    return false;
}

static inline bool mutation_eighth(const char *name)
{
    return false;
}

static inline bool mutation_of_event(jint type)
{
    return false;
}

static inline void mutate(void)
{
}
#endif

/* ---- ids.c ---- */
/*
 * Returns the id of an object, which gets one if it has none, or NULL for null. For any attached
 * thread. Sends nothing; for answers.
 */
jobjectID id_of(jobject object);
/* Returns the tag of an object that has one, or NULL. For events that are not sent any more. */
jobjectID id_given(jobject object);
/* Makes the id its object's tag, which those of the newest objects are not yet. */
void id_tag(jobjectID id);
/*
 * Like id_of, for events. *ret_unreported: OBJECT_ALLOC has not reported the object, so the caller
 * must do so and then end the flight. unshared: the caller has just created the object and no other
 * thread can name it; otherwise the function waits while another thread reports it.
 */
jobjectID id_to_report(jobject object, bool unshared, struct flight *f, bool *ret_unreported);
/*
 * Like id_to_report, for an object that SampledObjectAlloc has just reported to the calling thread,
 * whose `own` is.
 */
jobjectID id_of_allocated(struct my *own, JNIEnv *env, jobject object, struct flight *f,
                          bool *ret_unreported);
/* Gives an id to an object that no other thread knows. Returns 0 when the VM refuses. */
jlong id_give(jobject object);
/*
 * Returns true when OBJECT_ALLOC is enabled and has not reported the id. The caller must then
 * report it, or treat it as never reported, and end the flight.
 */
bool id_claim(jlong id, struct flight *f);
/* Returns all ids still to be reported, in an array that the caller frees. */
size_t ids_unreported(jlong **ret);
/* Enclose operations that give ids to objects by walking the heap. */
void ids_sweep_begin(void);
void ids_sweep_end(void);
/*
 * Enclose the walk itself. Meanwhile no other thread gives ids to objects, and this thread must not
 * use the functions above. What the walk has found must be reported afterwards.
 */
void ids_walk_begin(void);
/*
 * For the walk's callback, in which the lock is held: true when the object must be among what the
 * walk has found although it has an id, because the id was only an answer so far. The object may
 * end right after the walk.
 */
bool ids_walk_unreported(jlong id);
void ids_walk_end(const found_vec *found);
/*
 * Reserve an id for a heap callback, which must not lock, or n consecutive ids, of which the first
 * is returned.
 */
jlong next_id(void);
jlong next_ids(jlong n);
jlong last_id_given(void);
void ids_lock(void);
void ids_unlock(void);

/* ---- lookup.c ---- */
/* Returns a local reference to the object, or NULL when it is dead or unknown. */
jobject object_of(JNIEnv *env, jobjectID id);
/* Makes object_of fast for this object until id_drop. The reference remains the caller's. */
void id_keep(jobjectID id, jweak ref);
void id_drop(jobjectID id);
/* The object now has this id as its tag. */
void lookup_add(JNIEnv *env, jlong id, jobject object);
/* The object is dead. */
void lookup_forget(JNIEnv *env, jlong id);

/* ---- sizes.c ---- */
/* Returns the size of an object, in bytes, given its class and its id. */
jlong object_size(JNIEnv *env, jobject object, jclass class, jobjectID id);
/* The object is dead. */
void object_size_forget(jlong id);

/* ---- boot_classes.c ---- */
/* Called at VMInit, before events. */
void boot_classes_find(JNIEnv *env);
/* Returns a local reference to one of these classes, or NULL before VMInit and for other names. */
jclass boot_class(JNIEnv *env, const char *name);

/* ---- objects.c ---- */
enum { LAYER_ARENA = 1 };

/*
 * Returns the id of an object that an event is about to name. Sends OBJECT_ALLOC first if it is
 * enabled and has not reported the object.
 */
jobjectID report_object(JNIEnv *env, jobject object);
/* Like report_object, for an object that the calling thread has just created. */
jobjectID report_new_object(JNIEnv *env, jobject object);
/* Determines what the instances of the class are, for report_found. */
void kind_learn(JNIEnv *env, jclass class);
/*
 * Sends OBJECT_ALLOC for what a walk has found, except for what other threads have reported
 * meanwhile.
 */
void report_found(JNIEnv *env, const found_vec *found);
/* Sends OBJECT_ALLOC for everything that has an id and was not reported yet. */
void report_unreported(JNIEnv *env);
/*
 * Visits all live objects, each once for every reference to it. Returns false when the VM or the
 * visitor fails. JVM TI's walk of the entire heap would also visit the fillers of gaps, whose tags
 * pass to the objects that are created there next.
 */
bool living_walk(int (*visit)(jlong class_id, jlong size, jlong *id, void *data),
                 void *data) must_check;
void memory_replay(JNIEnv *env);
/*
 * Answers for an object that has ended since the dump in progress on this thread named it, too.
 */
jint request_object_alloc(JNIEnv *env, jobjectID id);
/*
 * Sends a requested OBJECT_ALLOC, also while another thread is reporting the object, so that what
 * is requested about it does not come first.
 */
void request_in_flight(JNIEnv *env, jobjectID id);
jint enable_allocations(bool on);

/* ---- classes.c ---- */
void classes_replay(JNIEnv *env);
/*
 * Returns the id of a class that an event is about to name as a class. Sends OBJECT_ALLOC and
 * CLASS_LOAD first, as for objects. Returns NULL for null and for a class that is not linked, whose
 * class object is treated like any other object until then (see doc/jvmpi.md).
 */
jobjectID report_class(JNIEnv *env, jclass class);
/*
 * Keeps what CLASS_LOAD reports, so that it can be requested for as long as CLASS_UNLOAD is held
 * back, even when the VM unloads the class meanwhile.
 */
void class_remember(JNIEnv *env, jclass class);
/* Returns true when the class is linked, or is an array or primitive class. */
bool class_is_defined(jclass class);
/*
 * Links classes that are not linked although objects of them exist; the class data archive has
 * some. Returns true when one was linked. Calls Java.
 */
struct map;
bool classes_link(JNIEnv *env, const struct map *ids);
/* Like report_class, for the class of a method. */
void report_class_of(JNIEnv *env, jmethodID method);
/*
 * Returns a method's id as CLASS_LOAD reported it. Code that still runs from before its class was
 * changed, for example instrumented, has another id.
 */
jmethodID current_method(jmethodID method);
jint request_class_load(JNIEnv *env, jobjectID id);
/* Sends CLASS_LOAD for classes that were loaded while the calling thread's events were left out. */
void classes_owed(JNIEnv *env);
bool is_class(jlong id);
/*
 * Returns true when the id was that of a class, which is then forgotten. Sends CLASS_UNLOAD if that
 * is enabled.
 */
bool class_freed(JNIEnv *env, jlong id);
/*
 * Called before class_freed, and before the agent may take a lock for that: no event of the code of
 * the class's methods comes any more. Waits for those in progress.
 */
void class_code_forget(jlong id);
/*
 * Returns the number of classes linked so far. Callers compare it to detect that classes have
 * changed.
 */
uint64_t classes_linked(void);
jobjectID get_method_class(jmethodID method);
extern const struct vm_callbacks class_load_events, class_hook_events, class_watch_events;

/* ---- threads.c ---- */
/* Adds all existing threads to the table and reports them. */
void threads_replay(JNIEnv *env);

static inline void report_end(struct my *own)
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
 * the end. Returns false, and needs no report_end, when the thread must report nothing any more.
 * own: the calling thread's, for this function and those below.
 */
static inline bool report_begin(struct my *own)
{
    own->reports++;
    if (likely(own->thread_reports))
        atomic_store_explicit(own->thread_reports, own->report | 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    int stage = atomic_load_explicit(&layer.stage, memory_order_relaxed);
    if (likely(stage == STAGE_OPEN) || own->ending || own->asked ||
        (stage == STAGE_CLOSING && own->reports > 1))
        return true;
    report_end(own);
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
    return likely(own->thread_is_seen) || thread_check(env);
}

/* The calling thread begins. Also called for a thread that JVM TI does not report in time. */
void thread_begin(JNIEnv *env, jthread thread);
/*
 * True for JVM TI's events of a virtual thread, which has no JNIEnv and may change its carrier
 * between two events.
 */
bool thread_is_virtual(JNIEnv *env, jthread thread);

struct reported_thread {
    JNIEnv *env;
    jthread thread; /* a local reference; NULL when the object of one that JVM TI forgot is gone */
    bool hidden;    /* JVM TI does not list it */
};

typedef VEC(struct reported_thread) reported_thread_vec;

/*
 * Lists the threads whose start was reported to the agent and whose end was not; JVM TI leaves out
 * those of the VM's own, and those whose end it does not report, which are marked. Call it between
 * threads_freeze and threads_thaw; it waits for the starts and ends that are being reported. *ret
 * must be released also when -ENOMEM is returned.
 */
int threads_reported(JNIEnv *self, reported_thread_vec *ret) must_check;
void threads_release(JNIEnv *self, reported_thread_vec *list);

typedef VEC(jobject) object_vec;

/*
 * JVM TI's walks do not visit the VM's own threads, whose Thread objects may hang on nothing else
 * that they visit. Between these calls references of the layer make them do so: those of the hidden
 * ones of a list, or those of all threads (NULL). Returns false when out of memory; threads_hide
 * must be called anyway.
 */
bool threads_show(JNIEnv *self, const reported_thread_vec *list, object_vec *held) must_check;
void threads_hide(JNIEnv *self, object_vec *held);
/* The calling thread begins to wait in Object.wait, or has waited (NULL). */
void thread_waits_on(JNIEnv *env, jobject object);
/* The calling thread has taken a raw monitor. */
void thread_took_monitor(void);
/* Returns the object on which a thread waits in Object.wait, as far as that is known, or NULL. */
jobjectID thread_waited_object(JNIEnv *env);
jint request_thread_start(JNIEnv *env, jobjectID id);
/*
 * Returns the thread object of an environment as a local reference, or NULL when there is no such
 * thread.
 */
jthread thread_of(JNIEnv *self, JNIEnv *env);
JNIEnv *env_of(JNIEnv *self, jthread thread);
/*
 * True when the thread's start was reported and its end was not. A thread that attaches itself runs
 * Java (its constructor) before.
 */
bool thread_known(JNIEnv *env);
void set_thread_local_storage(JNIEnv *env, void *value);
void *get_thread_local_storage(JNIEnv *env);
jint get_thread_status(JNIEnv *env);
jboolean thread_has_run(JNIEnv *env);
void suspend_thread(JNIEnv *env);
void resume_thread(JNIEnv *env);
/* Resumes everything that JVMPI has suspended, because nobody else will do so after the end. */
void threads_resume_all(void);
/*
 * Called when the VM begins to end, before JVM_SHUT_DOWN. Since JDK 26 it waits for all callbacks
 * first, so suspended threads are resumed now, and none is suspended any more.
 */
void vm_ends(void);
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
/*
 * Returns true when the thread waits to enter a raw monitor that a thread owns. *ret_owner: its
 * environment, or NULL when it has none; *ret_mine: it is the calling thread.
 */
bool raw_monitor_wanted(const JNIEnv *env, JNIEnv **ret_owner, bool *ret_mine);
/*
 * Appends their records to the monitor dump. Of the threads it names those alone whose environments
 * are keys of `threads`.
 */
void raw_monitors_put(struct buf *out, const struct map *threads);
/*
 * Called at load. Since JDK 23 JVM TI does not say on which object a thread waits, so the layer
 * remembers it.
 */
int waits_watch(void) must_check;
extern const struct vm_callbacks contention_events, wait_events, waited_events;

/* ---- memory.c ---- */
/* Called at load. Returns -1 when the VM refuses. */
int memory_open(void);
/* Called for each class, so that the VM reports its end and CLASS_UNLOAD comes soon. */
void memory_watch_class(JNIEnv *env, jclass class, jobjectID id);
/*
 * Enclose calls of JVM TI that walk the heap or the layer's tags. These report freed tags on the
 * calling thread. No bracket begins meanwhile, because the queue may be incomplete.
 */
void memory_walk_begin(void);
void memory_walk_end(void);
/*
 * For a walk in an environment of its own, which some VMs inform about freed tags of the others and
 * then forget them. Returns -1 when the VM refuses.
 */
int memory_listen(jvmtiEnv *ti);
int memory_start(JNIEnv *env);
void memory_stop(void);
/*
 * DisableGC and EnableGC. Between these calls, which may be nested, no bracket of OBJECT_FREE and
 * CLASS_UNLOAD begins, and none goes on but where disable_gc may not wait for it.
 */
void disable_gc(void);
void enable_gc(void);
/* The same for requests of the layer, which do not make RunGC return at once on other threads. */
void brackets_hold(void);
void brackets_release(void);
void run_gc(void);
/* Queues objects whose end must be reported, if such events are enabled. */
void memory_ended(const jlong *ids, size_t n);
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
    bool taken; /* used by callers that list them */
};

jint references_on(JNIEnv *env);
/*
 * Returns in *ret, which the caller frees, the global references made since GLOBALREF events were
 * enabled, by id, and their number.
 */
size_t references_list(struct reference **ret);
/* Create and delete references of the layer itself, which no event reports. */
jweak layer_weak(JNIEnv *env, jobject object);
void layer_delete_weak(JNIEnv *env, jweak ref);
jobject layer_global(JNIEnv *env, jobject object);
void layer_delete_global(JNIEnv *env, jobject ref);

/* ---- methods.c ---- */
jint methods_enable(JNIEnv *env);
jint compiled_enable(JNIEnv *env);
/* The method's class was unloaded; the end of its code is not reported. */
void compiled_forget(jmethodID method);
jint instructions_enable(JNIEnv *env);
extern const struct vm_callbacks compiled_load_events, compiled_unload_events;

/* ---- contended_exit.c, sleep.c, allocations.c ---- */
jint contended_exit_enable(JNIEnv *env);
/* The calling thread begins to wait for the object's monitor, or has entered that. */
void contention_began(jobject object);
void contention_ended(void);
jint sleep_enable(JNIEnv *env);
jint allocations_enable(JNIEnv *env);
