/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/dump.h"

#include "agent/common/fault.h"
#include "agent/vm/collect.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/management.h"
#include "base/hash.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static jint(JNICALL *dump_heap)(JNIEnv *jni, jobject self, jstring path, jboolean live);
static struct hprof_shapes shapes;

static jobject new_array(JNIEnv *jni, unsigned type, jsize n, jclass object)
{
    switch (type) {
    case HPROF_OBJECT:
        return (*jni)->NewObjectArray(jni, n, object, NULL);
    case HPROF_BOOLEAN:
        return (*jni)->NewBooleanArray(jni, n);
    case HPROF_CHAR:
        return (*jni)->NewCharArray(jni, n);
    case HPROF_FLOAT:
        return (*jni)->NewFloatArray(jni, n);
    case HPROF_DOUBLE:
        return (*jni)->NewDoubleArray(jni, n);
    case HPROF_BYTE:
        return (*jni)->NewByteArray(jni, n);
    case HPROF_SHORT:
        return (*jni)->NewShortArray(jni, n);
    case HPROF_INT:
        return (*jni)->NewIntArray(jni, n);
    case HPROF_LONG:
        return (*jni)->NewLongArray(jni, n);
    default:
        return NULL;
    }
}

/*
 * Returns the size of an array's header: that of an empty array minus the elements that fit into
 * its padding.
 */
static uint32_t header_of(JNIEnv *jni, unsigned type, uint32_t element, jclass object)
{
    jlong empty = vm_size_of_new(jni, new_array(jni, type, 0, object));
    uint32_t fit = 0;
    while (fit < 64 && vm_size_of_new(jni, new_array(jni, type, (jsize)fit + 1, object)) == empty)
        fit++;
    return (uint32_t)empty - fit * element;
}

static int measure_shapes(JNIEnv *jni)
{
    jclass object = (*jni)->FindClass(jni, "java/lang/Object");
    if (!object)
        return -ENOTSUP;
    jlong none = vm_size_of_new(jni, new_array(jni, HPROF_OBJECT, 0, object));
    jlong many = vm_size_of_new(jni, new_array(jni, HPROF_OBJECT, 64, object));
    struct hprof_shapes s = {.reference = (uint32_t)(many - none) / 64};
    jlong at = vm_size_of_new(jni, new_array(jni, HPROF_BYTE, 0, object)), next = at;
    for (jsize n = 1; n < 4096 && next == at; n++)
        next = vm_size_of_new(jni, new_array(jni, HPROF_BYTE, n, object));
    s.alignment = (uint32_t)(next - at);
    for (unsigned t = 1; t <= HPROF_LONG; t++)
        if (t != 3 && hprof_type_size(t, s.reference))
            s.header[t] = header_of(jni, t, hprof_type_size(t, s.reference), object);
    /* An array's header is an object's header and a length of four bytes; any rest is padding. */
    s.header[0] = MIN(s.header[HPROF_BYTE] - 4, 16);
    (*jni)->DeleteLocalRef(jni, object);
    if (!s.alignment || !s.reference)
        return -ENOTSUP;
    shapes = s;
    return 0;
}

const struct hprof_shapes *vm_shapes(void)
{
    return &shapes;
}

int vm_dump_prepare(JNIEnv *jni)
{
    if (fault_here())
        return -ENOTSUP;
    if (dump_heap)
        return 0;
    int r = shapes.alignment ? 0 : measure_shapes(jni);
    if (r < 0)
        return -ENOTSUP;
    void *function =
        management_native("Java_com_sun_management_internal_HotSpotDiagnostic_dumpHeap0",
                          "Java_sun_management_HotSpotDiagnostic_dumpHeap0");
    vm_clear_exception(jni);
    dump_heap = (jint(JNICALL *)(JNIEnv *, jobject, jstring, jboolean))function;
    return function ? 0 : -ENOTSUP;
}

/* Returns the system's error as a negative errno. Only the text of the exception contains it. */
static int reason_of(JNIEnv *jni, jthrowable thrown)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG,   EACCES, EPERM,
                                 EROFS,  ENOENT, ENOTDIR, EEXIST, EMFILE};
    jclass class = (*jni)->GetObjectClass(jni, thrown);
    jmethodID get = (*jni)->GetMethodID(jni, class, "getMessage", "()Ljava/lang/String;");
    jstring message = get ? (jstring)(*jni)->CallObjectMethod(jni, thrown, get) : NULL;
    vm_clear_exception(jni);
    const char *text = message ? (*jni)->GetStringUTFChars(jni, message, NULL) : NULL;
    int r = -EIO;
    for (size_t i = 0; text && r == -EIO && i < ARRAY_SIZE(errors); i++) {
        if (strstr(text, strerror(errors[i])))
            r = -errors[i];
    }
    if (text)
        (*jni)->ReleaseStringUTFChars(jni, message, text);
    if (message)
        (*jni)->DeleteLocalRef(jni, message);
    (*jni)->DeleteLocalRef(jni, class);
    vm_clear_exception(jni);
    return r;
}

