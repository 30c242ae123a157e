/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts objects whose class is known only when the code runs: those that calls of the VM and JNI
 * return, and the arrays of multianewarray. Counters are made here for the classes of such objects.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/capture/alloc/exact_probes.h"
#include "agent/vm/shown_class.h"

#include <errno.h>

DECLARE(void, other, jobject, jint);
DECLARE(jint, place, jobject, jclass, jint, jint);
DECLARE(void, arrays, jobject, jint, jint);

/*
 * Counts n objects of the same class and size. `o` is one of them, chosen at random. probe: whether
 * a probe, or a function of JNI, counts them, so that no object of the site escapes.
 */
static void count_objects(JNIEnv *jni, jobject o, const struct site_frame *frames,
                          uint32_t n_frames, uint64_t n, bool probe)
{
    jclass class = (*jni)->GetObjectClass(jni, o);
    _cleanup_free_ char *signature = class ? shown_class_signature(class) : NULL;
    jlong size = 0;
    (*vm.ti)->GetObjectSize(vm.ti, o, &size);
    if (signature && sites_lock_patiently((double)size * (double)n)) {
        int64_t site = sites_find(signature, threads_self(jni), frames, n_frames);
        if (alloc_exact.on)
            alloc_add(site, (double)n, (double)size * (double)n);
        if (alloc_exact.on && !probe)
            sites_without_probe(site);
        if (alloc_exact.on && n == 1)
            alloc_follow_counted(jni, site, o, size);
        else if (alloc_exact.on && site >= 0)
            sites_follow(jni, site, (*jni)->NewWeakGlobalRef(jni, o), (double)n, size);
        sites_unlock();
    }
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
}

void alloc_count(JNIEnv *jni, jobject object)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    if (!alloc_exact.on || alloc_busy || !object)
        return;
    alloc_busy = true;
    struct thread *self = threads_self(jni);
    if (self && !self->own) {
        enum site_top top;
        uint32_t n = sites_stack(jni, frames, &top);
        if (!sites_is_ours(jni, frames, n))
            count_objects(jni, object, frames, n, 1, top == SITE_TOP_OTHER);
    }
    alloc_busy = false;
}

NATIVE(void, other)(JNIEnv *jni, jclass class, jobject o, jint point)
{
    alloc_count(jni, o);
}

/* The probe class's tables (JvmscopeSites.TYPES, PLACES). */
static struct {
    jobjectArray types;
    jlongArray places;
    jclass weak;
    jmethodID make;
    int size;
} tables;

static jobject static_field(JNIEnv *jni, const char *name, const char *descriptor)
{
    jfieldID f = (*jni)->GetStaticFieldID(jni, alloc_exact.probe, name, descriptor);
    jobject local = f ? (*jni)->GetStaticObjectField(jni, alloc_exact.probe, f) : NULL;
    jobject global = local ? (*jni)->NewGlobalRef(jni, local) : NULL;
    if (local)
        (*jni)->DeleteLocalRef(jni, local);
    return global;
}

int alloc_exact_learn_tables(JNIEnv *jni)
{
    if (tables.make)
        return 0;
    tables.types = static_field(jni, "TYPES", "[Ljava/lang/ref/WeakReference;");
    tables.places = static_field(jni, "PLACES", "[J");
    jclass weak = (*jni)->FindClass(jni, "java/lang/ref/WeakReference");
    tables.weak = weak ? (*jni)->NewGlobalRef(jni, weak) : NULL;
    if (!tables.types || !tables.places || !tables.weak)
        return -EPROTO;
    tables.size = (*jni)->GetArrayLength(jni, tables.types);
    tables.make = (*jni)->GetMethodID(jni, tables.weak, "<init>", "(Ljava/lang/Object;)V");
    (*jni)->DeleteLocalRef(jni, weak);
    return tables.make ? 0 : -EPROTO;
}

/*
 * Adds an entry, unless another thread has added one for the point meanwhile; in that case this
 * object is counted separately. Requires the lock.
 */
static jint add_place(JNIEnv *jni, jobject weak, const char *signature, jint point, jint from)
{
    enum { PROBES = 8 };

    for (int i = 0; i < PROBES; i++) {
        jint at = (from + i) & (tables.size - 1);
        jlong found = 0;
        (*jni)->GetLongArrayRegion(jni, tables.places, at, 1, &found);
        if (found)
            continue;
        int64_t number = alloc_point_new(signature[0] == '[' ? ALLOC_ARRAY : ALLOC_NEW, signature);
        if (number < 0)
            return -1;
        jlong place = (jlong)(point + 1) << 32 | number;
        (*jni)->SetObjectArrayElement(jni, tables.types, at, weak);
        (*jni)->SetLongArrayRegion(jni, tables.places, at, 1, &place);
        return (jint)number;
    }
    return -1;
}

NATIVE(jint, place)(JNIEnv *jni, jclass class, jobject o, jclass type, jint point, jint from)
{
    jint number = -1;
    char *signature = !o || alloc_busy || !alloc_exact.on ? NULL : shown_class_signature(type);
    if (!signature)
        return -1;
    alloc_busy = true;
    bool primitives = signature[0] == '[' && signature[1] != 'L' && signature[1] != '[';
    /* Not under the lock, because the VM's allocation event would try to take it. */
    jobject weak = primitives ? NULL : (*jni)->NewObject(jni, tables.weak, tables.make, type);
    vm_clear_exception(jni);
    if (weak && sites_lock_patiently(0)) { /* without an entry the object is counted separately */
        number = add_place(jni, weak, signature, point, from);
        sites_unlock();
    }
    if (weak)
        (*jni)->DeleteLocalRef(jni, weak);
    free(signature);
    alloc_busy = false;
    return number;
}

/* Counts the arrays of a multidimensional array one by one. */
static void count_each(JNIEnv *jni, jobject o, jint dimensions, const struct site_frame *frames,
                       uint32_t n_frames)
{
    count_objects(jni, o, frames, n_frames, 1, true);
    jsize length = dimensions > 1 ? (*jni)->GetArrayLength(jni, o) : 0;
    for (jsize i = 0; i < length; i++) {
        jobject inner = (*jni)->GetObjectArrayElement(jni, o, i);
        if (inner)
            count_each(jni, inner, dimensions - 1, frames, n_frames);
        (*jni)->DeleteLocalRef(jni, inner);
    }
}

NATIVE(void, arrays)(JNIEnv *jni, jclass class, jobject o, jint point, jint dimensions)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    if (!o || alloc_busy || !alloc_exact.on)
        return;
    alloc_busy = true;
    uint32_t n_frames = sites_stack(jni, frames, NULL);
    bool each = alloc_follow == FOLLOW_ALL || sites_follow_each(0);
    if (each)
        count_each(jni, o, dimensions, frames, n_frames);
    uint64_t n = 1;
    jobject at = each ? NULL : (*jni)->NewLocalRef(jni, o);
    for (jint d = 0; at; d++) {
        count_objects(jni, at, frames, n_frames, n, true);
        jsize length = (*jni)->GetArrayLength(jni, at);
        n *= (uint64_t)length;
        jsize any = length ? (jsize)alloc_random_below((uint64_t)length) : 0;
        jobject inner =
            d + 1 < dimensions && n ? (*jni)->GetObjectArrayElement(jni, at, any) : NULL;
        (*jni)->DeleteLocalRef(jni, at);
        at = inner;
    }
    alloc_busy = false;
}
