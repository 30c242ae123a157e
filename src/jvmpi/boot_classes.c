/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of the JDK that the layer uses, looked up once. JNI's FindClass uses the class loader of
 * the calling Java code and, while a library is being loaded, runs Java for that. Called from
 * within an event it could break what the program is doing.
 */

#include "jvmpi/boot_classes.h"
#include "jvmpi/layer.h"
#include <string.h>

static const char *const names[] = {
    "java/lang/Class",     "java/lang/Object",         "java/lang/Thread",  "java/lang/Runtime",
    "java/lang/System",    "java/lang/Shutdown",       "java/lang/Boolean", "java/lang/Byte",
    "java/lang/Character", "java/lang/Short",          "java/lang/Integer", "java/lang/Long",
    "java/lang/Float",     "java/lang/Double",         "java/lang/Void",    "[Ljava/lang/Object;",
    "sun/misc/Unsafe",     "jdk/internal/misc/Unsafe",
};
static jclass _Atomic classes[ARRAY_SIZE(names)];

void boot_classes_find(JNIEnv *env)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        jclass class = (*env)->FindClass(env, names[i]);
        vm_clear_exception(env); /* each VM has at least one of the two Unsafe classes */
        if (class)
            atomic_store(&classes[i], (*env)->NewGlobalRef(env, class));
        (*env)->DeleteLocalRef(env, class);
    }
}

jclass boot_class(JNIEnv *env, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        jclass class = atomic_load(&classes[i]);
        if (class && strcmp(names[i], name) == 0)
            return (*env)->NewLocalRef(env, class);
    }
    return NULL;
}

jclass layer_component_class(JNIEnv *env, jclass array)
{
    jclass of_classes = boot_class(env, "java/lang/Class");
    jmethodID get =
        of_classes ? (*env)->GetMethodID(env, of_classes, "getComponentType", "()Ljava/lang/Class;")
                   : NULL;
    jclass component = get ? (*env)->CallObjectMethod(env, array, get) : NULL;
    if (vm_clear_exception(env))
        component = NULL;
    (*env)->DeleteLocalRef(env, of_classes);
    return component;
}
