/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines the sizes of objects. For an object of java.lang.Class, GetObjectSize of JDK 8 returns
 * the size of the VM's description of the class instead of the size of the object, which
 * VMObjectAlloc and heap walks report. The object holds the class's static variables after the
 * fields that all objects of java.lang.Class have, so its size can be computed from these. This is
 * checked once with the loaded classes. Where it does not hold, and for classes that are not
 * linked, a walk over the objects of java.lang.Class reads the size. GetObjectSize is right where
 * there is no description: for primitive types, and for the second object that a redefinition
 * creates, which belongs to no class afterwards and looks like that of void.
 */
#include "jvmpi/sizes.h"
#include "agent/vm/loaded_classes.h"
#include "base/map.h"
#include "base/vec.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/layer.h"
#include "jvmpi/memory.h"
#include "jvmpi/references.h"

#include <stdlib.h>

enum { RIGHT_SINCE = 11 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map sizes; /* id of a class -> size of its object */

struct class_size {
    jlong id, size;
};

typedef VEC(struct class_size) size_vec;

static jint JNICALL on_class(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    size_vec *all = data;
    return *tag && vec_push(all, ((struct class_size){*tag, size})) ? JVMTI_VISIT_ABORT : 0;
}

static void read_sizes(jclass of_classes)
{
    size_vec all = {0};
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = on_class};
    memory_walk_begin();
    (void)(*vm.ti)->IterateThroughHeap(vm.ti, 0, of_classes, &callbacks, &all);
    memory_walk_end();
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < all.len; i++)
        (void)!map_put(&sizes, (uint64_t)all.data[i].id, (uint64_t)all.data[i].size);
    pthread_mutex_unlock(&mutex);
    vec_release(&all);
}

static jlong known_size(jobjectID id)
{
    pthread_mutex_lock(&mutex);
    const uint64_t *known = map_get(&sizes, (uintptr_t)id);
    jlong size = known ? (jlong)*known : 0;
    pthread_mutex_unlock(&mutex);
    return size;
}

static jlong size_by_walk(jobjectID id, jclass of_classes)
{
    jlong size = known_size(id);
    if (size)
        return size;
    id_tag(id); /* the walk sees tags */
    read_sizes(of_classes);
    return known_size(id);
}

/* ---- what follows from the static variables ---- */

static struct {
    bool tried, holds;
    jlong base;      /* size without static variables */
    jlong reference; /* size of a reference */
} rule;

static pthread_mutex_t trying = PTHREAD_MUTEX_INITIALIZER;

/* Numbers of static variables, by their sizes. */
struct statics {
    jlong references, longs, ints, shorts, bytes;
};

static void count_static(struct statics *s, char type)
{
    s->references += type == 'L' || type == '[';
    s->longs += type == 'J' || type == 'D';
    s->ints += type == 'I' || type == 'F';
    s->shorts += type == 'S' || type == 'C';
    s->bytes += type == 'B' || type == 'Z';
}

/* Returns false for classes that are not linked. */
static bool statics_of(jclass class, struct statics *ret)
{
    enum { STATIC = 8 };

    jint n = 0;
    jfieldID *ids = NULL;
    *ret = (struct statics){0};
    if ((*vm.ti)->GetClassFields(vm.ti, class, &n, &ids))
        return false;
    for (jint i = 0; i < n; i++) {
        jint modifiers = 0;
        char *signature = NULL;
        (void)(*vm.ti)->GetFieldModifiers(vm.ti, class, ids[i], &modifiers);
        if (modifiers & STATIC &&
            !(*vm.ti)->GetFieldName(vm.ti, class, ids[i], NULL, &signature, NULL))
            count_static(ret, signature[0]);
        vm_free(signature);
    }
    vm_free(ids);
    return true;
}

static jlong align_8(jlong n)
{
    return (n + 7) & ~(jlong)7;
}

/*
 * Computes a size by the rule that references come first, then the others by their sizes, the
 * largest first.
 */
static jlong size_by_rule(const struct statics *s, jlong base, jlong reference)
{
    jlong at = s->references * reference;
    if (s->longs)
        at = align_8(at);
    return base + align_8(at + s->longs * 8 + s->ints * 4 + s->shorts * 2 + s->bytes);
}

static jint JNICALL on_numbered(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    if (*tag)
        ((jlong *)data)[*tag - 1] = size;
    return 0;
}

