/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/loaded_classes.h"

#include <errno.h>

int loaded_classes(jvmtiEnv *ti, JNIEnv *jni, struct loaded_classes *ret)
{
    *ret = (struct loaded_classes){.ti = ti, .jni = jni};
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
