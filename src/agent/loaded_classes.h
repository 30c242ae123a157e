/* SPDX-License-Identifier: Apache-2.0 */
/* The classes that are loaded (JVM TI, GetLoadedClasses). */
#pragma once

#include "base/macro.h"
#include "base/strpool.h"

#include <jvmti.h>
#include <stdbool.h>

struct loaded_classes {
    jint n;
    jclass *of; /* local references of the thread that asked */
    jvmtiEnv *ti;
    JNIEnv *jni;
};

/*
 * Fills *ret, to be released in either case by the same thread. 0, or -ENOTSUP when the VM does not
 * tell.
 */
int loaded_classes(jvmtiEnv *ti, JNIEnv *jni, struct loaded_classes *ret) must_check;

/* Class i as the caller's own local reference; its place is NULL then. */
static inline jclass loaded_class_take(struct loaded_classes *l, jint i)
{
    jclass ret = l->of[i];
    l->of[i] = NULL;
    return ret;
}

/* Gives back the references that nobody has taken. */
void loaded_classes_release(struct loaded_classes *l);

/*
 * Calls f with each loaded class that is no array and its name (pkg/Class), both valid during the
 * call, until f answers true. 1 when it did, 0 when it never did, or -ENOTSUP when the VM does not
 * tell which classes are loaded.
 */
int loaded_classes_each(jvmtiEnv *ti, JNIEnv *jni,
                        bool (*f)(void *context, jclass c, struct str name), void *context);
