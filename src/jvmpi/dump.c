/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps (specification, section 4): numbers are big-endian, ids and pointers as the machine has them. Heap dumps of levels 1
 * and 2 are not made yet: they are refused.
 */
#include "base/buf.h"
#include "jvmpi/layer.h"

#include <stdlib.h>

enum { DUMP_LIMIT = INT32_MAX };

static void put_pointer(struct buf *b, const void *p)
{
    buf_bytes(b, &p, sizeof(p));
}

/* ---- heap, level 0 ---- */

static jint kind_of_signature(const char *s)
{
    static const char letters[] = {[JVMPI_BOOLEAN] = 'Z', [JVMPI_CHAR] = 'C',  [JVMPI_FLOAT] = 'F', [JVMPI_DOUBLE] = 'D',
                                   [JVMPI_BYTE] = 'B',    [JVMPI_SHORT] = 'S', [JVMPI_INT] = 'I',   [JVMPI_LONG] = 'J'};
    if (!s || s[0] != '[')
        return JVMPI_NORMAL_OBJECT;
    for (size_t i = 4; i < ARRAY_SIZE(letters); i++)
        if (letters[i] == s[1])
            return (jint)i;
    return JVMPI_CLASS;
}

struct level_0 {
    struct buf out;
    jint kind;
};

static jint JNICALL on_object(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    struct level_0 *d = data;
    if (!*tag)
        *tag = next_id();
    buf_u8(&d->out, (uint8_t)d->kind);
    put_pointer(&d->out, (void *)(intptr_t)*tag);
    return buf_error(&d->out) ? JVMTI_VISIT_ABORT : 0;
}

jint request_heap_dump(JNIEnv *env, jint level)
{
    jint n = 0;
    jclass *classes = NULL;
    struct level_0 d = {.out = BUF(SIZE_MAX / 2)};
    if (level != JVMPI_DUMP_LEVEL_0 || (*vm.ti)->GetLoadedClasses(vm.ti, &n, &classes))
        return JVMPI_FAIL;
    jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = on_object};
    for (jint i = 0; i < n; i++) {
        /* class by class: the kind is known, and nothing has to be looked up in the callback */
        char *signature = NULL;
        (void)(*vm.ti)->GetClassSignature(vm.ti, classes[i], &signature, NULL);
        d.kind = kind_of_signature(signature);
        vm_free(signature);
        (void)(*vm.ti)->IterateThroughHeap(vm.ti, 0, classes[i], &callbacks, &d);
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    vm_free(classes);
    jint ret = buf_error(&d.out) ? JVMPI_FAIL : JVMPI_SUCCESS;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_HEAP_DUMP | JVMPI_REQUESTED_EVENT,
                     .u.heap_dump = {level, (char *)d.out.data, (char *)d.out.data + d.out.len, 0, NULL}};
    if (ret == JVMPI_SUCCESS)
        notify(env, &e);
    buf_release(&d.out);
    return ret;
}

/* ---- one object ---- */

struct fields {
    jfieldID *ids;
    jint n;
};

static void put_field(JNIEnv *env, struct buf *b, jobject object, jclass class, bool is_static, jfieldID id, char type)
{
#define GET(kind) (is_static ? (*env)->GetStatic##kind##Field(env, class, id) : (*env)->Get##kind##Field(env, object, id))
    switch (type) {
    case 'Z':
        buf_u8(b, GET(Boolean));
        break;
    case 'B':
        buf_u8(b, (uint8_t)GET(Byte));
        break;
    case 'C':
        buf_be16(b, GET(Char));
        break;
    case 'S':
        buf_be16(b, (uint16_t)GET(Short));
        break;
    case 'I':
        buf_be32(b, (uint32_t)GET(Int));
        break;
    case 'J':
        buf_be64(b, (uint64_t)GET(Long));
        break;
    case 'F': {
        union {
            jfloat f;
            uint32_t bits;
        } v = {GET(Float)};

        buf_be32(b, v.bits);
        break;
    }
    case 'D': {
        union {
            jdouble d;
            uint64_t bits;
        } v = {GET(Double)};

        buf_be64(b, v.bits);
        break;
    }
    default: {
        jobject value = GET(Object);
        put_pointer(b, id_of(value));
        (*env)->DeleteLocalRef(env, value);
    }
    }
#undef GET
}

