/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects and their end. Allocations are seen since JDK 11 by SampledObjectAlloc with an interval of 0, before that by probes
 * (allocations.c). HotSpot tells of freed
 * tags during or after a collection, on threads of its own that may call nothing: they are queued, and one thread of the
 * layer's sends GC_START, CLASS_UNLOAD and OBJECT_FREE, GC_FINISH, so that an agent can hold a lock in between.
 */
#include "agent/loaded_classes.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "jvmpi/layouts.h"
#include "jvmpi/newborns.h"

#include <stdlib.h>
#include <string.h>

enum { ARENA = 1 };

/* ---- kinds of classes, by their ids ---- */

struct kind {
    jint is_array;      /* JVMPI_NORMAL_OBJECT ... */
    jobjectID class_id; /* as OBJECT_ALLOC has it: the element's for arrays of objects, NULL for those of primitives */
};

struct known_kind {
    jweak class;
    struct kind kind;
};

static pthread_mutex_t kinds_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map kinds; /* id of the class -> struct known_kind *, for ever: ids are not used again */

static struct kind read_kind(JNIEnv *env, jclass class, jobjectID id)
{
    struct kind k = {JVMPI_NORMAL_OBJECT, id};
    char *signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) || signature[0] != '[') {
        vm_free(signature);
        return k;
    }
    k.is_array = kind_of_signature(signature);
    k.class_id = NULL;
    vm_free(signature);
    if (k.is_array == JVMPI_CLASS) {
        jclass of_classes = (*env)->FindClass(env, "java/lang/Class");
        jmethodID ask = of_classes ? (*env)->GetMethodID(env, of_classes, "getComponentType", "()Ljava/lang/Class;") : NULL;
        jobject element = ask ? (*env)->CallObjectMethod(env, class, ask) : NULL;
        k.class_id = vm_clear_exception(env) ? NULL : id_of(element);
        (*env)->DeleteLocalRef(env, element);
        (*env)->DeleteLocalRef(env, of_classes);
    }
    return k;
}

static struct known_kind *find_kind(jobjectID id)
{
    pthread_mutex_lock(&kinds_mutex);
    const uint64_t *known = map_get(&kinds, (uintptr_t)id);
    pthread_mutex_unlock(&kinds_mutex);
    return known ? (struct known_kind *)(uintptr_t)*known : NULL;
}

