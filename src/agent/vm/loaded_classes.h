/* SPDX-License-Identifier: Apache-2.0 */
/* The loaded classes (JVM TI, GetLoadedClasses). */
#pragma once

#include "base/macro.h"
#include "base/nearest.h"
#include "base/strpool.h"

#include <jvmti.h>
#include <stdbool.h>

struct loaded_classes {
    jint n, own; /* own: those of the agent that a question left out */
    jclass *of;  /* local references of the thread that requested them */
    jvmtiEnv *ti;
    JNIEnv *jni;
};

/*
 * Lists the loaded classes in *ret, which the same thread must release, also after an error.
 * Returns 0, or -ENOTSUP when the VM does not provide the list.
 */
int loaded_classes(jvmtiEnv *ti, JNIEnv *jni, struct loaded_classes *ret) must_check;

/* Returns class i as the caller's own local reference and clears its place. */
static inline jclass loaded_class_take(struct loaded_classes *l, jint i)
{
    jclass ret = l->of[i];
    l->of[i] = NULL;
    return ret;
}

/* Releases the references that have not been taken. */
void loaded_classes_release(struct loaded_classes *l);

/*
 * Returns whether a class declares a field of this name; true when the VM does not provide its
 * fields.
 */
bool loaded_class_declares_field(jvmtiEnv *ti, jclass c, const char *field);

enum field_kind { FIELD_ANY, FIELD_OF_OBJECT, FIELD_STATIC };

/*
 * Compare a misspelt name with those of the fields of a kind, or of the methods, that a class
 * declares. Return whether one of them is nearer than all before.
 */
bool loaded_class_nearest_field(jvmtiEnv *ti, jclass c, enum field_kind kind, struct nearest *n);
bool loaded_class_nearest_method(jvmtiEnv *ti, jclass c, struct nearest *n);

/*
 * Calls f with each loaded class that is not an array and its name (pkg/Class), both valid during
 * the call, until f returns true. Returns 1 if f did, 0 if it never did, or -ENOTSUP when the VM
 * does not provide the list.
 */
int loaded_classes_each(jvmtiEnv *ti, JNIEnv *jni,
                        bool (*f)(void *context, jclass c, struct str name), void *context);
