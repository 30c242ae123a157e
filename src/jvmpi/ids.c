/* SPDX-License-Identifier: Apache-2.0 */
/* Object ids are tags. */
#include "base/map.h"
#include "jvmpi/layer.h"

static _Atomic jlong last_id;
static pthread_mutex_t giving = PTHREAD_MUTEX_INITIALIZER; /* two threads must not name one object twice */
static uint64_t sweeps = 1;                                /* that have ended; under `giving` */
static int sweeping;

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
        layer_lock(&giving);
        if (!(*vm.ti)->GetTag(vm.ti, object, &tag) && !tag) {
            tag = next_id();
            *ret_new = true;
            if ((*vm.ti)->SetTag(vm.ti, object, tag))
                tag = 0;
        }
        layer_unlock(&giving);
    }
    return (jobjectID)(intptr_t)tag;
}

void ids_sweep_begin(void)
{
    layer_lock(&giving);
    sweeping++;
    layer_unlock(&giving);
}

void ids_sweep_end(void)
{
    layer_lock(&giving);
    sweeping--;
    sweeps++;
    layer_unlock(&giving);
}

jobjectID id_of_allocated(jobject object, bool *ret_new)
{
    static __thread uint64_t seen; /* sweeps at this thread's last allocation, which was before this object's */
    jlong tag = 0;
    *ret_new = false;
    layer_lock(&giving);
    bool swept = sweeping || seen != sweeps;
    seen = sweeps;
    if (!swept || (!(*vm.ti)->GetTag(vm.ti, object, &tag) && !tag)) {
        tag = next_id();
        *ret_new = true;
        if ((*vm.ti)->SetTag(vm.ti, object, tag))
            tag = 0;
    }
    layer_unlock(&giving);
    return (jobjectID)(intptr_t)tag;
}

jobjectID id_of(jobject object)
{
    bool fresh;
    return id_of_new(object, &fresh);
}

/* Objects that agents ask about again and again: JVM TI finds others by looking at all tags. */
static pthread_mutex_t kept_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map kept; /* id -> jweak, of whoever keeps it */

void id_keep(jobjectID id, jweak ref)
{
    layer_lock(&kept_mutex);
    if (map_put(&kept, (uintptr_t)id, (uintptr_t)ref))
        map_remove(&kept, (uintptr_t)id);
    layer_unlock(&kept_mutex);
}

void id_drop(jobjectID id)
{
    layer_lock(&kept_mutex);
    map_remove(&kept, (uintptr_t)id);
    layer_unlock(&kept_mutex);
}

jobject object_of(JNIEnv *env, jobjectID id)
{
    jlong tag = (jlong)(intptr_t)id;
    jint n = 0;
    jobject *objects = NULL;
    layer_lock(&kept_mutex);
    const uint64_t *ref = map_get(&kept, (uint64_t)tag);
    jobject found = ref ? (*env)->NewLocalRef(env, (jobject)(uintptr_t)*ref) : NULL;
    layer_unlock(&kept_mutex);
    if (found || !tag || (*vm.ti)->GetObjectsWithTags(vm.ti, 1, &tag, &n, &objects, NULL))
        return found;
    found = n ? objects[0] : NULL;
    vm_free(objects);
    return found;
}
