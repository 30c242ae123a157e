/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/heap_counts.h"
#include "jvmpi/heap_walks.h"
#include "jvmpi/layer.h"

#include "agent/vm/flags.h"

/*
 * A collection has up to four pauses, and JVM TI reports each of them as a collection. Between two
 * counts there are whole collections, which can unload the classes that a count has kept.
 */
enum { CALLS_BETWEEN = 16, RIGHT_SINCE = 21 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct heap_counts last; /* protected by the mutex, like `calls` */
static unsigned calls;          /* since the last count; 0: never counted */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool keeps;

static void find_collector(void)
{
    keeps = vm.version < RIGHT_SINCE && (vm_flag("UseZGC") || vm_flag("UseShenandoahGC"));
}

bool heap_count_keeps_classes(void)
{
    pthread_once(&once, find_collector);
    return keeps;
}

static jint JNICALL count_object(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    struct heap_counts *c = data;
    c->objects++;
    c->bytes += size;
    return 0;
}

void heap_count(void)
{
    struct heap_counts c = {0, 0};
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = count_object};
    heap_walk_begin();
    (void)(*vm.ti)->IterateThroughHeap(vm.ti, 0, NULL, &callbacks, &c);
    heap_walk_end();
    pthread_mutex_lock(&mutex);
    last = c;
    calls = 1;
    pthread_mutex_unlock(&mutex);
}

struct heap_counts heap_counts_after_collection(void)
{
    pthread_mutex_lock(&mutex);
    bool old = calls == 0 || calls++ >= CALLS_BETWEEN || !heap_count_keeps_classes();
    pthread_mutex_unlock(&mutex);
    if (old)
        heap_count();
    pthread_mutex_lock(&mutex);
    struct heap_counts c = last;
    pthread_mutex_unlock(&mutex);
    return c;
}
