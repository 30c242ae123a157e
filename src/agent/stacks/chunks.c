/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stacks/chunks.h"

#include "agent/vm/vm.h"
#include "hotspot/layout.h"
#include "hotspot/memory.h"

#include <string.h>

/*
 * The entry of a continuation has the reference to the continuation right after `parent`, which JDK
 * 25 does not export.
 */
enum { ENTRY_PARENT = 8, ENTRY_CONT = 8 };

struct asked {
    JNIEnv *jni;
    jobject unsafe;
    jmethodID offset, get_long;
    bool failed;
};

static int32_t offset_of(struct asked *a, jclass class, const char *field)
{
    jstring name = (*a->jni)->NewStringUTF(a->jni, field);
    jlong offset = name ? (*a->jni)->CallLongMethod(a->jni, a->unsafe, a->offset, class, name) : 0;
    a->failed |= vm_clear_exception(a->jni) || offset <= 0 || offset > 4096;
    if (name)
        (*a->jni)->DeleteLocalRef(a->jni, name);
    return (int32_t)offset;
}

/* Returns the number of bytes of an instance before its frames. */
static int32_t instance_bytes(struct asked *a, const struct hotspot_layout *l, jclass class)
{
    uint32_t offset, bytes;
    if (!l->class_klass_offset || l->klass_layout_helper < 0 ||
        !load_u32(&process_memory, l->class_klass_offset, &offset)) {
        a->failed = true;
        return 0;
    }
    uint64_t klass =
        (uint64_t)(*a->jni)->CallLongMethod(a->jni, a->unsafe, a->get_long, class, (jlong)offset);
    bytes = 0;
    a->failed |= vm_clear_exception(a->jni) || !klass ||
                 !load_u32(&process_memory, klass + (uint64_t)l->klass_layout_helper, &bytes) ||
                 bytes < 16 || bytes > 256;
    /* The low bit says that instances are not allocated on the fast path. */
    return (int32_t)(bytes & ~UINT32_C(7));
}

static bool ask(struct asked *a, const struct hotspot_layout *l, struct walk_chunks *c)
{
    jclass continuation, chunk, class = (*a->jni)->FindClass(a->jni, "jdk/internal/misc/Unsafe");
    jfieldID the = class ? (*a->jni)->GetStaticFieldID(a->jni, class, "theUnsafe",
                                                       "Ljdk/internal/misc/Unsafe;")
                         : NULL;
    a->unsafe = the ? (*a->jni)->GetStaticObjectField(a->jni, class, the) : NULL;
    a->offset = !a->unsafe ? NULL
                           : (*a->jni)->GetMethodID(a->jni, class, "objectFieldOffset",
                                                    "(Ljava/lang/Class;Ljava/lang/String;)J");
    a->get_long = a->offset
                      ? (*a->jni)->GetMethodID(a->jni, class, "getLong", "(Ljava/lang/Object;J)J")
                      : NULL;
    continuation =
        a->get_long ? (*a->jni)->FindClass(a->jni, "jdk/internal/vm/Continuation") : NULL;
    chunk = continuation ? (*a->jni)->FindClass(a->jni, "jdk/internal/vm/StackChunk") : NULL;
    if (vm_clear_exception(a->jni) || !chunk)
        return false;
    c->tail = offset_of(a, continuation, "tail");
    c->parent = offset_of(a, chunk, "parent");
    c->sp = offset_of(a, chunk, "sp");
    c->bottom = offset_of(a, chunk, "bottom");
    c->stack = instance_bytes(a, l, chunk);
    return !a->failed;
}

bool chunks_find(JNIEnv *jni, const struct hotspot_layout *l, const struct hotspot_image *image,
                 struct walk_chunks *ret)
{
    struct walk_chunks c = {.narrow = hotspot_flag(l, image, "UseCompressedOops")};
    struct asked a = {.jni = jni};
    uint32_t shift;
#if !defined(__x86_64__)
    return false;
#endif
    if (l->thread_cont_entry == LAYOUT_NONE || !l->oop_base || !l->oop_shift ||
        hotspot_flag(l, image, "UseZGC") || hotspot_flag(l, image, "UseShenandoahGC") ||
        !load_u64(&process_memory, l->oop_base, &c.oop_base) ||
        !load_u32(&process_memory, l->oop_shift, &shift))
        return false;
    c.oop_shift = (int32_t)shift;
    c.cont =
        (l->cont_entry_parent == LAYOUT_NONE ? ENTRY_PARENT : l->cont_entry_parent) + ENTRY_CONT;
    if ((*jni)->PushLocalFrame(jni, 16) < 0)
        return false;
    bool found = ask(&a, l, &c);
    (*jni)->PopLocalFrame(jni, NULL);
    *ret = c;
    return found;
}
