/* SPDX-License-Identifier: Apache-2.0 */
/* Object ids are tags, but those of the newest objects (newborns.c). */
#include "base/map.h"
#include "jvmpi/newborns.h"

static _Atomic jlong last_id;
static pthread_mutex_t giving = PTHREAD_MUTEX_INITIALIZER; /* two threads must not name one object twice */

void ids_lock(void)
{
    layer_lock(&giving);
}

void ids_unlock(void)
{
    layer_unlock(&giving);
}

jlong next_ids(jlong n)
{
    return atomic_fetch_add(&last_id, n) + 1;
}

jlong next_id(void)
{
    return next_ids(1);
}

jlong last_id_given(void)
{
    return atomic_load(&last_id);
}

/* The lock is held. The object's tag, given now if it has none; 0: the VM refuses. */
static jlong give(jobject object, bool may_be_newborn, bool *ret_new)
{
    jlong tag = 0;
    if ((*vm.ti)->GetTag(vm.ti, object, &tag) || tag)
        return tag;
    if (may_be_newborn)
        tag = newborn_find(object);
    if (tag)
        return tag;
    tag = next_id();
    *ret_new = true;
    return (*vm.ti)->SetTag(vm.ti, object, tag) ? 0 : tag;
}

jobjectID id_of_new(jobject object, bool *ret_new)
{
    jlong tag = 0;
    *ret_new = false;
    if (!object || (*vm.ti)->GetTag(vm.ti, object, &tag))
        return NULL;
    if (!tag) {
        ids_lock();
        tag = give(object, true, ret_new);
        ids_unlock();
    }
    return (jobjectID)(intptr_t)tag;
}

void ids_sweep_begin(void)
{
    ids_lock();
    newborns_sweep_begin();
    ids_unlock();
}

void ids_sweep_end(void)
{
    ids_lock();
    newborns_sweep_end();
    ids_unlock();
}

jobjectID id_of_allocated(JNIEnv *env, jobject object, bool *ret_new)
{
    jobjectID id = newborn_id(env, object);
    *ret_new = id != NULL;
    if (!id) {
        ids_lock();
        id = (jobjectID)(intptr_t)give(object, false, ret_new);
        ids_unlock();
    }
    return id;
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
    if (!found && tag) {
        ids_lock();
        found = newborn_object(env, tag);
        ids_unlock();
    }
    if (found || !tag || (*vm.ti)->GetObjectsWithTags(vm.ti, 1, &tag, &n, &objects, NULL))
        return found;
    found = n ? objects[0] : NULL;
    vm_free(objects);
    return found;
}
