/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the events of JNI global references, by replacing functions in the VM's table of JNI
 * functions. The layer's own references bypass it.
 */
#include "jvmpi/references.h"
#include "base/map.h"
#include "jvmpi/ids.h"
#include "jvmpi/layer.h"
#include "jvmpi/objects.h"
#include "jvmpi/settle.h"
#include "jvmpi/threads.h"

#include <stdlib.h>

/*
 * The VM's own functions. Other threads read it at any time, so it is set when the table is filled:
 * the VM stores the address of a table before its contents.
 */
static _Atomic(jniNativeInterface *) original;

/* Strong global references, for the roots of heap dumps. */
static pthread_mutex_t globals_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map globals; /* reference -> id */

static void remember(jobject ref)
{
    jlong id = (jlong)(intptr_t)layer_id_of(ref);
    pthread_mutex_lock(&globals_mutex);
    if (ref && map_put(&globals, (uintptr_t)ref, (uint64_t)id))
        map_remove(&globals, (uintptr_t)ref);
    pthread_mutex_unlock(&globals_mutex);
}

static void forget(jobject ref)
{
    pthread_mutex_lock(&globals_mutex);
    map_remove(&globals, (uintptr_t)ref);
    pthread_mutex_unlock(&globals_mutex);
}

static struct map reported; /* references of both kinds for which _ALLOC was sent */

static void remember_reported(jobject ref)
{
    pthread_mutex_lock(&globals_mutex);
    (void)!map_put(&reported, (uintptr_t)ref, 1);
    pthread_mutex_unlock(&globals_mutex);
}

static bool forget_reported(jobject ref)
{
    pthread_mutex_lock(&globals_mutex);
    bool was = map_remove(&reported, (uintptr_t)ref);
    pthread_mutex_unlock(&globals_mutex);
    return was;
}

static int compare_ids(const void *left, const void *right)
{
    const struct reference *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

size_t references_list(struct reference **ret)
{
    size_t n = 0;
    uint64_t ref, id;
    pthread_mutex_lock(&globals_mutex);
    struct reference *list = calloc(globals.len + 1, sizeof(*list));
    for (size_t i = 0; list && map_next(&globals, &i, &ref, &id);)
        list[n++] = (struct reference){(jobject)(uintptr_t)ref, (jlong)id, false};
    pthread_mutex_unlock(&globals_mutex);
    if (n)
        qsort(list, n, sizeof(*list), compare_ids);
    *ret = list;
    return n;
}

/* Reports a new reference if its event is enabled. Returns whether it has reported it. */
static bool made(JNIEnv *env, jint type, jobject ref)
{
    if (!ref || !layer_enabled(type) || !thread_ready(my_own(), env) ||
        !layer_report_begin(my_own()))
        return false;
    jobjectID id = layer_report_object(env, ref);
    remember_reported(ref);
    JVMPI_Event e = {.event_type = type, .u.jni_globalref_alloc = {id, ref}};
    layer_notify_naming(env, &e, id, ref);
    layer_report_end(my_own());
    return true;
}

/*
 * Reports the end of a reference if its creation was reported or if the event for creations is
 * disabled.
 */
static void freed(JNIEnv *env, jint type, jint alloc_type, jobject ref)
{
    JVMPI_Event e = {.event_type = type, .u.jni_globalref_free = {ref}};
    bool was_reported = forget_reported(ref) || !layer_enabled(alloc_type);
    if (ref && was_reported && layer_enabled(type))
        layer_notify(env, &e);
}

static jobject JNICALL new_global(JNIEnv *env, jobject object)
{
    jobject ref = original->NewGlobalRef(env, object);
    if (made(env, JVMPI_EVENT_JNI_GLOBALREF_ALLOC, ref))
        remember(ref); /* for dumps */
    return ref;
}

/*
 * A dump names a reference as long as the report of its end has not begun. The report waits until a
 * dump in progress has ended.
 */
static void JNICALL delete_global(JNIEnv *env, jobject ref)
{
    bool reports = layer_enabled(JVMPI_EVENT_JNI_GLOBALREF_FREE) && thread_ready(my_own(), env);
    if (reports) {
        layer_known_change_begin();
        reports = layer_report_begin(my_own());
        forget(ref);
        layer_known_change_end();
    } else {
        forget(ref);
    }
    freed(env, JVMPI_EVENT_JNI_GLOBALREF_FREE, JVMPI_EVENT_JNI_GLOBALREF_ALLOC, ref);
    if (reports)
        layer_report_end(my_own());
    original->DeleteGlobalRef(env, ref);
}

static jweak JNICALL new_weak(JNIEnv *env, jobject object)
{
    jweak ref = original->NewWeakGlobalRef(env, object);
    (void)made(env, JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC, ref);
    return ref;
}

static void JNICALL delete_weak(JNIEnv *env, jweak ref)
{
    freed(env, JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE, JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC, ref);
    original->DeleteWeakGlobalRef(env, ref);
}

jint references_on(JNIEnv *env)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static bool on;
    jniNativeInterface *table = NULL, *copy = NULL;
    pthread_mutex_lock(&once);
    if (!on && !(*vm.ti)->GetJNIFunctionTable(vm.ti, &copy) &&
        !(*vm.ti)->GetJNIFunctionTable(vm.ti, &table)) {
        atomic_store(&original, copy);
        table->NewGlobalRef = new_global;
        table->DeleteGlobalRef = delete_global;
        table->NewWeakGlobalRef = new_weak;
        table->DeleteWeakGlobalRef = delete_weak;
        on = !(*vm.ti)->SetJNIFunctionTable(vm.ti, table);
        vm_free(table);
    }
    pthread_mutex_unlock(&once);
    return on ? JVMPI_SUCCESS : JVMPI_FAIL;
}

jweak layer_weak(JNIEnv *env, jobject object)
{
    return original ? original->NewWeakGlobalRef(env, object)
                    : (*env)->NewWeakGlobalRef(env, object);
}

void layer_delete_weak(JNIEnv *env, jweak ref)
{
    if (original)
        original->DeleteWeakGlobalRef(env, ref);
    else
        (*env)->DeleteWeakGlobalRef(env, ref);
}

jobject layer_global(JNIEnv *env, jobject object)
{
    return original ? original->NewGlobalRef(env, object) : (*env)->NewGlobalRef(env, object);
}

void layer_delete_global(JNIEnv *env, jobject ref)
{
    if (original)
        original->DeleteGlobalRef(env, ref);
    else
        (*env)->DeleteGlobalRef(env, ref);
}
