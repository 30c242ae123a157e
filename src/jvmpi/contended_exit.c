/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends MONITOR_CONTENDED_EXIT, for which JVM TI has no event. A probe before each monitor exit
 * checks whether any thread contends for a monitor, and if so, whether it is this monitor and
 * whether this exit is the outermost one. The event is sent just before the monitor is released. A
 * thread contends from the end of its MONITOR_CONTENDED_ENTER to the beginning of its
 * MONITOR_CONTENDED_ENTERED; threads that the agent does not know, such as one whose end was
 * reported, are ignored.
 */
#include "base/map.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/layer.h"
#include "jvmpi/objects.h"
#include "jvmpi/probes.h"
#include "jvmpi/sources.h"

PROBE_NATIVE(void, exiting)(JNIEnv *, jclass, jobject, jint);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map contended; /* id of the object -> number of threads that want its monitor */

static __thread jobjectID wanted; /* by the calling thread, whose id is counted while it contends */

void layer_contention_began(jobject object)
{
    if (!layer_enabled(JVMPI_EVENT_MONITOR_CONTENDED_EXIT))
        return;
    jobjectID id = layer_id_of(object);
    id_tag(id); /* is_contended is called often, so it only searches for tags */
    pthread_mutex_lock(&mutex);
    uint64_t *n = map_at(&contended, (uintptr_t)id, 0, NULL);
    if (n) {
        ++*n;
        probes_contenders(1);
        wanted = id;
    }
    pthread_mutex_unlock(&mutex);
}

void layer_contention_ended(void)
{
    if (!wanted || layer_mutation("uncounted-contention"))
        return;
    pthread_mutex_lock(&mutex);
    uint64_t *n = map_at(&contended, (uintptr_t)wanted, 1, NULL);
    probes_contenders(-1);
    if (n && --*n == 0)
        map_remove(&contended, (uintptr_t)wanted);
    wanted = NULL;
    pthread_mutex_unlock(&mutex);
}

static bool is_contended(jobject object)
{
    jlong id = 0;
    if (!object || (*vm.ti)->GetTag(vm.ti, object, &id) || !id)
        return false;
    pthread_mutex_lock(&mutex);
    bool is = map_get(&contended, (uint64_t)id);
    pthread_mutex_unlock(&mutex);
    return is;
}

static jint entry_count(JNIEnv *env, jobject object)
{
    jvmtiMonitorUsage usage = {0};
    if ((*vm.ti)->GetObjectMonitorUsage(vm.ti, object, &usage))
        return 0;
    for (jint i = 0; i < usage.waiter_count; i++)
        (*env)->DeleteLocalRef(env, usage.waiters[i]);
    for (jint i = 0; i < usage.notify_waiter_count; i++)
        (*env)->DeleteLocalRef(env, usage.notify_waiters[i]);
    (*env)->DeleteLocalRef(env, usage.owner);
    vm_free(usage.waiters);
    vm_free(usage.notify_waiters);
    return usage.entry_count;
}

static void report(JNIEnv *env, jobject object)
{
    JVMPI_Event e = {.event_type = JVMPI_EVENT_MONITOR_CONTENDED_EXIT,
                     .u.monitor = {layer_report_object(env, object)}};
    my.probe_inside++;
    layer_notify_naming(env, &e, e.u.monitor.object, object);
    my.probe_inside--;
}

PROBE_NATIVE(void, exiting)(JNIEnv *env, jclass class, jobject object, jint number)
{
    jclass declaring = NULL;
    if (!layer_enabled(JVMPI_EVENT_MONITOR_CONTENDED_EXIT) || !probe_may_report(my_own(), env))
        return;
    if (!object && number >= 0) { /* a static method locks its class */
        jmethodID method = probe_method((uint32_t)number);
        if (!method || (*vm.ti)->GetMethodDeclaringClass(vm.ti, method, &declaring))
            return;
        object = declaring;
    }
    if (is_contended(object) && entry_count(env, object) == 1)
        report(env, object);
    if (declaring)
        (*env)->DeleteLocalRef(env, declaring);
}

/* Reports the exit by Object.wait, which releases the monitor however often it was entered. */
static void JNICALL on_wait(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
                            jlong timeout)
{
    if (layer_enabled(JVMPI_EVENT_MONITOR_CONTENDED_EXIT) && probe_may_report(my_own(), env) &&
        is_contended(object))
        report(env, object);
}

static const struct vm_callbacks events = {.ti = {.MonitorWait = on_wait}};

static jint(JNICALL *monitor_exit)(JNIEnv *, jobject);

static jint JNICALL our_monitor_exit(JNIEnv *env, jobject object)
{
    if (layer_enabled(JVMPI_EVENT_MONITOR_CONTENDED_EXIT) && probe_may_report(my_own(), env) &&
        is_contended(object) && entry_count(env, object) == 1)
        report(env, object);
    return monitor_exit(env, object);
}

jint contended_exit_enable(JNIEnv *env)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static bool on;
    jniNativeInterface *table = NULL;
    pthread_mutex_lock(&once);
    if (!on && !(*vm.ti)->GetJNIFunctionTable(vm.ti, &table)) {
        monitor_exit = table->MonitorExit;
        table->MonitorExit = our_monitor_exit;
        on = !(*vm.ti)->SetJNIFunctionTable(vm.ti, table) && !vm_events_on(&events);
        vm_free(table);
    }
    pthread_mutex_unlock(&once);
    return on ? probes_enable(env, PROBE_MONITORS) : JVMPI_FAIL;
}
