/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/brackets.h"

#include "jvmpi/boot_classes.h"
#include "jvmpi/classes.h"
#include "jvmpi/heap_counts.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/lookup.h"
#include "jvmpi/sizes.h"

static _Atomic uint64_t n_sent; /* ends of objects, in brackets */

static jlong total_memory(JNIEnv *env)
{
    jclass class = boot_class(env, "java/lang/Runtime");
    jmethodID get =
        class ? (*env)->GetStaticMethodID(env, class, "getRuntime", "()Ljava/lang/Runtime;") : NULL;
    jobject runtime = get ? (*env)->CallStaticObjectMethod(env, class, get) : NULL;
    if (vm_clear_exception(env))
        runtime = NULL;
    jmethodID total = runtime ? (*env)->GetMethodID(env, class, "totalMemory", "()J") : NULL;
    jlong bytes = total ? (*env)->CallLongMethod(env, runtime, total) : 0;
    vm_clear_exception(env);
    (*env)->DeleteLocalRef(env, runtime);
    (*env)->DeleteLocalRef(env, class);
    return bytes;
}

static JVMPI_Event finish_event(JNIEnv *env)
{
    struct heap_counts c = heap_counts_after_collection();
    return (JVMPI_Event){.event_type = JVMPI_EVENT_GC_FINISH,
                         .u.gc_info = {c.objects, c.bytes, total_memory(env)}};
}

static void send_finish(JNIEnv *env)
{
    JVMPI_Event e = finish_event(env);
    layer_notify(env, &e);
}

/* Sends brackets of collections for which no end has been reported. The heap is counted once. */
static void send_empty(JNIEnv *env, uint64_t n)
{
    JVMPI_Event start = {.event_type = JVMPI_EVENT_GC_START}, finish = {0};
    bool starts = layer_enabled(JVMPI_EVENT_GC_START), ends = layer_enabled(JVMPI_EVENT_GC_FINISH);
    if (ends && n)
        finish = finish_event(env);
    for (uint64_t i = 0; i < n; i++) {
        if (starts)
            layer_notify(env, &start);
        if (ends)
            layer_notify(env, &finish);
    }
}

/* If OBJECT_ALLOC is enabled and has not reported an object, its end is not reported either. */
static void send_free(JNIEnv *env, jlong id)
{
    JVMPI_Event e = {.event_type = JVMPI_EVENT_OBJECT_FREE,
                     .u.obj_free = {(jobjectID)(intptr_t)id}};
    struct flight f = {0};
    lookup_forget(env, id);
    layer_object_size_forget(id);
    if (!id_claim(id, &f) && layer_enabled(JVMPI_EVENT_OBJECT_FREE))
        for (int times = layer_mutation("free-twice") ? 2 : 1; times > 0; times--)
            layer_notify(env, &e);
    flight_end(&f);
    atomic_fetch_add(&n_sent, 1);
}

/* Sends one bracket: objects that have ended, then the classes all of whose objects have ended. */
static void send_full(JNIEnv *env, const struct taken *t)
{
    JVMPI_Event start = {.event_type = JVMPI_EVENT_GC_START};
    for (size_t i = 0; i < t->settled; i++)
        layer_class_code_forget(t->classes.data[i]);
    if (layer_enabled(JVMPI_EVENT_GC_START))
        layer_notify(env, &start);
    if (layer_mutation("free-outside") && layer_enabled(JVMPI_EVENT_GC_FINISH))
        send_finish(env);
    for (size_t i = 0; i < t->objects.len; i++)
        send_free(env, t->objects.data[i]);
    for (size_t i = 0; i < t->settled; i++) {
        (void)layer_class_freed(env, t->classes.data[i]);
        send_free(env, t->classes.data[i]);
    }
    if (layer_enabled(JVMPI_EVENT_GC_FINISH))
        send_finish(env);
}

void brackets_send(JNIEnv *env, const struct taken *t, uint64_t n)
{
    if (!n)
        return;
    send_empty(env, n - 1);
    send_full(env, t);
}

uint64_t brackets_frees(void)
{
    return atomic_load(&n_sent);
}
