/* SPDX-License-Identifier: Apache-2.0 */
/* Object ids are tags, except for the newest objects (weak_ids.c). */
#include "jvmpi/ids.h"
#include "base/map.h"
#include "jvmpi/layer.h"
#include "jvmpi/lookup.h"
#include "jvmpi/weak_ids.h"

#include <stdlib.h>

static _Atomic jlong last_id;
/* Prevents two threads from giving ids to the same object. */
static pthread_mutex_t giving = PTHREAD_MUTEX_INITIALIZER;

void ids_lock(void)
{
    layer_lock(&giving);
}

void ids_unlock(void)
{
    layer_unlock(&giving);
}

jlong layer_next_ids(jlong n)
{
    return atomic_fetch_add(&last_id, n) + 1;
}

jlong layer_next_id(void)
{
    return layer_next_ids(1);
}

jlong layer_last_id_given(void)
{
    return atomic_load(&last_id);
}

/*
 * Ids that OBJECT_ALLOC, while enabled, has yet to report, for example those given in an answer or
 * by a heap walk. The thread that takes an id out of the map reports it. The number is also
 * positive while a walk is in progress.
 */
static struct map unreported; /* protected by `giving` */
static atomic_int n_unreported;

/* Called before the object has its id, so that any thread that sees the id finds it unreported. */
static void put_unreported(jlong id)
{
    bool added = false;
    if (layer_enabled(JVMPI_EVENT_OBJECT_ALLOC) && map_at(&unreported, (uint64_t)id, 1, &added) &&
        added)
        atomic_fetch_add(&n_unreported, 1);
}

/* Requires the lock. Enters the id in f unless f is NULL. */
static bool take_unreported(jlong id, struct flight *f)
{
    bool is = map_get(&unreported, (uint64_t)id);
    if (is && f)
        /* Enter it before it leaves the map, because others check without the lock. */
        flight_enter(f, (uintptr_t)id);
    if (is) {
        map_remove(&unreported, (uint64_t)id);
        atomic_fetch_sub(&n_unreported, 1);
    }
    return is;
}

/*
 * Requires the lock. Returns the object's id, assigning one if it has none, or 0 if the VM refuses.
 * An id that has to be reported is entered in f, or added to the unreported ids if f is NULL.
 */
static jlong give(jobject object, bool may_have_weak_id, bool unshared, struct flight *f,
                  bool *ret_unreported)
{
    jlong tag = 0;
    if ((*vm.ti)->GetTag(vm.ti, object, &tag))
        return 0;
    if (!tag && may_have_weak_id)
        tag = weak_ids_find(object);
    if (tag) {
        *ret_unreported = f && take_unreported(tag, f);
        return tag;
    }
    tag = layer_next_id();
    *ret_unreported = f;
    if (!f)
        put_unreported(tag);
    else if (!unshared)
        flight_enter(f, (uintptr_t)tag);
    if ((*vm.ti)->SetTag(vm.ti, object, tag)) {
        (void)take_unreported(tag, NULL);
        if (f)
            flight_end(f);
        *ret_unreported = false;
        return 0;
    }
    lookup_add(tag, object);
    return tag;
}

jobjectID id_to_report(jobject object, bool unshared, struct flight *f, bool *ret_unreported)
{
    jlong tag = 0;
    *ret_unreported = false;
    /* An object that no other thread has seen has no id, unless the VM itself allocated it. */
    if (!object || (!unshared && (*vm.ti)->GetTag(vm.ti, object, &tag)))
        return NULL;
    if (!tag || unlikely(atomic_load(&n_unreported) > 0)) {
        ids_lock();
        tag = give(object, true, unshared, f, ret_unreported);
        ids_unlock();
    }
    if (!*ret_unreported)
        flight_wait((uintptr_t)tag);
    return (jobjectID)(intptr_t)tag;
}

bool id_claim(jlong id, struct flight *f)
{
    bool is = false;
    if (atomic_load(&n_unreported) > 0) {
        ids_lock();
        is = take_unreported(id, f);
        ids_unlock();
    }
    if (!is)
        flight_wait((uintptr_t)id);
    return is;
}

size_t ids_unreported(jlong **ret)
{
    size_t n = 0;
    uint64_t id, unused;
    *ret = NULL;
    if (!atomic_load(&n_unreported))
        return 0;
    ids_lock();
    *ret = calloc(unreported.len + 1, sizeof(**ret));
    for (size_t i = 0; *ret && map_next(&unreported, &i, &id, &unused);)
        (*ret)[n++] = (jlong)id;
    ids_unlock();
    return n;
}

void ids_sweep_begin(void)
{
    ids_lock();
    weak_ids_sweep_begin();
    ids_unlock();
}

void ids_sweep_end(void)
{
    ids_lock();
    weak_ids_sweep_end();
    ids_unlock();
}

void ids_walk_begin(void)
{
    atomic_fetch_add(&n_unreported,
                     1); /* any thread that sees an id from now on waits for the lock */
    ids_lock();
    my.quiet++; /* the VM creates objects for the walk, and their events would need the lock */
}

bool ids_walk_unreported(jlong id)
{
    return unreported.len > 0 && map_get(&unreported, (uint64_t)id);
}

void ids_walk_end(const found_vec *found)
{
    for (size_t i = 0; i < found->len; i++)
        put_unreported(found->data[i].id);
    my.quiet--;
    ids_unlock();
    atomic_fetch_sub(&n_unreported, 1);
}

jobjectID id_of_allocated(struct my *own, JNIEnv *env, jobject object, struct flight *f,
                          bool *ret_unreported)
{
    jobjectID id = weak_ids_add(own, env, object);
    *ret_unreported = id != NULL;
    if (!id) {
        ids_lock();
        id = (jobjectID)(intptr_t)give(object, false, false, f, ret_unreported);
        ids_unlock();
        if (!*ret_unreported)
            flight_wait((uintptr_t)id);
    }
    return id;
}

jlong id_give(jobject object)
{
    bool unused;
    ids_lock();
    jlong id = give(object, false, false, NULL, &unused);
    ids_unlock();
    return id;
}

void id_tag(jobjectID id)
{
    ids_lock();
    weak_ids_tag(vm_jni(), (jlong)(intptr_t)id);
    ids_unlock();
}

jobjectID id_given(jobject object)
{
    jlong tag = 0;
    bool has = object && !(*vm.ti)->GetTag(vm.ti, object, &tag);
    return has ? (jobjectID)(intptr_t)tag : NULL;
}

jobjectID layer_id_of(jobject object)
{
    jlong tag = 0;
    bool unused;
    if (!object || (*vm.ti)->GetTag(vm.ti, object, &tag) || tag)
        return (jobjectID)(intptr_t)tag;
    ids_lock();
    tag = give(object, true, false, NULL, &unused);
    ids_unlock();
    return (jobjectID)(intptr_t)tag;
}
