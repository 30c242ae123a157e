/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the events of methods and instructions, from inserted probes (probes.c) or bound native
 * methods (natives.h), and those of compiled methods.
 */
#include "base/map.h"
#include "jvmpi/classes.h"
#include "jvmpi/layer.h"
#include "jvmpi/natives.h"
#include "jvmpi/objects.h"
#include "jvmpi/probes.h"
#include "jvmpi/sources.h"
#include "jvmpi/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PROBE_NATIVE(void, entered)(JNIEnv *, jclass, jint, jobject);
PROBE_NATIVE(void, exited)(JNIEnv *, jclass, jint);
PROBE_NATIVE(void, started)(JNIEnv *, jclass, jint, jint, jint, jint, jint);

/* The events are not zeroed as a whole, which would take a quarter of the time spent here. */
static void report_entry2(JNIEnv *env, jmethodID method, jobject receiver)
{
    JVMPI_Event e;
    e.event_type = JVMPI_EVENT_METHOD_ENTRY2;
    e.u.method_entry2.method_id = method;
    e.u.method_entry2.obj_id = layer_report_object(env, receiver);
    layer_notify_naming(env, &e, e.u.method_entry2.obj_id, receiver);
}

static void report_entry(struct my *own, JNIEnv *env, jmethodID method, jobject receiver)
{
    own->probe_inside++;
    if (layer_enabled(JVMPI_EVENT_METHOD_ENTRY)) {
        JVMPI_Event e;
        e.event_type = JVMPI_EVENT_METHOD_ENTRY;
        e.u.method.method_id = method;
        layer_notify_as(own, env, &e);
    }
    if (layer_enabled(JVMPI_EVENT_METHOD_ENTRY2))
        report_entry2(env, method, receiver);
    own->probe_inside--;
}

static void report_exit(struct my *own, JNIEnv *env, jmethodID method)
{
    JVMPI_Event e;
    e.event_type = JVMPI_EVENT_METHOD_EXIT;
    e.u.method.method_id = method;
    own->probe_inside++;
    layer_notify_as(own, env, &e);
    own->probe_inside--;
}

/* Returns the method that a probe stands for, or NULL when there is nothing to report. */
static jmethodID probed(const struct my *own, JNIEnv *env, jint number)
{
    return number >= 0 && probe_may_report(own, env) ? probe_method((uint32_t)number) : NULL;
}

PROBE_NATIVE(void, entered)(JNIEnv *env, jclass class, jint number, jobject receiver)
{
    struct my *own = my_own();
    jmethodID method = probed(own, env, number);
    if (method)
        report_entry(own, env, method, receiver);
}

PROBE_NATIVE(void, exited)(JNIEnv *env, jclass class, jint number)
{
    struct my *own = my_own();
    jmethodID method = probed(own, env, number);
    if (method && layer_enabled(JVMPI_EVENT_METHOD_EXIT))
        report_exit(own, env, method);
}

/* ---- native methods ---- */

/*
 * What is known about a call at the entry of a native method: nothing, because no event was
 * enabled; that it is not reported; or that it is reported.
 */
enum { NATIVE_UNASKED, NATIVE_SILENT, NATIVE_REPORTED };

static jobject(JNICALL *current_thread)(JNIEnv *, jclass);

/* Returns whether this is a platform thread. Virtual threads send no method events. */
static bool on_platform_thread(JNIEnv *env)
{
    jobject thread = vm.version >= 21 && current_thread ? current_thread(env, NULL) : NULL;
    if (!thread)
        return vm.version < 21;
    bool is = !layer_thread_is_virtual(env, thread);
    (*env)->DeleteLocalRef(env, thread);
    return is;
}

static int enter_native(JNIEnv *env, jmethodID method, jobject receiver)
{
    bool entries =
        layer_enabled(JVMPI_EVENT_METHOD_ENTRY) || layer_enabled(JVMPI_EVENT_METHOD_ENTRY2);
    if (!entries && !layer_enabled(JVMPI_EVENT_METHOD_EXIT))
        return NATIVE_UNASKED;
    struct my *own = my_own();
    if (!probe_may_report(own, env) || !on_platform_thread(env))
        return NATIVE_SILENT;
    if (entries)
        report_entry(own, env, method, receiver);
    return NATIVE_REPORTED;
}

