/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OBJECT_ALLOC before JDK 11, whose JVM TI does not report allocations by code. Probes in the
 * constructor of Object and after the instructions that create arrays report these; JVM TI reports
 * what the VM allocates, and JNI's function table what native code allocates. Allocations that the
 * JIT makes in place of a method (Arrays.copyOf) are not seen.
 */
#include "jvmpi/boot_classes.h"
#include "jvmpi/layer.h"
#include "jvmpi/objects.h"
#include "jvmpi/probes.h"
#include "jvmpi/sources.h"

PROBE_NATIVE(void, allocated)(JNIEnv *, jclass, jobject, jboolean);

static void report(JNIEnv *env, jobject object)
{
    if (!object || !layer_enabled(JVMPI_EVENT_OBJECT_ALLOC) || my.probe_inside || my.quiet ||
        !atomic_load(&layer.live))
        return;
    my.probe_inside++;
    (void)layer_report_new_object(env, object);
    my.probe_inside--;
}

/* Reports an array and the arrays in it. */
static void report_nested(JNIEnv *env, jobject array, int depth)
{
    jclass class = boot_class(env, "[Ljava/lang/Object;");
    report(env, array);
    if (depth > 0 && (*env)->IsInstanceOf(env, array, class)) {
        jsize n = (*env)->GetArrayLength(env, array);
        for (jsize i = 0; i < n; i++) {
            jobject element = (*env)->GetObjectArrayElement(env, array, i);
            if (!element)
                break; /* there are no further dimensions */
            report_nested(env, element, depth - 1);
            (*env)->DeleteLocalRef(env, element);
        }
    }
    (*env)->DeleteLocalRef(env, class);
}

PROBE_NATIVE(void, allocated)(JNIEnv *env, jclass class, jobject object, jboolean nested)
{
    if (nested)
        report_nested(env, object, 255);
    else
        report(env, object);
}

/* ---- native code ---- */

static jniNativeInterface *original;

static jobject JNICALL alloc_object(JNIEnv *env, jclass class)
{
    jobject o = original->AllocObject(env, class);
    report(env, o);
    return o;
}

static jobjectArray JNICALL new_object_array(JNIEnv *env, jsize n, jclass class, jobject initial)
{
    jobjectArray o = original->NewObjectArray(env, n, class, initial);
    report(env, o);
    return o;
}

/* Reports a string and the array of its characters, which the VM allocates as well. */
static jstring string(JNIEnv *env, jstring s)
{
    static jfieldID value;
    if (s && layer_enabled(JVMPI_EVENT_OBJECT_ALLOC) && !my.probe_inside && !my.quiet) {
        if (!value) {
            jclass class = (*env)->GetObjectClass(env, s);
            value = (*env)->GetFieldID(env, class, "value", "[C");
            (*env)->DeleteLocalRef(env, class);
        }
        jobject characters = value ? (*env)->GetObjectField(env, s, value) : NULL;
        report(env, characters);
        (*env)->DeleteLocalRef(env, characters);
        report(env, s);
    }
    return s;
}

static jstring JNICALL new_string(JNIEnv *env, const jchar *text, jsize n)
{
    return string(env, original->NewString(env, text, n));
}

static jstring JNICALL new_string_utf(JNIEnv *env, const char *text)
{
    return string(env, original->NewStringUTF(env, text));
}

#define PRIMITIVES(X)         \
    X(Boolean, jbooleanArray) \
    X(Byte, jbyteArray)       \
    X(Char, jcharArray)       \
    X(Short, jshortArray)     \
    X(Int, jintArray) X(Long, jlongArray) X(Float, jfloatArray) X(Double, jdoubleArray)
#define PRIMITIVE(name, type)                            \
    static type JNICALL new_##name(JNIEnv *env, jsize n) \
    {                                                    \
        type o = original->New##name##Array(env, n);     \
        report(env, o);                                  \
        return o;                                        \
    }
PRIMITIVES(PRIMITIVE)

jint allocations_enable(JNIEnv *env)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static bool on;
    jniNativeInterface *table = NULL;
    if (vm.have.can_generate_sampled_object_alloc_events)
        return JVMPI_SUCCESS; /* JVM TI reports all allocations */
    pthread_mutex_lock(&once);
    if (!on && !(*vm.ti)->GetJNIFunctionTable(vm.ti, &original) &&
        !(*vm.ti)->GetJNIFunctionTable(vm.ti, &table)) {
        table->AllocObject = alloc_object;
        table->NewObjectArray = new_object_array;
        table->NewString = new_string;
        table->NewStringUTF = new_string_utf;
#define REPLACE(name, type) table->New##name##Array = new_##name;
        PRIMITIVES(REPLACE)
        on = !(*vm.ti)->SetJNIFunctionTable(vm.ti, table);
        vm_free(table);
    }
    pthread_mutex_unlock(&once);
    return on ? probes_enable(env, PROBE_ALLOCATIONS) : JVMPI_FAIL;
}
