/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `new` of a class that is not initialized yet is counted in front of the instruction, and the
 * count is taken back if initialization fails. Stack samples of such a place are kept until the
 * class is initialized or has failed to initialize. Objects that the class's own <clinit> creates
 * remain counted even if <clinit> throws later. Instance sizes are measured as soon as measuring no
 * longer runs code of the program.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/self.h"

#include <string.h>

/* A stack sample at a place whose class was not initialized yet. */
struct begun {
    struct alloc_block *block;
    uint32_t point;
    uint32_t objects; /* objects that exist only if initialization succeeds */
    jweak class;
};

static VEC(struct begun) all_begun; /* under the sites' lock */
static uint64_t no_size;

/* ---- sizes ---- */

/*
 * Returns the first loaded class with a signature, for class files that cannot name it as a
 * constant.
 */
static jclass find_class(JNIEnv *jni, const char *signature)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    jclass found = NULL;
    if (loaded_classes(vm.ti, jni, &all) < 0)
        return NULL;
    for (jint i = 0; i < all.n && !found; i++) {
        char *name = NULL;
        if ((*vm.ti)->GetClassSignature(vm.ti, all.of[i], &name, NULL) == JVMTI_ERROR_NONE &&
            strcmp(name, signature) == 0)
            found = loaded_class_take(&all, i);
        vm_free(name);
    }
    return found;
}

void alloc_measure(JNIEnv *jni, uint32_t point, jclass class)
{
    struct alloc_point *p = alloc_point(point);
    if (p->kind != ALLOC_NEW || p->size)
        return;
    jclass found = class ? NULL : find_class(jni, alloc_point_class(point));
    if (class || found)
        p->size = (uint32_t)vm_size_of_new(jni, (*jni)->AllocObject(jni, class ? class : found));
    if (found)
        (*jni)->DeleteLocalRef(jni, found);
    no_size += p->size == 0;
}

uint64_t alloc_no_size(bool forget)
{
    uint64_t n = no_size;
    no_size = forget ? 0 : n;
    return n;
}

/* ---- classes that are not initialized ---- */

static enum alloc_class_state state_of(jclass class)
{
    jint status = 0;
    if (!class || (*vm.ti)->GetClassStatus(vm.ti, class, &status) != JVMTI_ERROR_NONE ||
        (status & JVMTI_CLASS_STATUS_INITIALIZED))
        return ALLOC_CLASS_READY;
    return status & JVMTI_CLASS_STATUS_ERROR ? ALLOC_CLASS_FAILED : ALLOC_CLASS_BEGINS;
}

/*
 * Returns whether the thread is running the class's <clinit>. Objects of the class that it creates
 * there exist, whether or not <clinit> succeeds.
 */
static bool in_initialiser(JNIEnv *jni, jclass class)
{
    jvmtiFrameInfo frames[SITE_DEPTH_MAX];
    jint n = 0;
    bool found = false;
    if (self_frames(0, SITE_DEPTH_MAX, frames, &n) != JVMTI_ERROR_NONE)
        n = 0;
    for (jint i = 0; i < n && !found; i++) {
        jclass owner = NULL;
        char *name = NULL;
        if ((*vm.ti)->GetMethodDeclaringClass(vm.ti, frames[i].method, &owner) ==
                JVMTI_ERROR_NONE &&
            (*jni)->IsSameObject(jni, owner, class) &&
            (*vm.ti)->GetMethodName(vm.ti, frames[i].method, &name, NULL, NULL) == JVMTI_ERROR_NONE)
            found = strcmp(name, "<clinit>") == 0;
        vm_free(name);
        if (owner)
            (*jni)->DeleteLocalRef(jni, owner);
    }
    return found;
}

enum alloc_class_state alloc_class_state(JNIEnv *jni, jclass class)
{
    enum alloc_class_state s = state_of(class);
    return s == ALLOC_CLASS_BEGINS && in_initialiser(jni, class) ? ALLOC_CLASS_WITHIN : s;
}

/* Returns the entry of a block's point, or NULL. Requires the lock. */
static struct begun *find_begun(const struct alloc_block *b, uint32_t point)
{
    for (size_t i = 0; i < all_begun.len; i++)
        if (all_begun.data[i].block == b && all_begun.data[i].point == point)
            return &all_begun.data[i];
    return NULL;
}

void alloc_begun(JNIEnv *jni, struct alloc_block *b, uint32_t point, jclass class,
                 enum alloc_class_state state)
{
    uint32_t objects = state == ALLOC_CLASS_BEGINS;
    struct begun *found = find_begun(b, point);
    if (found) {
        found->objects += objects;
        return;
    }
    struct begun n = {b, point, objects, (*jni)->NewWeakGlobalRef(jni, class)};
    if (n.class && vec_push(&all_begun, n) < 0)
        (*jni)->DeleteWeakGlobalRef(jni, n.class);
}

void alloc_begun_forget(void)
{
    for (size_t i = 0; i < all_begun.len; i++)
        all_begun.data[i].objects = 0;
}

/*
 * Acquires the lock. A thread of the program, which settles only its own entries, gives up after a
 * while; the function then returns false.
 */
static bool lock_for(const struct alloc_block *own)
{
    if (own)
        return sites_lock_patiently(0);
    sites_lock();
    return true;
}

/*
 * Removes an entry whose class is initialized or has failed to initialize, and takes its objects
 * back in the latter case. Returns false if the lock could not be acquired.
 */
static bool settle(JNIEnv *jni, const struct alloc_block *own, const struct begun *n,
                   enum alloc_class_state s)
{
    jweak class = NULL;
    if (!lock_for(own))
        return false;
    struct begun *found = find_begun(n->block, n->point);
    if (found) {
        struct alloc_sampling *l =
            s == ALLOC_CLASS_FAILED ? alloc_sampling_of(found->block, found->point) : NULL;
        if (l)
            l->failed += found->objects;
        class = found->class;
        *found = all_begun.data[--all_begun.len];
    }
    sites_unlock();
    if (class)
        (*jni)->DeleteWeakGlobalRef(jni, class);
    return true;
}

bool alloc_settle_begun(JNIEnv *jni, const struct alloc_block *own)
{
    VEC(struct begun) now = {0};
    bool all = true;
    if (!lock_for(own))
        return false;
    size_t n = all_begun.len;
    bool some = n && (*jni)->PushLocalFrame(jni, (jint)n) == 0;
    for (size_t i = 0; some && i < n; i++) {
        struct begun copy = all_begun.data[i];
        if (own && copy.block != own && !alloc_owns(own, copy.point))
            continue;
        /* Another thread may delete the weak reference as soon as the lock is released. */
        copy.class = (*jni)->NewLocalRef(jni, copy.class);
        (void)!vec_push(&now, copy);
    }
    sites_unlock();
    for (size_t i = 0; i < now.len && all; i++) {
        enum alloc_class_state s = state_of(now.data[i].class);
        if (s == ALLOC_CLASS_READY)
            alloc_measure(jni, now.data[i].point, now.data[i].class);
        if (s != ALLOC_CLASS_BEGINS)
            all = settle(jni, own, &now.data[i], s);
    }
    vec_release(&now);
    if (some)
        (*jni)->PopLocalFrame(jni, NULL);
    return all;
}
