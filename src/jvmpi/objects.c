/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends OBJECT_ALLOC. Since JDK 11 allocations are reported by SampledObjectAlloc with an interval
 * of 0, before that by probes (allocations.c). The objects that these miss (those that existed at
 * the start, and allocations of the JIT or the VM) are reported when an event is about to name
 * them, so that an agent with OBJECT_ALLOC enabled knows every object that is reported to it.
 */
#include "jvmpi/objects.h"
#include "agent/vm/loaded_classes.h"
#include "base/map.h"
#include "base/vec.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/buffer_gaps.h"
#include "jvmpi/classes.h"
#include "jvmpi/heap_walks.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/layer.h"
#include "jvmpi/layouts.h"
#include "jvmpi/lookup.h"
#include "jvmpi/memory.h"
#include "jvmpi/references.h"
#include "jvmpi/sizes.h"
#include "jvmpi/threads.h"
#include "jvmpi/weak_ids.h"

#include <stdlib.h>

/* ---- kinds of classes, by their ids ---- */

struct kind {
    jint is_array; /* JVMPI_NORMAL_OBJECT ... */
    /* As in OBJECT_ALLOC: the element class for arrays of objects, NULL for those of primitives. */
    jobjectID class_id;
};

struct known_kind {
    jweak class;
    jint is_array;
    atomic_bool reported; /* the class was reported */
    _Atomic(jobjectID) class_id;
    /*
     * For an array whose element class was not linked yet: the number of classes linked at that
     * time.
     */
    _Atomic uint64_t linked;
};

static pthread_mutex_t kinds_mutex = PTHREAD_MUTEX_INITIALIZER;
/* id of the class -> struct known_kind *. Entries are never freed, because ids are not reused. */
static struct map kinds;

static jobjectID element_class(JNIEnv *env, jclass class)
{
    jclass element = layer_component_class(env, class);
    jobjectID id = layer_report_class(env, element);
    (*env)->DeleteLocalRef(env, element);
    return id;
}

static struct kind read_kind(JNIEnv *env, jclass class, jobjectID id)
{
    struct kind k = {JVMPI_NORMAL_OBJECT, id};
    char *signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) || signature[0] != '[') {
        vm_free(signature);
        return k;
    }
    k.is_array = layer_kind_of_signature(signature);
    vm_free(signature);
    k.class_id = k.is_array == JVMPI_CLASS ? element_class(env, class) : NULL;
    return k;
}

static struct known_kind *find_kind(jobjectID id)
{
    pthread_mutex_lock(&kinds_mutex);
    const uint64_t *place = map_get(&kinds, (uintptr_t)id);
    /* Another thread may move the map's entries. */
    struct known_kind *known = place ? (struct known_kind *)(uintptr_t)*place : NULL;
    pthread_mutex_unlock(&kinds_mutex);
    return known;
}

/* Returns NULL when out of memory. */
static struct known_kind *learn_kind(JNIEnv *env, jclass class, jobjectID id)
{
    uint64_t linked = classes_linked();
    struct kind k = read_kind(env, class, id);
    struct known_kind *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    made->class = layer_weak(env, class);
    made->is_array = k.is_array;
    atomic_init(&made->class_id, k.class_id);
    atomic_init(&made->linked, linked);
    pthread_mutex_lock(&kinds_mutex);
    uint64_t *place = map_at(&kinds, (uintptr_t)id, (uintptr_t)made, NULL);
    struct known_kind *known = place ? (struct known_kind *)(uintptr_t)*place : NULL;
    pthread_mutex_unlock(&kinds_mutex);
    if (known != made) { /* another thread was first */
        layer_delete_weak(env, made->class);
        free(made);
    }
    return known;
}

static struct kind current_kind(JNIEnv *env, struct known_kind *known)
{
    struct kind k = {known->is_array, atomic_load_explicit(&known->class_id, memory_order_acquire)};
    if (unlikely(k.is_array == JVMPI_CLASS && !k.class_id &&
                 atomic_load(&known->linked) != classes_linked())) {
        atomic_store(&known->linked, classes_linked());
        jclass class = (*env)->NewLocalRef(env, known->class);
        k.class_id = class ? element_class(env, class) : NULL;
        atomic_store(&known->class_id, k.class_id);
        (*env)->DeleteLocalRef(env, class);
    }
    return k;
}

