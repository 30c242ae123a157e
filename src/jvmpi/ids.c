/* SPDX-License-Identifier: Apache-2.0 */
/* Object ids are tags. */
#include "jvmpi/layer.h"

static _Atomic jlong last_id;
static pthread_mutex_t giving = PTHREAD_MUTEX_INITIALIZER; /* two threads must not name one object twice */

jlong next_id(void)
{
    return atomic_fetch_add(&last_id, 1) + 1;
}

jobjectID id_of_new(jobject object, bool *ret_new)
{
    jlong tag = 0;
    *ret_new = false;
    if (!object || (*vm.ti)->GetTag(vm.ti, object, &tag))
        return NULL;
    if (!tag) {
        pthread_mutex_lock(&giving);
        if (!(*vm.ti)->GetTag(vm.ti, object, &tag) && !tag) {
            tag = next_id();
            *ret_new = true;
            if ((*vm.ti)->SetTag(vm.ti, object, tag))
                tag = 0;
        }
        pthread_mutex_unlock(&giving);
    }
    return (jobjectID)(intptr_t)tag;
}

jobjectID id_of(jobject object)
{
    bool fresh;
    return id_of_new(object, &fresh);
}

jobject object_of(JNIEnv *env, jobjectID id)
{
    jlong tag = (jlong)(intptr_t)id;
    jint n = 0;
    jobject *objects = NULL;
    if (!tag || (*vm.ti)->GetObjectsWithTags(vm.ti, 1, &tag, &n, &objects, NULL))
        return NULL;
    jobject object = n ? objects[0] : NULL;
    vm_free(objects);
    return object;
}
