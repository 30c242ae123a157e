/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps one object (specification, section 4.3), which is read through JNI. The record is the same
 * as in heap dumps of level 2.
 */
#include "base/buf.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/classes.h"
#include "jvmpi/dumps.h"
#include "jvmpi/layer.h"
#include "jvmpi/layouts.h"
#include "jvmpi/lookup.h"
#include "jvmpi/memory.h"
#include "jvmpi/objects.h"

enum { DUMP_LIMIT = INT32_MAX };

static void put_pointer(struct buf *b, const void *p)
{
    buf_bytes(b, &p, sizeof(p));
}

static void put_field(JNIEnv *env, struct buf *b, jobject object, jclass class, bool is_static,
                      jfieldID id, char type)
{
#define GET(kind)                                               \
    (is_static ? (*env)->GetStatic##kind##Field(env, class, id) \
               : (*env)->Get##kind##Field(env, object, id))
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
        put_pointer(b, layer_report_object(env, value));
        (*env)->DeleteLocalRef(env, value);
    }
    }
#undef GET
}

/*
 * Adds the static or instance fields that a class declares, in the order of CLASS_LOAD, with zeros
 * where they may not be read.
 */
static void put_fields(JNIEnv *env, struct buf *b, jobject object, jclass class, bool want_static,
                       bool readable)
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
        bool wanted = signature && (modifiers & STATIC ? true : false) == want_static;
        for (unsigned k = wanted && !readable ? layer_value_width(signature[0]) : 0; k > 0; k--)
            buf_u8(b, 0);
        if (wanted && readable)
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
    put_pointer(b, layer_report_class(env, class));
    while (class) {
        put_fields(env, &values, object, class, false, true);
        jclass super = (*env)->GetSuperclass(env, class);
        (*env)->DeleteLocalRef(env, class);
        class = super;
    }
    buf_be32(b, (uint32_t)values.len);
    buf_bytes(b, values.data, values.len);
    buf_release(&values);
}

static void put_object_array(JNIEnv *env, struct buf *b, jobjectArray array, jobjectID id,
                             jclass class)
{
    jsize n = (*env)->GetArrayLength(env, array);
    jclass element = layer_component_class(env, class);
    buf_u8(b, JVMPI_GC_OBJ_ARRAY_DUMP);
    put_pointer(b, id);
    buf_be32(b, (uint32_t)n);
    put_pointer(b, layer_report_class(env, element));
    for (jsize i = 0; i < n; i++) {
        jobject value = (*env)->GetObjectArrayElement(env, array, i);
        put_pointer(b, layer_report_object(env, value));
        (*env)->DeleteLocalRef(env, value);
    }
    (*env)->DeleteLocalRef(env, element);
}

static void put_primitive_array(JNIEnv *env, struct buf *b, jarray array, jobjectID id, jint kind)
{
    unsigned width = layer_value_width("....ZCFDBSIJ"[kind]);
    jsize n = (*env)->GetArrayLength(env, array);
    buf_u8(b, JVMPI_GC_PRIM_ARRAY_DUMP);
    put_pointer(b, id);
    buf_be32(b, (uint32_t)n);
    buf_u8(b, (uint8_t)kind);
    /* Until the array is released, no JNI call, blocking or Java allocation is allowed. */
    const uint8_t *p = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
    for (jsize i = 0; p && i < n; i++)
        for (unsigned k = width; k-- > 0;)
            buf_u8(b, p[(size_t)i * width + k]);
    if (p)
        (*env)->ReleasePrimitiveArrayCritical(env, array, (void *)(uintptr_t)p, JNI_ABORT);
}

/*
 * Returns the domain itself, not the substitute that Class.getProtectionDomain returns: it is read
 * with a native method up to JDK 24, and from a field later.
 */