/*
 * Returns what the instances of a class are, and reports the class or the class of its elements.
 * Most allocations are of the same class as the thread's previous one; comparing with that takes a
 * third of the time of getting the tag.
 */
static struct kind kind_of(struct my *own, JNIEnv *env, jclass class)
{
    struct known_kind **recent = own->recent_kinds;
    for (int i = 0; i < 2; i++)
        if (recent[i] && (*env)->IsSameObject(env, recent[i]->class, class))
            return current_kind(env, recent[i]);
    jobjectID id = layer_id_of(class);
    struct known_kind *known = find_kind(id);
    if (!known)
        known = learn_kind(env, class, id);
    if (!known)
        return read_kind(env, class, id);
    if (known->is_array == JVMPI_NORMAL_OBJECT && !atomic_load(&known->reported)) {
        (void)layer_report_class(
            env,
            /* reported only when its kind is known, because java.lang.Class is its own class */
            class);
        if (flight_may_wait() && atomic_load(&layer.stage) == STAGE_OPEN)
            /*
             * Only a thread that has reported the class, or has waited for the one that reported
             * it, may set this.
             */
            atomic_store(&known->reported, true);
    }
    recent[1] = recent[0];
    recent[0] = known;
    return current_kind(env, known);
}

/* object may be NULL when the caller has no reference to it. */
static void send_alloc(struct my *own, JNIEnv *env, jint type, struct kind k, jlong size,
                       jobjectID id, jobject object)
{
    JVMPI_Event e; /* zeroing it would take long */
    e.event_type = type;
    e.u.obj_alloc.arena_id = LAYER_ARENA;
    /*
     * java.lang.Class has no class here, because an agent that requests the class of each class
     * would not terminate.
     */
    e.u.obj_alloc.class_id =
        k.class_id == id && !layer_mutation("class-of-class") ? NULL : k.class_id;
    if (e.u.obj_alloc.class_id && layer_mutation_eighth("other-class"))
        e.u.obj_alloc.class_id = layer_id_of(boot_class(env, "java/lang/Object"));
    e.u.obj_alloc.is_array = k.is_array;
    e.u.obj_alloc.size = (jint)size;
    e.u.obj_alloc.obj_id = id;
    layer_notify_naming_as(own, env, &e, id, object);
}

/* ---- allocations ---- */

static inline __attribute__((always_inline)) bool wanted(const struct my *own, JNIEnv *env)
{
    return layer_enabled(JVMPI_EVENT_OBJECT_ALLOC) && atomic_load(&layer.live) && !own->quiet &&
           thread_ready(own, env);
}

static struct kind quiet_kind_of(struct my *own, JNIEnv *env, jclass class)
{
    own->quiet++; /* the agent may request an element's class */
    struct kind k = kind_of(own, env, class);
    own->quiet--;
    return k;
}

static jlong size_of(JNIEnv *env, jobject object, const struct kind *k, jobjectID id)
{
    return layer_object_size(env, object, k->is_array == JVMPI_NORMAL_OBJECT ? k->class_id : NULL,
                             id);
}

static void report_alloc(struct my *own, JNIEnv *env, jobject object, jclass class, jlong size,
                         jobjectID id)
{
    struct kind k = quiet_kind_of(own, env, class);
    send_alloc(own, env, JVMPI_EVENT_OBJECT_ALLOC, k, size, id, object);
}

/*
 * In a callback, -Xcheck:jni of JDK 8 and 11 counts the references of the surrounding code as well.
 * The layer has many while it answers requests or replays events.
 */
static void expect_references(const struct my *own, JNIEnv *env)
{
    if (unlikely(own->asked || own->replayer))
        vm_expect_references(env);
}

static void JNICALL on_vm_alloc(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
                                jclass class, jlong size)
{
    bool unreported = false;
    struct flight f = {0};
    struct my *own = my_own();
    expect_references(own, env);
    if (!wanted(own, env) || !layer_report_begin(own))
        return;
    jobjectID id = id_to_report(object, false, &f, &unreported);
    if (unreported) /* the VM's own allocations are reported twice */
        report_alloc(own, env, object, class, size, id);
    flight_end(&f);
    layer_report_end(own);
}

enum { NO_GAPS_SINCE = 17 };

