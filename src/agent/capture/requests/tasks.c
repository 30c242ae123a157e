/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduled tasks as requests: each is named after the class of what the program scheduled. */
#include "agent/capture/requests/requests.h"

#include "agent/stacks/names.h"
#include "agent/vm/vm.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The classes that wrap a program's task, and the field that refers to the task. */
static const struct {
    const char *class, *field, *type;
} wrappers[] = {
    {"java/util/concurrent/FutureTask", "callable", "Ljava/util/concurrent/Callable;"},
    {"java/util/concurrent/Executors$RunnableAdapter", "task", "Ljava/lang/Runnable;"},
};

static struct {
    _Atomic(jclass) class;
    _Atomic(jfieldID) field; /* published last */
} wrapped[ARRAY_SIZE(wrappers)];

/* Tasks with which the JDK, servers and pools maintain themselves. */
static const char *const house_keepers[] = {
    "java.",
    "jdk.",
    "sun.",
    "javax.",
    "org.apache.catalina.",
    "org.apache.tomcat.",
    "org.apache.coyote.",
    "org.apache.activemq.",
    "org.apache.commons.pool",
    "org.apache.kafka.",
    "org.eclipse.jetty.",
    "io.netty.",
    "io.grpc.",
    "com.zaxxer.hikari.",
    "com.mchange.",
};

/*
 * Finds the class and the field of a wrapper. This is done at the first task rather than when the
 * recording begins, because looking up the field initializes the class, which takes a small program
 * 4 to 7 ms.
 */
static void find_wrapper(JNIEnv *jni, size_t i)
{
    jclass c = (*jni)->FindClass(jni, wrappers[i].class), none = NULL;
    jfieldID f = c ? (*jni)->GetFieldID(jni, c, wrappers[i].field, wrappers[i].type) : NULL;
    vm_clear_exception(jni);
    jclass global = f ? (*jni)->NewGlobalRef(jni, c) : NULL;
    if (global && !atomic_compare_exchange_strong(&wrapped[i].class, &none, global))
        (*jni)->DeleteGlobalRef(jni, global); /* another thread has found it at the same time */
    if (global)
        atomic_store(&wrapped[i].field, f);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
}

/* Returns the task that the program scheduled, without its wrappers, as a new local reference. */
static jobject unwrap(JNIEnv *jni, jobject task)
{
    jobject inner = (*jni)->NewLocalRef(jni, task);
    for (size_t i = 0; inner && i < ARRAY_SIZE(wrapped); i++) {
        if (!atomic_load(&wrapped[i].field))
            find_wrapper(jni, i);
        jfieldID field = atomic_load(&wrapped[i].field);
        if (!field || !(*jni)->IsInstanceOf(jni, inner, atomic_load(&wrapped[i].class)))
            continue;
        jobject next = (*jni)->GetObjectField(jni, inner, field);
        if (!next)
            break;
        (*jni)->DeleteLocalRef(jni, inner);
        inner = next;
    }
    return inner;
}

bool task_name(JNIEnv *jni, jobject task, unsigned *ret)
{
    jobject inner = unwrap(jni, task);
    jclass c = inner ? (*jni)->GetObjectClass(jni, inner) : NULL;
    char *text = c ? names_class_text(c) : NULL;
    bool named = text != NULL;
    for (size_t i = 0; named && i < ARRAY_SIZE(house_keepers); i++)
        named = strncmp(text, house_keepers[i], strlen(house_keepers[i])) != 0;
    if (named)
        *ret = request_name_find(REQUEST_TASK, text);
    free(text);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    if (inner)
        (*jni)->DeleteLocalRef(jni, inner);
    return named;
}