/* The fields that a class declares, static or not, in the order of CLASS_LOAD. */
static void put_fields(JNIEnv *env, struct buf *b, jobject object, jclass class, bool want_static)
{
    enum { STATIC = 8 };

    jint n = 0;
    jfieldID *ids = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, class, &n, &ids))
        return;
    for (jint i = 0; i < n; i++) {
        jint modifiers = 0;
        char *signature = NULL;
        (void)(*vm.ti)->GetFieldModifiers(vm.ti, class, ids[i], &modifiers);
        (void)(*vm.ti)->GetFieldName(vm.ti, class, ids[i], NULL, &signature, NULL);
        if (signature && (modifiers & STATIC ? true : false) == want_static)
            put_field(env, b, object, class, want_static, ids[i], signature[0]);
        vm_free(signature);
    }
    vm_free(ids);
}

static void put_instance(JNIEnv *env, struct buf *b, jobject object, jobjectID id)
{
    struct buf values = BUF(DUMP_LIMIT);
    jclass class = (*env)->GetObjectClass(env, object);
    buf_u8(b, JVMPI_GC_INSTANCE_DUMP);
    put_pointer(b, id);
    put_pointer(b, id_of(class));
    while (class) {
        put_fields(env, &values, object, class, false);
        jclass super = (*env)->GetSuperclass(env, class);
        (*env)->DeleteLocalRef(env, class);
        class = super;
    }
    buf_be32(b, (uint32_t)values.len);
    buf_bytes(b, values.data, values.len);
    buf_release(&values);
}

static void put_object_array(JNIEnv *env, struct buf *b, jobjectArray array, jobjectID id, jclass class)
{
    jsize n = (*env)->GetArrayLength(env, array);
    jclass of_classes = (*env)->FindClass(env, "java/lang/Class");
    jmethodID ask = (*env)->GetMethodID(env, of_classes, "getComponentType", "()Ljava/lang/Class;");
    jobject element = (*env)->CallObjectMethod(env, class, ask);
    buf_u8(b, JVMPI_GC_OBJ_ARRAY_DUMP);
    put_pointer(b, id);
    buf_be32(b, (uint32_t)n);
    put_pointer(b, id_of(element));
    for (jsize i = 0; i < n; i++) {
        jobject value = (*env)->GetObjectArrayElement(env, array, i);
        put_pointer(b, id_of(value));
        (*env)->DeleteLocalRef(env, value);
    }
    (*env)->DeleteLocalRef(env, element);
    (*env)->DeleteLocalRef(env, of_classes);
}

static void put_primitive_array(JNIEnv *env, struct buf *b, jarray array, jobjectID id, jint kind)
{
    static const uint8_t widths[] = {[JVMPI_BOOLEAN] = 1, [JVMPI_CHAR] = 2,  [JVMPI_FLOAT] = 4, [JVMPI_DOUBLE] = 8,
                                     [JVMPI_BYTE] = 1,    [JVMPI_SHORT] = 2, [JVMPI_INT] = 4,   [JVMPI_LONG] = 8};
    jsize n = (*env)->GetArrayLength(env, array);
    buf_u8(b, JVMPI_GC_PRIM_ARRAY_DUMP);
    put_pointer(b, id);
    buf_be32(b, (uint32_t)n);
    buf_u8(b, (uint8_t)kind);
    /* no JNI, no blocking and no allocation of Java objects until it is given back */
    const uint8_t *p = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
    for (jsize i = 0; p && i < n; i++)
        for (unsigned k = widths[kind]; k-- > 0;)
            buf_u8(b, p[(size_t)i * widths[kind] + k]);
    if (p)
        (*env)->ReleasePrimitiveArrayCritical(env, array, (void *)(uintptr_t)p, JNI_ABORT);
}