/* If both are sent, this event precedes VMObjectAlloc. */
static void JNICALL on_sampled(jvmtiEnv *ti, JNIEnv *env, jthread thread, jobject object,
                               jclass class, jlong size)
{
    bool unreported = false;
    struct flight f = {0};
    struct my *own = my_own();
    expect_references(own, env);
    if (unlikely(vm.version < NO_GAPS_SINCE) && buffer_gap_closed(env, object, size))
        return;
    if (!wanted(own, env) || !layer_report_begin(own))
        return;
    jobjectID id = id_of_allocated(own, env, object, &f, &unreported);
    if (unreported)
        report_alloc(own, env, object, class, size, id);
    flight_end(&f);
    layer_report_end(own);
}

static jobjectID report_as(JNIEnv *env, jobject object, bool unshared)
{
    bool unreported;
    struct flight f = {0};
    struct my *own = my_own();
    if (!layer_enabled(JVMPI_EVENT_OBJECT_ALLOC) || !atomic_load(&layer.live) ||
        !thread_ready(own, env))
        return layer_id_of(object);
    if (!layer_report_begin(own))
        return id_given(object);
    jobjectID id = id_to_report(object, unshared, &f, &unreported);
    if (unreported) {
        jclass class = (*env)->GetObjectClass(env, object);
        struct kind k = quiet_kind_of(own, env, class);
        send_alloc(own, env, JVMPI_EVENT_OBJECT_ALLOC, k, size_of(env, object, &k, id), id, object);
        flight_end(&f);
        (*env)->DeleteLocalRef(env, class);
    }
    layer_report_end(own);
    return id;
}

jobjectID layer_report_object(JNIEnv *env, jobject object)
{
    return report_as(env, object, false);
}

jobjectID layer_report_new_object(JNIEnv *env, jobject object)
{
    return report_as(env, object, true);
}

/* These events are used before JDK 11. */
static const struct vm_callbacks vm_alloc_events = {.ti = {.VMObjectAlloc = on_vm_alloc}};
static const struct vm_callbacks alloc_events = {
    .ti = {.SampledObjectAlloc = on_sampled, .VMObjectAlloc = on_vm_alloc}};

jint layer_enable_allocations(bool on)
{
    static bool begun;
    bool sampled = vm.have.can_generate_sampled_object_alloc_events;
    if (!on || begun)
        return 0;
    if (vm_events_on(sampled ? &alloc_events : &vm_alloc_events))
        return -1;
    begun = true;
    if (atomic_load(&layer.live))
        layer_allocations_see_all();
    return 0;
}

void layer_allocations_see_all(void)
{
    if (vm.have.can_generate_sampled_object_alloc_events) {
        heap_walk_begin();
        (void)(*vm.ti)->ForceGarbageCollection(vm.ti);
        heap_walk_end();
    }
}

void layer_request_in_flight(JNIEnv *env, jobjectID id)
{
    if (layer_enabled(JVMPI_EVENT_OBJECT_ALLOC) && flight_elsewhere((uintptr_t)id))
        (void)layer_request_object_alloc(env, id);
}