/* Finds the sizes of some class objects, in an environment whose tags are their numbers. */
static bool walk_classes(const struct loaded_classes *all, jclass of_classes, jlong *sizes_of)
{
    jvmtiEnv *ti = NULL;
    jvmtiCapabilities tags = {.can_tag_objects = 1};
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = on_numbered};
    if ((*vm.java)->GetEnv(vm.java, (void **)&ti, JVMTI_VERSION_1_0) != JNI_OK)
        return false;
    bool ok = !(*ti)->AddCapabilities(ti, &tags);
    for (jint i = 0; ok && i < all->n; i++)
        ok = !(*ti)->SetTag(ti, all->of[i], i + 1);
    memory_walk_begin();
    ok = ok && !(*ti)->IterateThroughHeap(ti, 0, of_classes, &callbacks, sizes_of);
    memory_walk_end();
    (void)(*ti)->DisposeEnvironment(ti);
    return ok;
}

/*
 * Returns whether the rule gives the sizes that the walk has found; `base` is the smallest of them.
 */
static bool rule_fits(const struct loaded_classes *all, const jlong *found, jlong base,
                      jlong reference)
{
    struct statics s;
    bool fits = true;
    for (jint i = 0; fits && i < all->n; i++)
        fits = !found[i] || !statics_of(all->of[i], &s) ||
               size_by_rule(&s, base, reference) == found[i];
    return fits;
}

static void try_rule(JNIEnv *env, jclass of_classes)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    jlong *found = loaded_classes(vm.ti, env, &all) < 0 ? NULL : calloc((size_t)all.n + 1, 8);
    bool ok = found && walk_classes(&all, of_classes, found);
    for (jint i = 0; ok && i < all.n; i++)
        if (found[i] && (!rule.base || found[i] < rule.base))
            rule.base = found[i];
    for (rule.reference = 4; ok && !rule.holds && rule.reference <= 8; rule.reference *= 2)
        if ((rule.holds = rule.base && rule_fits(&all, found, rule.base, rule.reference)))
            break;
    free(found);
}

/* Returns the size of a class object by the rule, or 0 if the rule does not apply. */
static jlong size_from_statics(JNIEnv *env, jclass class, jclass of_classes)
{
    struct statics s;
    layer_lock(&trying);
    if (!rule.tried)
        try_rule(env, of_classes);
    rule.tried = true;
    layer_unlock(&trying);
    return rule.holds && statics_of(class, &s) ? size_by_rule(&s, rule.base, rule.reference) : 0;
}

static bool is_described(jclass class)
{
    jint status = 0;
    return !(*vm.ti)->GetClassStatus(vm.ti, class, &status) &&
           !(status & JVMTI_CLASS_STATUS_PRIMITIVE);
}

static jlong class_object_size(JNIEnv *env, jclass object, jobjectID id)
{
    jclass of_classes = boot_class(env, "java/lang/Class");
    jlong size = size_from_statics(env, object, of_classes);
    size = size ? size : size_by_walk(id, of_classes);
    (*env)->DeleteLocalRef(env, of_classes);
    return size;
}

/*
 * Returns whether this is the id of java.lang.Class. It is called for each object, so it makes no
 * call of the VM.
 */
static bool is_of_classes(JNIEnv *env, jobjectID class_id)
{
    static _Atomic(jobjectID) of_classes;
    if (unlikely(!atomic_load(&of_classes))) {
        jclass class = boot_class(env, "java/lang/Class");
        atomic_store(&of_classes, layer_id_of(class));
        (*env)->DeleteLocalRef(env, class);
    }
    return class_id && class_id == atomic_load(&of_classes);
}

jlong layer_object_size(JNIEnv *env, jobject object, jobjectID class_id, jobjectID id)
{
    jlong size = 0;
    if (vm.version < RIGHT_SINCE && unlikely(is_of_classes(env, class_id)) &&
        !layer_mutation("class-size") && is_described(object))
        size = class_object_size(env, object, id);
    if (!size)
        (void)(*vm.ti)->GetObjectSize(vm.ti, object, &size);
    return size;
}

void layer_object_size_forget(jlong id)
{
    if (vm.version >= RIGHT_SINCE)
        return;
    pthread_mutex_lock(&mutex);
    (void)map_remove(&sizes, (uint64_t)id);
    pthread_mutex_unlock(&mutex);
}
