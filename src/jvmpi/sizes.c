/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of objects. For an object of java.lang.Class JDK 8 answers the size of its own description
 * of the class, and not that of the object, which VMObjectAlloc and the walks of the heap have. So
 * those are read by a walk over the objects of java.lang.Class.
 */
#include "base/map.h"
#include "base/vec.h"
#include "jvmpi/layer.h"

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

jlong object_size(JNIEnv *env, jobject object, jclass class, jobjectID id)
{
    jlong size = 0;
    if (unlikely(vm.version < RIGHT_SINCE) && !mutation("class-size")) {
        jclass of_classes = boot_class(env, "java/lang/Class");
        if ((*env)->IsSameObject(env, class, of_classes)) {
            id_tag(id); /* the walk sees tags */
            size = known_size(id);
            if (!size)
                read_sizes(of_classes);
            size = size ? size : known_size(id);
        }
        (*env)->DeleteLocalRef(env, of_classes);
    }
    if (!size)
        (void)(*vm.ti)->GetObjectSize(vm.ti, object, &size);
    return size;
}

void object_size_forget(jlong id)
{
    if (vm.version >= RIGHT_SINCE)
        return;
    pthread_mutex_lock(&mutex);
    (void)map_remove(&sizes, (uint64_t)id);
    pthread_mutex_unlock(&mutex);
}