static void exit_native(JNIEnv *env, jmethodID method, int entered)
{
    /*
     * NATIVE_UNASKED on a VM with virtual threads: the VM may already have removed the thread's
     * frames (Object.wait).
     */
    bool may = entered == NATIVE_REPORTED || (entered == NATIVE_UNASKED && vm.version < 21);
    struct my *own = my_own();
    if (!may || !layer_enabled(JVMPI_EVENT_METHOD_EXIT) || !probe_may_report(own, env))
        return;
    jthrowable thrown = (*env)->ExceptionCheck(env) ? (*env)->ExceptionOccurred(env) : NULL;
    if (thrown)
        (*env)->ExceptionClear(env); /* the agent may call JNI */
    report_exit(own, env, method);
    if (thrown)
        (*env)->Throw(env, thrown);
}

/* Reports the class of a bound native method, as probe_method does for instrumented methods. */
static void bound_native(JNIEnv *env, jclass class)
{
    my.probe_inside++;
    if (atomic_load(&layer.live) && thread_ready(my_own(), env))
        (void)layer_report_class(env, class);
    my.probe_inside--;
}

void methods_bind(JNIEnv *env)
{
    static const struct natives_client client = {bound_native, enter_native, exit_native};
    if (natives_on(&client, env) < 0)
        fprintf(stderr, "jvmpi: no method events of native methods on this processor\n");
}

jint methods_enable(JNIEnv *env)
{
    static atomic_flag natives = ATOMIC_FLAG_INIT;
    jint r = probes_enable(env, PROBE_METHODS);
    if (r == JVMPI_SUCCESS && !atomic_flag_test_and_set(&natives)) {
        void *f = vm_libjvm_function("JVM_CurrentThread");
        memcpy(&current_thread, &f, sizeof(f));
        probes_bind(env, BIND_ALL); /* calls Java, so without a lock */
    }
    return r;
}

/* ---- instructions ---- */

PROBE_NATIVE(void, started)

(JNIEnv *env, jclass class, jint number, jint offset, jint kind, jint a, jint b)
{
    enum { IF = 1, TABLE, LOOKUP }; /* the same numbers as in the probe class */

    struct my *own = my_own();
    jmethodID method = probed(own, env, number);
    if (!method || !layer_enabled(JVMPI_EVENT_INSTRUCTION_START))
        return;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_INSTRUCTION_START,
                     .u.instruction = {.method_id = method, .offset = offset}};
    if (kind == IF) {
        e.u.instruction.u.if_info.is_true = a != 0;
    } else if (kind == TABLE) {
        struct probe_switch s = probe_switch(b);
        e.u.instruction.u.tableswitch_info.key = a;
        e.u.instruction.u.tableswitch_info.low = s.low;
        e.u.instruction.u.tableswitch_info.hi = s.high;
    } else if (kind == LOOKUP) {
        struct probe_switch s = probe_switch(b);
        jint i = 0;
        while (i < s.n && s.keys[i] != a)
            i++;
        /* A number equal to the count of pairs stands for the default. */
        e.u.instruction.u.lookupswitch_info.chosen_pair_index = i;
        e.u.instruction.u.lookupswitch_info.pairs_total = s.n;
    }
    own->probe_inside++;
    layer_notify_as(own, env, &e);
    own->probe_inside--;
}

jint layer_instructions_enable(JNIEnv *env)
{
    return probes_enable(env, PROBE_INSTRUCTIONS);
}

/* ---- compiled methods ---- */

/*
 * Methods whose code was reported, until their class is unloaded. The code of an unloaded class
 * ends later than the class.
 */
static pthread_mutex_t compiled_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map compiled;

/* Requires the mutex. */
static bool is_compiled(jmethodID method)
{
    return map_get(&compiled, (uintptr_t)method) ||
           !layer_enabled(JVMPI_EVENT_COMPILED_METHOD_LOAD);
}