/* NULL: no memory. */
static struct known_kind *learn_kind(JNIEnv *env, jclass class, jobjectID id)
{
    struct known_kind made = {layer_weak(env, class), read_kind(env, class, id)};
    struct known_kind *copy = malloc(sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = made;
    pthread_mutex_lock(&kinds_mutex);
    uint64_t *place = map_at(&kinds, (uintptr_t)id, (uintptr_t)copy, NULL);
    struct known_kind *known = place ? (struct known_kind *)(uintptr_t)*place : NULL;
    pthread_mutex_unlock(&kinds_mutex);
    if (known != copy) { /* another thread was first */
        layer_delete_weak(env, copy->class);
        free(copy);
    }
    return known;
}

/* Most allocations are of a class of which the thread has just allocated: to compare is a third of asking for its tag. */
static struct kind kind_of(JNIEnv *env, jclass class)
{
    static __thread const struct known_kind *recent[2];
    for (int i = 0; i < 2; i++)
        if (recent[i] && (*env)->IsSameObject(env, recent[i]->class, class))
            return recent[i]->kind;
    jobjectID id = id_of(class);
    const struct known_kind *known = find_kind(id);
    if (!known)
        known = learn_kind(env, class, id);
    if (!known)
        return read_kind(env, class, id);
    recent[1] = recent[0];
    recent[0] = known;
    return known->kind;
}

static void send_alloc(JNIEnv *env, jint type, struct kind k, jlong size, jobjectID id)
{
    JVMPI_Event e; /* to zero it takes long */
    e.event_type = type;
    e.u.obj_alloc.arena_id = ARENA;
    e.u.obj_alloc.class_id = k.class_id;
    e.u.obj_alloc.is_array = k.is_array;
    e.u.obj_alloc.size = (jint)size;
    e.u.obj_alloc.obj_id = id;
    notify(env, &e);
}

/* ---- allocations ---- */

static bool wanted(void)
{
    return event_enabled(JVMPI_EVENT_OBJECT_ALLOC) && atomic_load(&layer.live) && !quiet;
}

static void tell_alloc(JNIEnv *env, jclass class, jlong size, jobjectID id)
{
    quiet++; /* it may ask for an element's class */
    struct kind k = kind_of(env, class);
    quiet--;
    send_alloc(env, JVMPI_EVENT_OBJECT_ALLOC, k, size, id);
}

static void JNICALL on_vm_alloc(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object, jclass class, jlong size)
{
    bool fresh = false;
    jobjectID id = wanted() ? id_of_new(object, &fresh) : NULL;
    if (fresh) /* the VM's own allocations are told twice */
        tell_alloc(env, class, size, id);
}

/* Comes before VMObjectAlloc where both do. */
static void JNICALL on_sampled(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object, jclass class, jlong size)
{
    bool fresh = false;
    jobjectID id = wanted() ? id_of_allocated(env, object, &fresh) : NULL;
    if (fresh)
        tell_alloc(env, class, size, id);
}

void allocation(JNIEnv *env, jobject object)
{
    jlong size = 0;
    bool fresh;
    jobjectID id = id_of_new(object, &fresh);
    if (!fresh)
        return;
    jclass class = (*env)->GetObjectClass(env, object);
    (void)(*vm.ti)->GetObjectSize(vm.ti, object, &size);
    tell_alloc(env, class, size, id);
    (*env)->DeleteLocalRef(env, class);
}

static const struct vm_callbacks vm_alloc_events = {.ti = {.VMObjectAlloc = on_vm_alloc}}; /* before JDK 11 */
static const struct vm_callbacks alloc_events = {.ti = {.SampledObjectAlloc = on_sampled, .VMObjectAlloc = on_vm_alloc}};

jint enable_allocations(bool on)
{
    static bool asked;
    bool sampled = vm.have.can_generate_sampled_object_alloc_events;
    if (!on || asked)
        return 0;
    if (vm_events_on(sampled ? &alloc_events : &vm_alloc_events))
        return -1;
    asked = true;
    if (sampled && (vm.live || vm_jni()))
        (void)(*vm.ti)->ForceGarbageCollection(vm.ti); /* the threads' buffers were handed out without counting */
    return 0;
}

jint request_object_alloc(JNIEnv *env, jobjectID id)
{
    jlong size = 0;
    jobject object = object_of(env, id);
    if (!object)
        return JVMPI_FAIL;
    jclass class = (*env)->GetObjectClass(env, object);
    struct kind k = kind_of(env, class);
    (void)(*vm.ti)->GetObjectSize(vm.ti, object, &size);
    send_alloc(env, JVMPI_EVENT_OBJECT_ALLOC | JVMPI_REQUESTED_EVENT, k, size, id);
    (*env)->DeleteLocalRef(env, class);
    (*env)->DeleteLocalRef(env, object);
    return JVMPI_SUCCESS;
}

/* What was there before us. */
struct found {
    jlong id, class_id, size;
};

typedef VEC(struct found) found_vec;

static jint JNICALL on_object(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    if (*tag)
        return 0; /* classes, named already */
    *tag = next_id();
    return vec_push((found_vec *)data, ((struct found){*tag, class_tag, size})) ? JVMTI_VISIT_ABORT : 0;
}

void memory_replay(JNIEnv *env)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    found_vec found = {0};
    struct map known = {0};
    if (!event_enabled(JVMPI_EVENT_OBJECT_ALLOC) || loaded_classes(vm.ti, env, &all) < 0)
        return;
    jclass of_classes = (*env)->FindClass(env, "java/lang/Class");
    struct kind class_kind = kind_of(env, of_classes);
    for (jint i = 0; i < all.n; i++) {
        jlong size = 0;
        jobjectID id = id_of(all.of[i]);
        struct kind k = kind_of(env, all.of[i]);
        (void)(*vm.ti)->GetObjectSize(vm.ti, all.of[i], &size);
        bool itself = (*env)->IsSameObject(env, all.of[i], of_classes);
        send_alloc(env, JVMPI_EVENT_OBJECT_ALLOC, itself ? (struct kind){JVMPI_NORMAL_OBJECT, NULL} : class_kind, size, id);
        struct kind *copy = malloc(sizeof(*copy));
        if (copy) {
            *copy = k;
            if (map_put(&known, (uintptr_t)id, (uintptr_t)copy))
                free(copy);
        }
    }
    (*env)->DeleteLocalRef(env, of_classes);
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = on_object};
    ids_sweep_begin();
    (void)(*vm.ti)->IterateThroughHeap(vm.ti, 0, NULL, &callbacks, &found);
    ids_sweep_end();
    for (size_t i = 0; i < found.len; i++) {
        const uint64_t *kind = map_get(&known, (uint64_t)found.data[i].class_id);
        struct kind k = kind ? *(const struct kind *)(uintptr_t)*kind : (struct kind){JVMPI_NORMAL_OBJECT, NULL};
        send_alloc(env, JVMPI_EVENT_OBJECT_ALLOC, k, found.data[i].size, (jobjectID)(intptr_t)found.data[i].id);
    }
    uint64_t id, copy;
    for (size_t i = 0; map_next(&known, &i, &id, &copy);)
        free((void *)(uintptr_t)copy);
    map_release(&known);
    vec_release(&found);
}

