/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/loaded_classes.h"

#include "agent/vm/vm.h"

#include <errno.h>
#include <string.h>

int loaded_classes(jvmtiEnv *ti, JNIEnv *jni, struct loaded_classes *ret)
{
    *ret = (struct loaded_classes){.ti = ti, .jni = jni};
    vm_expect_references(jni);
    return (*ti)->GetLoadedClasses(ti, &ret->n, &ret->of) == JVMTI_ERROR_NONE ? 0 : -ENOTSUP;
}

void loaded_classes_release(struct loaded_classes *l)
{
    if (!l->of)
        return;
    for (jint i = 0; i < l->n; i++)
        if (l->of[i])
            (*l->jni)->DeleteLocalRef(l->jni, l->of[i]);
    (*l->ti)->Deallocate(l->ti, (unsigned char *)l->of);
    l->of = NULL;
}

int loaded_classes_each(jvmtiEnv *ti, JNIEnv *jni,
                        bool (*f)(void *context, jclass c, struct str name), void *context)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    bool done = false;
    int r = loaded_classes(ti, jni, &all);
    for (jint i = 0; r == 0 && i < all.n && !done; i++) {
        char *signature = NULL;
        if ((*ti)->GetClassSignature(ti, all.of[i], &signature, NULL) != JVMTI_ERROR_NONE)
            continue;
        size_t len = strlen(signature);
        if (*signature == 'L' && len > 2)
            done = f(context, all.of[i], (struct str){signature + 1, len - 2});
        (*ti)->Deallocate(ti, (unsigned char *)signature);
    }
    return r < 0 ? r : done;
}

/*
 * Calls f with the name and the modifiers of each field that a class declares, until f returns
 * true. Returns whether it did, or whether the VM does not provide the fields.
 */
static bool fields_each(jvmtiEnv *ti, jclass c,
                        bool (*f)(void *context, const char *name, jint modifiers), void *context)
{
    jint n = 0;
    jfieldID *fields = NULL;
    bool done = false;
    if ((*ti)->GetClassFields(ti, c, &n, &fields) != JVMTI_ERROR_NONE)
        return true;
    for (jint i = 0; i < n && !done; i++) {
        char *name = NULL;
        jint modifiers = 0;
        if ((*ti)->GetFieldName(ti, c, fields[i], &name, NULL, NULL) != JVMTI_ERROR_NONE)
            continue;
        (*ti)->GetFieldModifiers(ti, c, fields[i], &modifiers);
        done = f(context, name, modifiers);
        (*ti)->Deallocate(ti, (unsigned char *)name);
    }
    (*ti)->Deallocate(ti, (unsigned char *)fields);
    return done;
}

static bool is_field(void *context, const char *name, jint modifiers)
{
    return strcmp(name, context) == 0;
}

bool loaded_class_declares_field(jvmtiEnv *ti, jclass c, const char *field)
{
    return fields_each(ti, c, is_field, (char *)field);
}

struct near_fields {
    struct nearest *nearest;
    enum field_kind kind;
    bool nearer;
};

static bool try_field(void *context, const char *name, jint modifiers)
{
    enum { ACC_STATIC = 8 };

    struct near_fields *near = context;
    bool is_static = modifiers & ACC_STATIC;
    if (near->kind == FIELD_ANY || is_static == (near->kind == FIELD_STATIC))
        near->nearer |= nearest_try(near->nearest, name);
    return false;
}

bool loaded_class_nearest_field(jvmtiEnv *ti, jclass c, enum field_kind kind, struct nearest *n)
{
    struct near_fields near = {n, kind, false};
    fields_each(ti, c, try_field, &near);
    return near.nearer;
}

bool loaded_class_nearest_method(jvmtiEnv *ti, jclass c, struct nearest *n)
{
    jint count = 0;
    jmethodID *methods = NULL;
    bool nearer = false;
    if ((*ti)->GetClassMethods(ti, c, &count, &methods) != JVMTI_ERROR_NONE)
        return false;
    for (jint i = 0; i < count; i++) {
        char *name = NULL;
        if ((*ti)->GetMethodName(ti, methods[i], &name, NULL, NULL) != JVMTI_ERROR_NONE)
            continue;
        nearer |= nearest_try(n, name);
        (*ti)->Deallocate(ti, (unsigned char *)name);
    }
    (*ti)->Deallocate(ti, (unsigned char *)methods);
    return nearer;
}