int layer_found_compare(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static bool request_dumped(JNIEnv *env, jobjectID id)
{
    const struct found key = {.id = (jlong)(intptr_t)id};
    const found_vec *all = my.dumped ? &my.dumped->objects : NULL;
    const struct found *f =
        all && all->len ? bsearch(&key, all->data, all->len, sizeof(key), layer_found_compare)
                        : NULL;
    struct known_kind *known = f ? find_kind((jobjectID)(intptr_t)f->class_id) : NULL;
    if (!known)
        return false;
    send_alloc(my_own(), env, JVMPI_EVENT_OBJECT_ALLOC | JVMPI_REQUESTED_EVENT,
               current_kind(env, known), f->size, id, NULL);
    return true;
}

jint layer_request_object_alloc(JNIEnv *env, jobjectID id)
{
    struct flight f = {0};
    if (request_dumped(env, id))
        return JVMPI_SUCCESS;
    jobject object = layer_object_of(env, id);
    if (!object)
        return JVMPI_FAIL;
    jclass class = (*env)->GetObjectClass(env, object);
    struct kind k = quiet_kind_of(my_own(), env, class);
    jlong size = size_of(env, object, &k, id);
    (void)id_claim((jlong)(intptr_t)id, &f);
    send_alloc(my_own(), env, JVMPI_EVENT_OBJECT_ALLOC | JVMPI_REQUESTED_EVENT, k, size, id,
               object);
    flight_end(&f);
    (*env)->DeleteLocalRef(env, class);
    (*env)->DeleteLocalRef(env, object);
    return JVMPI_SUCCESS;
}

/* ---- objects found by a heap walk ---- */

void layer_report_found(JNIEnv *env, const found_vec *found)
{
    struct my *own = my_own();
    for (size_t i = 0; i < found->len; i++) {
        const struct found *f = &found->data[i];
        struct known_kind *known = find_kind((jobjectID)(intptr_t)f->class_id);
        struct flight flight = {0};
        if (!known || !layer_enabled(JVMPI_EVENT_OBJECT_ALLOC) || !layer_report_begin(own))
            continue;
        if (id_claim(f->id, &flight) && !layer_mutation("unreported-object"))
            for (int times = layer_mutation("reported-twice") ? 2 : 1; times > 0; times--)
                send_alloc(own, env, JVMPI_EVENT_OBJECT_ALLOC, current_kind(env, known), f->size,
                           (jobjectID)(intptr_t)f->id, NULL);
        flight_end(&flight);
        layer_report_end(own);
    }
}

void layer_kind_learn(JNIEnv *env, jclass class)
{
    (void)quiet_kind_of(my_own(), env, class);
}

void layer_report_unreported(JNIEnv *env)
{
    jlong *ids;
    size_t n = ids_unreported(&ids);
    for (size_t i = 0; i < n; i++) {
        jobject object = layer_object_of(env, (jobjectID)(intptr_t)ids[i]);
        (void)layer_report_object(env, object);
        (*env)->DeleteLocalRef(env, object);
    }
    free(ids);
}

struct layer_living_walk {
    int (*visit)(jlong class_id, jlong size, jlong *id, void *data);
    void *data;
    bool failed;
};

static jint JNICALL on_reference(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info,
                                 jlong class_tag, jlong referrer_class_tag, jlong size, jlong *tag,
                                 jlong *referrer, jint length, void *data)
{
    struct layer_living_walk *w = data;
    w->failed = w->visit(class_tag, size, tag, w->data) != 0;
    return w->failed ? JVMTI_VISIT_ABORT : JVMTI_VISIT_OBJECTS;
}

bool layer_living_walk(int (*visit)(jlong class_id, jlong size, jlong *id, void *data), void *data)
{
    struct layer_living_walk w = {visit, data, false};
    jvmtiHeapCallbacks callbacks = {.heap_reference_callback = on_reference};
    memory_walk_begin();
    bool ok = !(*vm.ti)->FollowReferences(vm.ti, 0, NULL, NULL, &callbacks, &w) && !w.failed;
    memory_walk_end();
    return ok;
}

struct replay {
    struct map classes; /* ids of classes that are defined */
    struct map strange; /* ids of others that have objects */
    found_vec found;
};

static int replay_object(jlong class_id, jlong size, jlong *id, void *data)
{
    struct replay *r = data;
    if (*id || !class_id)
        return 0;
    if (!map_get(&r->classes, (uint64_t)class_id))
        return map_put(&r->strange, (uint64_t)class_id, 1);
    *id = layer_next_id();
    return vec_push(&r->found, ((struct found){*id, class_id, size}));
}

/* Visits all classes, and the objects of those that are defined. */
static void replay_once(JNIEnv *env, struct replay *r)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (loaded_classes(vm.ti, env, &all) < 0)
        return;
    map_clear(&r->strange);
    for (jint i = 0; i < all.n; i++) {
        jobjectID id = layer_report_object(env, all.of[i]);
        if (!layer_class_is_defined(all.of[i]))
            continue;
        layer_kind_learn(env, all.of[i]);
        (void)!map_put(&r->classes, (uintptr_t)id, 1);
    }
    ids_sweep_begin();
    ids_walk_begin();
    (void)!layer_living_walk(replay_object, r);
    ids_walk_end(&r->found);
    ids_sweep_end();
    layer_report_found(env, &r->found);
    vec_clear(&r->found);
}

void layer_memory_replay(JNIEnv *env)
{
    struct replay r = {0};
    if (!layer_enabled(JVMPI_EVENT_OBJECT_ALLOC))
        return;
    replay_once(env, &r);
    if (r.strange.len && classes_link(env, &r.strange))
        replay_once(env, &r);
    map_release(&r.classes);
    map_release(&r.strange);
    vec_release(&r.found);
}
