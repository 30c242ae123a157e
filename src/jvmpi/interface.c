/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions that agents get. After JVM_SHUT_DOWN a call from a thread of the program
 * or the agent never returns, as in the old VMs. Exempt are the thread that ends the VM, threads
 * that are not Java threads (they may run the agent's exit handlers), and thread-local storage,
 * which may be used in a signal handler.
 */
#include "jvmpi/interface.h"
#include "base/macro.h"
#include "jvmpi/classes.h"
#include "jvmpi/ids.h"
#include "jvmpi/layer.h"
#include "jvmpi/lookup.h"
#include "jvmpi/memory.h"
#include "jvmpi/monitors.h"
#include "jvmpi/threads.h"
#include "jvmpi/traces.h"

#include <stdlib.h>
#include <string.h>

void layer_hold(void)
{
    if (likely(!atomic_load_explicit(&layer.down, memory_order_acquire)) || my.ending || !vm_jni())
        return;
    /* the caller will not release it, and the VM would wait for suspended threads */
    threads_resume_all();
    for (;;)
        pause();
}

static jobject object_of_id(jobjectID id)
{
    JNIEnv *env = vm_jni();
    return env ? layer_object_of(env, id) : NULL;
}

/* X(slot, function, its type, parameters, arguments, result of a stub that claims success) */
#define FUNCTIONS(X)                                                                               \
    X(EnableEvent, layer_enable_event, jint, (jint type, void *arg), (type, arg), JVMPI_SUCCESS)   \
    X(DisableEvent, layer_disable_event, jint, (jint type, void *arg), (type, arg), JVMPI_SUCCESS) \
    X(RequestEvent, layer_request_event, jint, (jint type, void *arg), (type, arg), JVMPI_SUCCESS) \
    X(GetCurrentThreadCpuTime, layer_get_current_thread_cpu_time, jlong, (void), (), 1)            \
    X(GetThreadStatus, layer_get_thread_status, jint, (JNIEnv * env), (env),                       \
      JVMPI_THREAD_RUNNABLE)                                                                       \
    X(ThreadHasRun, thread_has_run, jboolean, (JNIEnv * env), (env), JNI_TRUE)                     \
    X(CreateSystemThread, layer_create_system_thread, jint,                                        \
      (char *name, jint p, void (*f)(void *)), (name, p, f), JNI_OK)                               \
    X(GetThreadObject, layer_get_thread_object, jobjectID, (JNIEnv * env), (env), (jobjectID)1)    \
    X(GetMethodClass, layer_get_method_class, jobjectID, (jmethodID method), (method),             \
      (jobjectID)1)                                                                                \
    X(jobjectID2jobject, object_of_id, jobject, (jobjectID id), (id), NULL)                        \
    X(jobject2jobjectID, layer_id_of, jobjectID, (jobject o), (o), (jobjectID)1)                   \
    X(RawMonitorCreate, raw_monitor_create, JVMPI_RawMonitor, (char *name), (name),                \
      (JVMPI_RawMonitor)1)

#define PROCEDURES(X)                                                                            \
    X(GetCallTrace, layer_get_call_trace, (JVMPI_CallTrace * trace, jint depth), (trace, depth)) \
    X(RawMonitorEnter, layer_raw_monitor_enter, (JVMPI_RawMonitor m), (m))                       \
    X(RawMonitorExit, layer_raw_monitor_exit, (JVMPI_RawMonitor m), (m))                         \
    X(RawMonitorWait, layer_raw_monitor_wait, (JVMPI_RawMonitor m, jlong ms), (m, ms))           \
    X(RawMonitorNotifyAll, layer_raw_monitor_notify_all, (JVMPI_RawMonitor m), (m))              \
    X(RawMonitorDestroy, layer_raw_monitor_destroy, (JVMPI_RawMonitor m), (m))                   \
    X(SuspendThread, layer_suspend_thread, (JNIEnv * env), (env))                                \
    X(ResumeThread, layer_resume_thread, (JNIEnv * env), (env))                                  \
    X(DisableGC, layer_disable_gc, (void), ())                                                   \
    X(EnableGC, layer_enable_gc, (void), ())                                                     \
    X(RunGC, layer_run_gc, (void), ())                                                           \
    X(SuspendThreadList, layer_suspend_thread_list, (jint n, JNIEnv * *list, jint * results),    \
      (n, list, results))                                                                        \
    X(ResumeThreadList, layer_resume_thread_list, (jint n, JNIEnv * *list, jint * results),      \
      (n, list, results))

#define FUNCTION(slot, f, type, parameters, arguments, stub) \
    static type call_##slot parameters                       \
    {                                                        \
        layer_hold();                                        \
        my.asked++;                                          \
        type answer = f arguments;                           \
        my.asked--;                                          \
        return answer;                                       \
    }
#define PROCEDURE(slot, f, parameters, arguments) \
    static void call_##slot parameters            \
    {                                             \
        layer_hold();                             \
        my.asked++;                               \
        f arguments;                              \
        my.asked--;                               \
    }
FUNCTIONS(FUNCTION)
PROCEDURES(PROCEDURE)

JVMPI_Interface jvmpi_interface = {
#define ROW(slot, ...) .slot = call_##slot,
    FUNCTIONS(ROW) PROCEDURES(ROW)
#undef ROW
        .version = JVMPI_VERSION_1_2,
    .ProfilerExit = layer_profiler_exit,
    .GetThreadLocalStorage = layer_get_thread_local_storage,
    .SetThreadLocalStorage = layer_set_thread_local_storage,
};

/* For testing the tests: JVMPI_MUTANT names functions that claim success and do nothing. */
#ifdef JVMPI_MUTANTS
#define STUB(slot, f, type, parameters, arguments, stub) \
    static type stub_##slot parameters                   \
    {                                                    \
        return stub;                                     \
    }
#define EMPTY(slot, f, parameters, arguments) \
    static void stub_##slot parameters        \
    {                                         \
    }
FUNCTIONS(STUB)
PROCEDURES(EMPTY)

static void stub_ProfilerExit(jint code)
{
}

static void *stub_GetThreadLocalStorage(JNIEnv *env)
{
    return NULL;
}

static void stub_SetThreadLocalStorage(JNIEnv *env, void *value)
{
}

bool layer_mutation_of_event(jint type)
{
    const char *name = getenv("JVMPI_MUTANT");
    return name && atoi(name) == (type & ~JVMPI_REQUESTED_EVENT);
}

bool layer_mutation(const char *name)
{
    static const char *wanted;
    if (!wanted)
        wanted = getenv("JVMPI_MUTANT") ? getenv("JVMPI_MUTANT") : "";
    return strcmp(wanted, name) == 0;
}

bool layer_mutation_eighth(const char *name)
{
    static atomic_uint n;
    return layer_mutation(name) && atomic_fetch_add(&n, 1) % 8 == 7;
}

void layer_mutate(void)
{
    const char *name = getenv("JVMPI_MUTANT");
#define REPLACE(slot, ...)                \
    if (name && strcmp(name, #slot) == 0) \
        jvmpi_interface.slot = stub_##slot;
    FUNCTIONS(REPLACE)
    PROCEDURES(REPLACE)
    REPLACE(ProfilerExit)
    REPLACE(GetThreadLocalStorage)
    REPLACE(SetThreadLocalStorage)
}
#endif