/*
 * True if the dumper does not run a collection on its own. Up to JDK 17 it does not with collectors
 * that do not stop the world.
 */
static bool collect_first;

struct dump_call {
    jstring path;
    bool collects; /* set by the call: a collection was requested */
};

static int call_dumper(JNIEnv *jni, bool collect, void *context)
{
    struct dump_call *c = context;
    c->collects = collect;
    if (collect && collect_first)
        (*vm.ti)->ForceGarbageCollection(vm.ti);
    jint result = dump_heap(jni, NULL, c->path, collect);
    jthrowable thrown = (*jni)->ExceptionOccurred(jni);
    vm_clear_exception(jni);
    int r = thrown ? reason_of(jni, thrown) : result != 0 ? -EIO : 0;
    if (thrown)
        (*jni)->DeleteLocalRef(jni, thrown);
    return r;
}

int vm_dump(JNIEnv *jni, const char *path, jstring name, bool *ret_collected)
{
    struct dump_call call = {.path = name};
    *ret_collected = true;
    if (!dump_heap)
        return -ENOTSUP;
    /* When memory is exhausted the VM has just collected. */
    if (name)
        return call_dumper(jni, false, &call);
    call.path = (*jni)->NewStringUTF(jni, path);
    if (!call.path) {
        vm_clear_exception(jni);
        return -ENOMEM;
    }
    int r = collect_by(jni, call_dumper, &call, ret_collected);
    if (r == 0 && !*ret_collected && call.collects && !collect_first) {
        collect_first = true;
        unlink(path);
        r = collect_by(jni, call_dumper, &call, ret_collected);
    }
    (*jni)->DeleteLocalRef(jni, call.path);
    return r;
}

uint64_t vm_size_key(const char *name, size_t len)
{
    return hash_bytes(name, len);
}

struct class_size {
    uint64_t key;
    uint32_t size;
};

struct sizes {
    VEC(struct class_size) classes;
};

static jint JNICALL on_object(jlong class_tag, jlong size, jlong *tag, jint length, void *context)
{
    struct sizes *s = context;
    if (length < 0 && *tag == 0 && class_tag > 0 && class_tag <= (jlong)s->classes.len)
        s->classes.data[class_tag - 1].size = (uint32_t)size;
    return 0;
}

static int tag_class(jvmtiEnv *ti, struct sizes *s, jclass class)
{
    char *signature = NULL;
    if ((*ti)->GetClassSignature(ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return 0;
    size_t len = strlen(signature);
    int r = 0;
    if (len > 2 && signature[0] == 'L') {
        /*
         * JVM TI writes hidden classes as LName.0x1234; the VM's dumps have Name/0x1234 or
         * Name+0x1234.
         */
        for (char *p = signature; *p; p++)
            if (*p == '.' || *p == '+')
                *p = '/';
        r = vec_push(&s->classes,
                     ((struct class_size){.key = vm_size_key(signature + 1, len - 2)}));
        if (r == 0)
            (*ti)->SetTag(ti, class, (jlong)s->classes.len);
    }
    (*ti)->Deallocate(ti, (unsigned char *)signature);
    return r;
}

static int walk_sizes(jvmtiEnv *ti, JNIEnv *jni, struct sizes *s)
{
    const jvmtiCapabilities tags = {.can_tag_objects = 1};
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    int r = (*ti)->AddCapabilities(ti, &tags) == JVMTI_ERROR_NONE ? loaded_classes(ti, jni, &all)
                                                                  : -ENOTSUP;
    for (jint i = 0; i < all.n && r == 0; i++)
        r = tag_class(ti, s, all.of[i]);
    const jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = on_object};
    if (r == 0 && (*ti)->IterateThroughHeap(ti, JVMTI_HEAP_FILTER_CLASS_UNTAGGED, NULL, &callbacks,
                                            s) != JVMTI_ERROR_NONE)
        r = -ENOTSUP;
    return r;
}

int vm_instance_sizes(JNIEnv *jni, struct map *ret)
{
    /* A separate environment, so that tags do not interfere with others. */
    jvmtiEnv *ti = NULL;
    struct sizes s = {0};
    if ((*vm.java)->GetEnv(vm.java, (void **)&ti, JVMTI_VERSION_1_2) != JNI_OK)
        return -ENOTSUP;
    int r = walk_sizes(ti, jni, &s);
    for (size_t i = 0; i < s.classes.len && r == 0; i++) {
        bool added;
        if (!s.classes.data[i].size)
            continue;
        uint64_t *size = map_at(ret, s.classes.data[i].key, s.classes.data[i].size, &added);
        if (!size)
            r = -ENOMEM;
        else if (!added && *size != s.classes.data[i].size)
            *size = 0;
    }
    vec_release(&s.classes);
    (*ti)->DisposeEnvironment(ti);
    return r;
}
