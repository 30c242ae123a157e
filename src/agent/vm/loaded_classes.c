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

bool class_declares_field(jvmtiEnv *ti, jclass c, const char *field)
{
    jint n = 0;
    jfieldID *fields = NULL;
    bool found = false;
    if ((*ti)->GetClassFields(ti, c, &n, &fields) != JVMTI_ERROR_NONE)
        return true;
    for (jint i = 0; i < n && !found; i++) {
        char *name = NULL;
        if ((*ti)->GetFieldName(ti, c, fields[i], &name, NULL, NULL) != JVMTI_ERROR_NONE)
            continue;
        found = strcmp(name, field) == 0;
        (*ti)->Deallocate(ti, (unsigned char *)name);
    }
    (*ti)->Deallocate(ti, (unsigned char *)fields);
    return found;
}
