/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds objects by id. JVM TI finds the object of a tag by examining all tags, so the time of n
 * lookups grows with n * n. After some lookups a table of all reachable objects is built, to which
 * each new tag is then added. It consists of weak references, about 50 bytes per object, up to 4
 * million of them.
 */
#include "jvmpi/lookup.h"
#include "base/map.h"
#include "base/vec.h"
#include "jvmpi/ids.h"
#include "jvmpi/layer.h"
#include "jvmpi/memory.h"
#include "jvmpi/references.h"
#include "jvmpi/threads.h"
#include "jvmpi/weak_ids.h"

enum {
    ASK_VM = 64 /* lookups before a table is built, which costs about as much */,
    MOST = 4 << 20,
    SWEEP_FIRST = 1 << 16
};

enum { PORTION = 1 << 19 /* objects for which JVM TI creates references at once */ };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map kept;  /* id -> jweak, owned by the caller of layer_id_keep */
static struct map table; /* id -> jweak */
static size_t sweep_at = SWEEP_FIRST;
static atomic_bool filling; /* the table exists or is being built */
static jlong complete_to;   /* the table has all reachable objects with ids up to this one */
static bool room = true;

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static unsigned unknown_lookups; /* protected by `making` */
static atomic_int scans;         /* left, for objects that the table lacks */

void layer_id_keep(jobjectID id, jweak ref)
{
    layer_lock(&mutex);
    if (map_put(&kept, (uintptr_t)id, (uintptr_t)ref))
        map_remove(&kept, (uintptr_t)id);
    layer_unlock(&mutex);
}

void layer_id_drop(jobjectID id)
{
    layer_lock(&mutex);
    map_remove(&kept, (uintptr_t)id);
    layer_unlock(&mutex);
}

/* ---- the table ---- */

/* Removes dead objects. Requires the mutex. */
static void sweep(JNIEnv *env)
{
    VEC(uint64_t) gone = {0};
    uint64_t id, ref;
    room = true;
    for (size_t i = 0; map_next(&table, &i, &id, &ref);)
        if ((*env)->IsSameObject(env, (jobject)(uintptr_t)ref, NULL) && !vec_push(&gone, id))
            layer_delete_weak(env, (jweak)(uintptr_t)ref);
    for (size_t i = 0; i < gone.len; i++)
        (void)map_remove(&table, gone.data[i]);
    vec_release(&gone);
    sweep_at = table.len * 2 > SWEEP_FIRST ? table.len * 2 : SWEEP_FIRST;
}

void lookup_add(jlong id, jobject object)
{
    bool added = false;
    JNIEnv *env = likely(!atomic_load(&filling)) ? NULL : vm_jni();
    jweak ref = env ? layer_weak(env, object) : NULL;
    if (!ref)
        return;
    layer_lock(&mutex);
    if (table.len >= sweep_at)
        sweep(env);
    bool listed = map_get(&table, (uint64_t)id);
    if (!listed && (table.len >= MOST || !map_at(&table, (uint64_t)id, (uintptr_t)ref, &added))) {
        room = false;
        complete_to = 0;
    }
    layer_unlock(&mutex);
    if (!added)
        layer_delete_weak(env, ref);
}

void lookup_forget(JNIEnv *env, jlong id)
{
    if (likely(!atomic_load(&filling)))
        return;
    layer_lock(&mutex);
    const uint64_t *ref = map_get(&table, (uint64_t)id);
    jweak weak = ref ? (jweak)(uintptr_t)*ref : NULL;
    if (ref)
        (void)map_remove(&table, (uint64_t)id);
    layer_unlock(&mutex);
    if (weak)
        layer_delete_weak(env, weak);
}

/* Tags each object, in an environment of its own, with the number of its portion. */
static jint JNICALL number_object(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info,
                                  jlong class_tag, jlong referrer_class_tag, jlong size, jlong *tag,
                                  jlong *referrer, jint length, void *data)
{
    jlong *n = data;
    if (!*tag)
        *tag = 1 + (*n)++ / PORTION;
    return JVMTI_VISIT_OBJECTS;
}

static bool put_portion(JNIEnv *env, jvmtiEnv *ti, jlong number)
{
    jint n = 0;
    jobject *objects = NULL;
    if ((*env)->PushLocalFrame(env, 16)) {
        vm_clear_exception(env);
        return false;
    }
    vm_expect_references(env);
    bool ok = !(*ti)->GetObjectsWithTags(ti, 1, &number, &n, &objects, NULL);
    for (jint i = 0; ok && i < n; i++) {
        jlong id = 0;
        if (!(*vm.ti)->GetTag(vm.ti, objects[i], &id) && id)
            lookup_add(id, objects[i]);
    }
    vm_free(objects);
    (*env)->PopLocalFrame(env, NULL);
    return ok;
}