static jobject protection_domain(JNIEnv *env, jclass class, jclass of_classes)
{
    jmethodID get = (*env)->GetMethodID(env, of_classes, "getProtectionDomain0",
                                        "()Ljava/security/ProtectionDomain;");
    bool absent = vm_clear_exception(env);
    if (!absent) {
        jobject domain = (*env)->CallObjectMethod(env, class, get);
        return vm_clear_exception(env) ? NULL : domain;
    }
    jfieldID field =
        (*env)->GetFieldID(env, of_classes, "protectionDomain", "Ljava/security/ProtectionDomain;");
    return vm_clear_exception(env) ? NULL : (*env)->GetObjectField(env, class, field);
}

static void put_class(JNIEnv *env, struct buf *b, jclass class, jobjectID id)
{
    jobject loader = NULL, signers = NULL;
    jclass *interfaces = NULL;
    jint n = 0, status = 0;
    jclass super = (*env)->GetSuperclass(env, class);
    jclass of_classes = boot_class(env, "java/lang/Class");
    jmethodID get_signers =
        (*env)->GetMethodID(env, of_classes, "getSigners", "()[Ljava/lang/Object;");
    (void)(*vm.ti)->GetClassLoader(vm.ti, class, &loader);
    (void)(*vm.ti)->GetClassStatus(vm.ti, class, &status);
    signers = get_signers ? (*env)->CallObjectMethod(env, class, get_signers) : NULL;
    vm_clear_exception(env);
    jobject domain = protection_domain(env, class, of_classes);
    buf_u8(b, JVMPI_GC_CLASS_DUMP);
    put_pointer(b, id);
    put_pointer(b, layer_report_class(env, super));
    put_pointer(b, layer_report_object(env, loader));
    put_pointer(b, layer_report_object(env, signers));
    put_pointer(b, layer_report_object(env, domain));
    put_pointer(b, NULL); /* the class's name, and a reserved pointer */
    put_pointer(b, NULL);
    buf_be32(b, (uint32_t)layer_instance_size(env, class));
    if (!(status & JVMTI_CLASS_STATUS_ARRAY) &&
        !(*vm.ti)->GetImplementedInterfaces(vm.ti, class, &n, &interfaces)) {
        for (jint i = 0; i < n; i++) {
            put_pointer(b, layer_report_class(env, interfaces[i]));
            (*env)->DeleteLocalRef(env, interfaces[i]);
        }
        vm_free(interfaces);
    }
    buf_be16(b, 0); /* no constants, as in the old VMs */
    /* Reading statics would initialize the class. */
    put_fields(env, b, NULL, class, true, status & JVMTI_CLASS_STATUS_INITIALIZED);
    (*env)->DeleteLocalRef(env, super);
    (*env)->DeleteLocalRef(env, loader);
    (*env)->DeleteLocalRef(env, signers);
    (*env)->DeleteLocalRef(env, domain);
    (*env)->DeleteLocalRef(env, of_classes);
}

jint layer_request_object_dump(JNIEnv *env, jobjectID id)
{
    struct buf b = BUF(DUMP_LIMIT);
    char *signature = NULL;
    jobject object = layer_object_of(env, id);
    if (!object)
        return JVMPI_FAIL;
    layer_brackets_hold();
    my.quiet++;
    (void)layer_report_object(env, object);
    jclass class = (*env)->GetObjectClass(env, object);
    (void)(*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL);
    jint kind = layer_kind_of_signature(signature);
    vm_free(signature);
    jclass of_classes = boot_class(env, "java/lang/Class");
    if ((*env)->IsSameObject(env, class, of_classes) && layer_report_class(env, object))
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
    my.quiet--;
    jint ret = buf_error(&b) ? JVMPI_FAIL : JVMPI_SUCCESS;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_OBJECT_DUMP | JVMPI_REQUESTED_EVENT,
                     .u.object_dump = {(jint)b.len, (char *)b.data}};
    if (ret == JVMPI_SUCCESS)
        layer_notify(env, &e);
    layer_brackets_release();
    buf_release(&b);
    return ret;
}
