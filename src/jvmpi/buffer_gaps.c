/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/buffer_gaps.h"
#include "jvmpi/layer.h"

enum {
    FILLER_MAX = 32768, /* bytes */
    FILLERS_MAX = 4096  /* 128 MB in all, more than any thread's buffer */
};

struct place {
    const char *at, *end;
};

static __thread const char *expected; /* where the next object of the buffer will be */
static __thread bool closing;

static struct place place_of(jobject object, jlong size)
{
    /* HotSpot's local references point to the object's address. */
    const char *at = *(const char *const *)object;
    return (struct place){at, at + size};
}

/* Creates an array of bytes, a multiple of eight. Returns false when out of memory. */
static bool make(JNIEnv *env, jint bytes, struct place *ret)
{
    static _Atomic jlong header; /* the size of an empty array */
    if (!atomic_load(&header))
        atomic_store(&header, vm_size_of_new(env, (*env)->NewByteArray(env, 0)));
    jbyteArray array = (*env)->NewByteArray(env, bytes);
    if (vm_clear_exception(env) || !atomic_load(&header))
        return false;
    *ret = place_of(array, atomic_load(&header) + bytes);
    (*env)->DeleteLocalRef(env, array);
    return true;
}

/*
 * If the next object follows the reported one, the reported one is in the buffer, and the VM sets
 * the buffer's sampling point once the event has been handled. Otherwise the rest of the buffer,
 * which is smaller than the reported object, is filled with garbage. The next object that does not
 * fit then gets a new buffer with a sampling point, or is allocated outside of the buffer as well
 * if the rest is too large for the VM to give up.
 */
static void close_gap(JNIEnv *env, struct place object)
{
    struct place last, filler;
    ptrdiff_t half = (object.end - object.at) / 16 * 8;
    jint bytes = half < FILLER_MAX ? (jint)half : FILLER_MAX;
    if (!make(env, 0, &last))
        return;
    bool inside = last.at == object.end;
    for (int n = 0; n < FILLERS_MAX && !inside && make(env, bytes, &filler); n++) {
        if (filler.at == last.end) {
            last = filler;
            continue;
        }
        const char *top = last.end;
        if (!make(env, 0, &last))
            return;
        inside = last.at != top; /* in a new buffer */
        bytes = bytes / 16 * 8;
    }
    if (inside)
        expected = last.end;
}

bool buffer_gap_closed(JNIEnv *env, jobject object, jlong size)
{
    struct place p = place_of(object, size);
    bool in_order = p.at == expected;
    expected = p.end;
    if (closing || in_order)
        return closing;
    closing = true;
    my.quiet++;
    close_gap(env, p);
    my.quiet--;
    closing = false;
    return false;
}