/*
 * Returns a key that is not the id of an object; since JDK 26 ids of methods are small numbers too.
 */
static uintptr_t flight_key(jmethodID method)
{
    return ~(uintptr_t)method;
}

void layer_compiled_forget(jmethodID method)
{
    pthread_mutex_lock(&compiled_mutex);
    (void)map_remove(&compiled, (uintptr_t)method);
    pthread_mutex_unlock(&compiled_mutex);
    flight_wait(flight_key(method));
}

/* Reports what was compiled before the classes were reported. */
jint layer_compiled_enable(JNIEnv *env)
{
    return (*vm.ti)->GenerateEvents(vm.ti, JVMTI_EVENT_COMPILED_METHOD_LOAD) ? JVMPI_FAIL
                                                                             : JVMPI_SUCCESS;
}

static void JNICALL on_compiled(jvmtiEnv *ti, jmethodID method, jint size, const void *address,
                                jint n, const jvmtiAddrLocationMap *map, const void *info)
{
    JNIEnv *env = vm_jni();
    if (!layer_enabled(JVMPI_EVENT_COMPILED_METHOD_LOAD) || !atomic_load(&layer.live) || !env ||
        !thread_ready(my_own(), env))
        return;
    jmethodID reported_method = layer_current_method(method);
    jclass class = NULL; /* keeps the class alive while the handler runs */
    if (!(*ti)->GetMethodDeclaringClass(ti, method, &class))
        (void)layer_report_class(env, class);
    pthread_mutex_lock(&compiled_mutex);
    (void)!map_put(&compiled, (uintptr_t)reported_method, 1);
    pthread_mutex_unlock(&compiled_mutex);
    jint n_lines = 0, used = 0;
    jvmtiLineNumberEntry *lines = NULL;
    JVMPI_Lineno *table = n > 0 && map ? calloc((size_t)n, sizeof(*table)) : NULL;
    if (table && (*ti)->GetLineNumberTable(ti, method, &n_lines, &lines))
        n_lines = 0;
    for (jint i = 0; table && i < n; i++) {
        jlocation best = -1;
        jint line = -1;
        for (jint k = 0; k < n_lines; k++) {
            if (lines[k].start_location <= map[i].location && lines[k].start_location > best) {
                best = lines[k].start_location;
                line = lines[k].line_number;
            }
        }
        if (line >= 0)
            table[used++] = (JVMPI_Lineno){
                (jint)((const char *)map[i].start_address - (const char *)address), line};
    }
    vm_free(lines);
    JVMPI_Event e = {
        .event_type = JVMPI_EVENT_COMPILED_METHOD_LOAD,
        .u.compiled_method_load = {reported_method, (void *)(uintptr_t)address, size, used, table}};
    layer_notify(env, &e);
    free(table);
    (*env)->DeleteLocalRef(env, class);
}

static void JNICALL on_uncompiled(jvmtiEnv *ti, jmethodID method, const void *address)
{
    if (!layer_enabled(JVMPI_EVENT_COMPILED_METHOD_UNLOAD))
        return;
    pthread_mutex_lock(&compiled_mutex);
    bool same = is_compiled(method);
    pthread_mutex_unlock(&compiled_mutex);
    if (!same)
        method = layer_current_method(method);
    JVMPI_Event e = {.event_type = JVMPI_EVENT_COMPILED_METHOD_UNLOAD,
                     .u.compiled_method_unload = {method}};
    struct flight f = {0};
    pthread_mutex_lock(&compiled_mutex);
    bool known = is_compiled(method);
    if (known)
        flight_enter(&f, flight_key(method));
    pthread_mutex_unlock(&compiled_mutex);
    if (known)
        layer_notify(vm_jni(), &e);
    flight_end(&f);
}

const struct vm_callbacks compiled_load_events = {.ti = {.CompiledMethodLoad = on_compiled}};
const struct vm_callbacks compiled_unload_events = {.ti = {.CompiledMethodUnload = on_uncompiled}};