static void put_class(JNIEnv *env, struct buf *b, jclass class, jobjectID id)
{
    jobject loader = NULL, signers = NULL, domain = NULL;
    jclass *interfaces = NULL;
    jint n = 0, status = 0;
    jclass super = (*env)->GetSuperclass(env, class);
    jclass of_classes = (*env)->FindClass(env, "java/lang/Class");
    jmethodID get_signers = (*env)->GetMethodID(env, of_classes, "getSigners", "()[Ljava/lang/Object;");
    jmethodID get_domain = (*env)->GetMethodID(env, of_classes, vm.version >= 9 ? "protectionDomain" : "getProtectionDomain0",
                                               "()Ljava/security/ProtectionDomain;");
    vm_clear_exception(env);
    (void)(*vm.ti)->GetClassLoader(vm.ti, class, &loader);
    (void)(*vm.ti)->GetClassStatus(vm.ti, class, &status);
    signers = get_signers ? (*env)->CallObjectMethod(env, class, get_signers) : NULL;
    domain = get_domain && loader ? (*env)->CallObjectMethod(env, class, get_domain) : NULL;
    vm_clear_exception(env);
    buf_u8(b, JVMPI_GC_CLASS_DUMP);
    put_pointer(b, id);
    put_pointer(b, id_of(super));
    put_pointer(b, id_of(loader));
    put_pointer(b, id_of(signers));
    put_pointer(b, id_of(domain));
    put_pointer(b, NULL); /* the class's name, and a reserved pointer */
    put_pointer(b, NULL);
    buf_be32(b, 0); /* the size of its instances is not known without one */
    if (!(*vm.ti)->GetImplementedInterfaces(vm.ti, class, &n, &interfaces)) {
        for (jint i = 0; i < n; i++) {
            put_pointer(b, id_of(interfaces[i]));
            (*env)->DeleteLocalRef(env, interfaces[i]);
        }
        vm_free(interfaces);
    }
    buf_be16(b, 0); /* constants: the old VMs told of none */
    /* reading statics would initialise the class */
    if (status & JVMTI_CLASS_STATUS_INITIALIZED)
        put_fields(env, b, NULL, class, true);
    (*env)->DeleteLocalRef(env, super);
    (*env)->DeleteLocalRef(env, loader);
    (*env)->DeleteLocalRef(env, signers);
    (*env)->DeleteLocalRef(env, domain);
    (*env)->DeleteLocalRef(env, of_classes);
}

jint request_object_dump(JNIEnv *env, jobjectID id)
{
    struct buf b = BUF(DUMP_LIMIT);
    char *signature = NULL;
    jobject object = object_of(env, id);
    if (!object)
        return JVMPI_FAIL;
    jclass class = (*env)->GetObjectClass(env, object);
    (void)(*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL);
    jint kind = kind_of_signature(signature);
    vm_free(signature);
    jclass of_classes = (*env)->FindClass(env, "java/lang/Class");
    if ((*env)->IsSameObject(env, class, of_classes))
        put_class(env, &b, object, id);
    else if (kind == JVMPI_NORMAL_OBJECT)
        put_instance(env, &b, object, id);
    else if (kind == JVMPI_CLASS)
        put_object_array(env, &b, object, id, class);
    else
        put_primitive_array(env, &b, object, id, kind);
    (*env)->DeleteLocalRef(env, of_classes);
    (*env)->DeleteLocalRef(env, class);
    (*env)->DeleteLocalRef(env, object);
    jint ret = buf_error(&b) ? JVMPI_FAIL : JVMPI_SUCCESS;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_OBJECT_DUMP | JVMPI_REQUESTED_EVENT,
                     .u.object_dump = {(jint)b.len, (char *)b.data}};
    if (ret == JVMPI_SUCCESS)
        notify(env, &e);
    buf_release(&b);
    return ret;
}
