/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/virtual_list.h"

#include <errno.h>
#include <string.h>

enum { CONTAINERS_DEEP = 64 };

struct listing {
    JNIEnv *jni;
    jmethodID threads, children, count, to_array;
    jfieldID tid;
    /* a root container that counts virtual threads without listing them; may be NULL */
    jclass counting;
    void (*visit)(const struct existing_virtual *v, void *arg);
    void *arg;
    uint64_t visited, left;
    bool failed;
};

const struct thread *virtual_thread_carrier(JNIEnv *jni, jthread thread)
{
    static jfieldID carrier_field, tid_field;
    if (!carrier_field) {
        tid_field = vm_field(jni, "java/lang/Thread", "tid", "J");
        if (tid_field)
            carrier_field =
                vm_field(jni, "java/lang/VirtualThread", "carrierThread", "Ljava/lang/Thread;");
    }
    jobject on = carrier_field ? (*jni)->GetObjectField(jni, thread, carrier_field) : NULL;
    if (!on)
        return NULL;
    uint64_t id = (uint64_t)(*jni)->GetLongField(jni, on, tid_field);
    (*jni)->DeleteLocalRef(jni, on);
    for (struct thread *t = NULL; (t = threads_next(t));)
        if (t->java_id == id)
            return t;
    return NULL;
}

/* JNI 21's IsVirtualThread, which older headers lack. */
bool thread_is_virtual(JNIEnv *jni, jthread thread)
{
    typedef jboolean(JNICALL * is_virtual_thread)(JNIEnv *, jobject);
    if (!thread || vm.version < 21)
        return false;
    is_virtual_thread f = (is_virtual_thread)((void *const *)*jni)[234];
    return f(jni, thread);
}

bool virtual_threads_may_exist(JNIEnv *jni)
{
    bool known;
    jint status = 0;
    if (vm.version < 21)
        return false;
    jclass c = vm_loaded_boot_class(jni, "java/lang/BaseVirtualThread", &known);
    if (c && (*vm.ti)->GetClassStatus(vm.ti, c, &status) != JVMTI_ERROR_NONE)
        known = false;
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return !known || status & JVMTI_CLASS_STATUS_INITIALIZED;
}

/* Returns the elements of a container's stream of threads or containers, or NULL on failure. */
static jobjectArray array_of(struct listing *l, jobject container, jmethodID stream_of)
{
    JNIEnv *jni = l->jni;
    jobject stream = (*jni)->CallObjectMethod(jni, container, stream_of);
    bool threw = vm_clear_exception(jni);
    jobjectArray array =
        stream && !threw ? (*jni)->CallObjectMethod(jni, stream, l->to_array) : NULL;
    if (vm_clear_exception(jni))
        array = NULL;
    if (stream)
        (*jni)->DeleteLocalRef(jni, stream);
    l->failed = l->failed || !array;
    return array;
}

static void visit_one(struct listing *l, jthread thread)
{
    JNIEnv *jni = l->jni;
    if (!thread_is_virtual(jni, thread))
        return;
    if (l->visited == VIRTUAL_LISTED_MAX) {
        l->left++;
        return;
    }
    l->visited++;
    struct existing_virtual v = {.thread = thread,
                                 .id = (uint64_t)(*jni)->GetLongField(jni, thread, l->tid),
                                 .carrier = virtual_thread_carrier(jni, thread)};
    l->visit(&v, l->arg);
}

static void visit_container(struct listing *l, jobject container, int depth)
{
    JNIEnv *jni = l->jni;
    jobjectArray threads = array_of(l, container, l->threads);
    jsize n = threads ? (*jni)->GetArrayLength(jni, threads) : 0;
    for (jsize i = 0; i < n; i++) {
        jobject one = (*jni)->GetObjectArrayElement(jni, threads, i);
        visit_one(l, one);
        (*jni)->DeleteLocalRef(jni, one);
    }
    if (l->counting && (*jni)->IsInstanceOf(jni, container, l->counting)) {
        jlong all = (*jni)->CallLongMethod(jni, container, l->count);
        if (!vm_clear_exception(jni) && all > n)
            l->left += (uint64_t)(all - n);
    }
    jobjectArray children = depth < CONTAINERS_DEEP ? array_of(l, container, l->children) : NULL;
    n = children ? (*jni)->GetArrayLength(jni, children) : 0;
    for (jsize i = 0; i < n; i++) {
        jobject one = (*jni)->GetObjectArrayElement(jni, children, i);
        visit_container(l, one, depth + 1);
        (*jni)->DeleteLocalRef(jni, one);
    }
    if (threads)
        (*jni)->DeleteLocalRef(jni, threads);
    if (children)
        (*jni)->DeleteLocalRef(jni, children);
}

static jobject find_root(struct listing *l)
{
    static const char container[] = "jdk/internal/vm/ThreadContainer";
    static const char stream[] = "()Ljava/util/stream/Stream;";
    JNIEnv *jni = l->jni;
    l->threads = vm_method(jni, container, "threads", stream);
    l->children = vm_method(jni, container, "children", stream);
    l->count = vm_method(jni, container, "threadCount", "()J");
    l->to_array = vm_method(jni, "java/util/stream/Stream", "toArray", "()[Ljava/lang/Object;");
    l->tid = vm_field(jni, "java/lang/Thread", "tid", "J");
    jclass all = (*jni)->FindClass(jni, "jdk/internal/vm/ThreadContainers");
    vm_clear_exception(jni);
    l->counting = (*jni)->FindClass(
        jni, "jdk/internal/vm/ThreadContainers$RootContainer$CountingRootContainer");
    vm_clear_exception(jni);
    jmethodID root =
        all ? (*jni)->GetStaticMethodID(jni, all, "root", "()Ljdk/internal/vm/ThreadContainer;")
            : NULL;
    vm_clear_exception(jni);
    if (!root || !l->threads || !l->children || !l->count || !l->to_array || !l->tid)
        return NULL;
    jobject found = (*jni)->CallStaticObjectMethod(jni, all, root);
    return vm_clear_exception(jni) ? NULL : found;
}

int virtual_threads_visit(JNIEnv *jni, void (*visit)(const struct existing_virtual *v, void *arg),
                          void *arg, uint64_t *ret_left)
{
    struct listing l = {.jni = jni, .visit = visit, .arg = arg};
    *ret_left = 0;
    if (!virtual_threads_may_exist(jni))
        return 0;
    if ((*jni)->PushLocalFrame(jni, 256) != 0) {
        vm_clear_exception(jni);
        return -ENOTSUP;
    }
    jobject root = find_root(&l);
    if (root)
        visit_container(&l, root, 0);
    (*jni)->PopLocalFrame(jni, NULL);
    *ret_left = l.left;
    return root && !l.failed ? 0 : -ENOTSUP;
}