/* ---- the end of objects, and collections ---- */

static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;
static VEC(jlong) freed;
static uint64_t queued, told; /* how many */
static uint64_t collections, collections_settled, collections_sent;
static jlong last_before; /* the last id that was given before the last collection */
static int gc_disabled;
static jlong sentinel; /* run_gc waits for its end */
static bool sentinel_sent, stopping, running, delivering;
static atomic_int forced; /* collections by run_gc that have not ended */

/* The mutex is held. */
static void queue(jlong id)
{
    queued++;
    if (vec_push(&freed, id)) {
        told += freed.len + 1;
        vec_clear(&freed);
    }
}

static void JNICALL on_free(jvmtiEnv *ti, jlong tag)
{
    pthread_mutex_lock(&queue_mutex);
    queue(tag);
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

void memory_ended(const jlong *ids, size_t n)
{
    if (!event_enabled(JVMPI_EVENT_OBJECT_FREE))
        return;
    pthread_mutex_lock(&queue_mutex);
    for (size_t i = 0; i < n; i++)
        queue(ids[i]);
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

static void JNICALL on_gc_finish(jvmtiEnv *ti)
{
    pthread_mutex_lock(&queue_mutex);
    collections++;
    last_before = last_id_given();
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

const struct vm_callbacks free_events = {.ti = {.ObjectFree = on_free}};
const struct vm_callbacks gc_events = {.ti = {.GarbageCollectionFinish = on_gc_finish}};

static jint JNICALL count_object(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    jlong *sum = data;
    sum[0]++;
    sum[1] += size;
    return 0;
}

static jlong total_memory(JNIEnv *env)
{
    jclass class = (*env)->FindClass(env, "java/lang/Runtime");
    jmethodID get = class ? (*env)->GetStaticMethodID(env, class, "getRuntime", "()Ljava/lang/Runtime;") : NULL;
    jobject runtime = get ? (*env)->CallStaticObjectMethod(env, class, get) : NULL;
    jmethodID total = runtime ? (*env)->GetMethodID(env, class, "totalMemory", "()J") : NULL;
    jlong bytes = total ? (*env)->CallLongMethod(env, runtime, total) : 0;
    vm_clear_exception(env);
    (*env)->DeleteLocalRef(env, runtime);
    (*env)->DeleteLocalRef(env, class);
    return bytes;
}

static void send_finish(JNIEnv *env)
{
    jlong sum[2] = {0, 0};
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = count_object};
    (void)(*vm.ti)->IterateThroughHeap(vm.ti, 0, NULL, &callbacks, sum);
    JVMPI_Event e = {.event_type = JVMPI_EVENT_GC_FINISH, .u.gc_info = {sum[0], sum[1], total_memory(env)}};
    notify(env, &e);
}

/* One bracket: all that is queued. */
static void deliver(JNIEnv *env, const jlong *ids, size_t n)
{
    JVMPI_Event start = {.event_type = JVMPI_EVENT_GC_START};
    if (event_enabled(JVMPI_EVENT_GC_START))
        notify(env, &start);
    for (size_t i = 0; i < n; i++) {
        class_freed(env, ids[i]);
        JVMPI_Event e = {.event_type = JVMPI_EVENT_OBJECT_FREE, .u.obj_free = {(jobjectID)(intptr_t)ids[i]}};
        if (event_enabled(JVMPI_EVENT_OBJECT_FREE) && ids[i] != sentinel)
            notify(env, &e);
    }
    if (event_enabled(JVMPI_EVENT_GC_FINISH))
        send_finish(env);
}

static void JNICALL deliver_all(jvmtiEnv *ti, JNIEnv *env, void *data)
{
    pthread_mutex_lock(&queue_mutex);
    while (!stopping) {
        if (collections != collections_settled) {
            jlong up_to = last_before;
            collections_settled = collections;
            pthread_mutex_unlock(&queue_mutex);
            newborns_settle(env, up_to, !atomic_load(&forced));
            pthread_mutex_lock(&queue_mutex);
            continue;
        }
        if (gc_disabled || (!freed.len && collections == collections_sent)) {
            pthread_cond_wait(&queue_changed, &queue_mutex);
            continue;
        }
        jlong *ids = freed.data;
        size_t n = freed.len;
        freed.data = NULL;
        freed.len = freed.cap = 0;
        collections_sent = collections;
        delivering = true;
        pthread_mutex_unlock(&queue_mutex);
        deliver(env, ids, n);
        pthread_mutex_lock(&queue_mutex);
        delivering = false;
        told += n;
        for (size_t i = 0; i < n; i++)
            sentinel_sent |= ids[i] == sentinel;
        free(ids);
        pthread_cond_broadcast(&queue_changed);
    }
    running = false;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

static void run_delivery(void *unused)
{
    deliver_all(vm.ti, vm_jni(), NULL);
}

int memory_start(JNIEnv *env)
{
    char name[] = "JVMPI events";
    running = true;
    if (create_system_thread(name, JVMPI_NORMAL_PRIORITY, run_delivery) == JNI_OK)
        return 0;
    running = false;
    return -1;
}

void memory_stop(void)
{
    pthread_mutex_lock(&queue_mutex);
    stopping = true;
    pthread_cond_broadcast(&queue_changed);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    while (running && !pthread_cond_timedwait(&queue_changed, &queue_mutex, &until))
        ;
    pthread_mutex_unlock(&queue_mutex);
}

void disable_gc(void)
{
    pthread_mutex_lock(&queue_mutex);
    gc_disabled++;
    pthread_mutex_unlock(&queue_mutex);
}

void enable_gc(void)
{
    pthread_mutex_lock(&queue_mutex);
    if (gc_disabled > 0)
        gc_disabled--;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_mutex);
}

/* An object that nobody holds: when its end was told of, so was that of all others. */
static void drop_sentinel(JNIEnv *env)
{
    quiet++; /* one id is enough */
    jbyteArray object = (*env)->NewByteArray(env, 1);
    quiet--;
    jlong id = next_id();
    if (!object || vm_clear_exception(env) || (*vm.ti)->SetTag(vm.ti, object, id))
        id = 0;
    (*env)->DeleteLocalRef(env, object);
    pthread_mutex_lock(&queue_mutex);
    sentinel = id;
    sentinel_sent = !id;
    pthread_mutex_unlock(&queue_mutex);
}

void run_gc(void)
{
    JNIEnv *env = vm_jni();
    bool frees = event_enabled(JVMPI_EVENT_OBJECT_FREE) || event_enabled(JVMPI_EVENT_CLASS_UNLOAD);
    if (!env || !atomic_load(&layer.live) || gc_disabled || stopping)
        return;
    if (frees)
        drop_sentinel(env);
    pthread_mutex_lock(&queue_mutex);
    uint64_t before = collections_sent;
    pthread_mutex_unlock(&queue_mutex);
    jlong up_to = last_id_given();
    atomic_fetch_add(&forced, 1);
    (void)(*vm.ti)->ForceGarbageCollection(vm.ti);
    atomic_fetch_sub(&forced, 1);
    newborns_settle(env, up_to, false);
    bool brackets = event_enabled(JVMPI_EVENT_GC_START) || event_enabled(JVMPI_EVENT_GC_FINISH);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3;
    pthread_mutex_lock(&queue_mutex);
    uint64_t to_tell = queued; /* of the newborns that are gone */
    while (running &&
           ((frees && (!sentinel_sent || told < to_tell)) || (brackets && collections_sent == before) || delivering) &&
           !pthread_cond_timedwait(&queue_changed, &queue_mutex, &until))
        ;
    pthread_mutex_unlock(&queue_mutex);
}