/*
 * Makes the table. It lacks the objects in weak_ids.c, which has references to them; they are added
 * when they get tags.
 */
static void make_table(JNIEnv *env)
{
    jvmtiEnv *ti = NULL;
    jlong n = 0;
    jvmtiCapabilities tags = {.can_tag_objects = 1};
    jvmtiHeapCallbacks callbacks = {.heap_reference_callback = number_object};
    if ((*vm.java)->GetEnv(vm.java, (void **)&ti, JVMTI_VERSION_1_0) != JNI_OK)
        return;
    atomic_store(&filling, true);
    layer_lock(&mutex);
    sweep(env);
    layer_unlock(&mutex);
    /* up to here, an id may be reserved for an object that does not have it yet */
    ids_lock();
    jlong up_to = layer_last_id_given();
    ids_unlock();
    object_vec held = {0};
    bool shown = threads_show(env, NULL, &held);
    memory_walk_begin();
    bool ok = shown && !memory_listen(ti) && !(*ti)->AddCapabilities(ti, &tags) &&
              !(*ti)->FollowReferences(ti, 0, NULL, NULL, &callbacks, &n);
    for (jlong number = 1; ok && number <= 1 + n / PORTION; number++)
        ok = put_portion(env, ti, number);
    memory_walk_end();
    threads_hide(env, &held);
    atomic_store(&scans, ASK_VM);
    layer_lock(&mutex);
    complete_to = ok && room ? up_to : 0;
    layer_unlock(&mutex);
    (void)(*ti)->DisposeEnvironment(ti);
}

/* ---- questions ---- */

/* Sets *ret_known if the tables contain all that is known of objects with tags. */
static jobject find_in_tables(JNIEnv *env, jlong id, bool *ret_known)
{
    layer_lock(&mutex);
    const uint64_t *ref = map_get(&kept, (uint64_t)id);
    if (!ref)
        ref = map_get(&table, (uint64_t)id);
    *ret_known = ref || id <= complete_to;
    jobject found = ref ? (*env)->NewLocalRef(env, (jobject)(uintptr_t)*ref) : NULL;
    layer_unlock(&mutex);
    return found;
}

/* Sets *ret_known if nothing else needs to be searched. */
static jobject search_heap(JNIEnv *env, jlong id, bool *ret_known)
{
    jobject found = find_in_tables(env, id, ret_known);
    if (found)
        return found;
    ids_lock();
    found = weak_ids_object(env, id);
    ids_unlock();
    /* The object may have got its tag, and thereby its place in the table, in between. */
    return found ? found : find_in_tables(env, id, ret_known);
}

/*
 * Returns whether the heap may be searched for an object that the table lacks. It has ended, or,
 * which is rare, JVM TI's walk did not reach it when the table was made.
 */
static bool may_scan(void)
{
    return atomic_load(&scans) > 0 && atomic_fetch_sub(&scans, 1) > 0;
}

jobject layer_object_of(JNIEnv *env, jobjectID id)
{
    jlong tag = (jlong)(intptr_t)id;
    jint n = 0;
    bool known;
    jobject named = layer_named(id);
    if (named)
        return (*env)->NewLocalRef(env, named);
    jobject *objects = NULL;
    jobject found = tag > 0 && tag <= layer_last_id_given() ? search_heap(env, tag, &known) : NULL;
    if (found || tag <= 0 || tag > layer_last_id_given() || (known && !may_scan()))
        return found;
    layer_lock(&making);
    bool make = !known && ++unknown_lookups > ASK_VM;
    if (make) {
        make_table(env);
        unknown_lookups = 0;
    }
    layer_unlock(&making);
    if (make)
        found = search_heap(env, tag, &known);
    if (found)
        return found;
    /*
     * Search again even after making a table, because its walk does not reach everything that other
     * threads are handling.
     */
    memory_walk_begin();
    bool failed = (*vm.ti)->GetObjectsWithTags(vm.ti, 1, &tag, &n, &objects, NULL);
    memory_walk_end();
    found = !failed && n ? objects[0] : NULL;
    vm_free(objects);
    return found;
}
