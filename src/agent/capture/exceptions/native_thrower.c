/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/exceptions/native_thrower.h"

#include "agent/vm/class_map.h"
#include "agent/vm/vm.h"
#include "base/map.h"

#include <pthread.h>
#include <string.h>

/* how often a method is looked for */
enum { ATTEMPTS = 8 };

static struct {
    jfieldID backtrace;
    jclass shorts, ints, objects, throwable; /* short[], int[], Object[] */
    jmethodID get_trace, is_native, get_name;
    struct class_map classes; /* numbers, from 1 */
    pthread_mutex_t lock;
    uint64_t n_classes;
    struct map methods; /* by number of the class << 16 | method: its jmethodID << 8 | attempts */
} known = {.classes = {.lock = PTHREAD_MUTEX_INITIALIZER}, .lock = PTHREAD_MUTEX_INITIALIZER};

static __thread bool runs;

/* The two innermost frames of a stack trace, as the VM keeps it. */
struct backtrace {
    jclass class, caller_class;
    jshort method; /* its number in its class, which does not change */
    jint caller_bci;
};

/* Returns element i of the VM's arrays if it is of the type and has two elements; else NULL. */
static jobject element(JNIEnv *jni, jobject arrays, jsize i, jclass type)
{
    jobject o = (*jni)->GetObjectArrayElement(jni, arrays, i);
    return o && (*jni)->IsInstanceOf(jni, o, type) && (*jni)->GetArrayLength(jni, o) >= 2 ? o
                                                                                          : NULL;
}

/*
 * Reads the field Throwable.backtrace: arrays of the numbers of methods, of the locations (bci <<
 * 16 | version), and of the classes.
 */
static bool read_backtrace(JNIEnv *jni, jobject exception, struct backtrace *ret)
{
    jobject all = (*jni)->GetObjectField(jni, exception, known.backtrace);
    if (!all || !(*jni)->IsInstanceOf(jni, all, known.objects) ||
        (*jni)->GetArrayLength(jni, all) < 3)
        return false;
    jshortArray methods = element(jni, all, 0, known.shorts);
    jintArray places = element(jni, all, 1, known.ints);
    jobjectArray classes = element(jni, all, 2, known.objects);
    jint places_read[2] = {0};
    if (!methods || !places || !classes)
        return false;
    (*jni)->GetShortArrayRegion(jni, methods, 0, 1, &ret->method);
    (*jni)->GetIntArrayRegion(jni, places, 0, 2, places_read);
    ret->caller_bci = (jint)((uint32_t)places_read[1] >> 16);
    ret->class = (*jni)->GetObjectArrayElement(jni, classes, 0);
    ret->caller_class = (*jni)->GetObjectArrayElement(jni, classes, 1);
    return ret->class && ret->caller_class;
}

static bool is_of(JNIEnv *jni, jmethodID m, jclass class)
{
    jclass declaring = NULL;
    return (*vm.ti)->GetMethodDeclaringClass(vm.ti, m, &declaring) == JVMTI_ERROR_NONE &&
           (*jni)->IsSameObject(jni, declaring, class);
}

/* Returns the native method of a class that has a name, or NULL. */
static jmethodID native_named(jclass class, const char *name)
{
    jmethodID *all = NULL, found = NULL;
    jint n = 0;
    if ((*vm.ti)->GetClassMethods(vm.ti, class, &n, &all) != JVMTI_ERROR_NONE)
        return NULL;
    for (jint i = 0; i < n && !found; i++) {
        char *one = NULL;
        jboolean native = JNI_FALSE;
        if ((*vm.ti)->IsMethodNative(vm.ti, all[i], &native) == JVMTI_ERROR_NONE && native &&
            (*vm.ti)->GetMethodName(vm.ti, all[i], &one, NULL, NULL) == JVMTI_ERROR_NONE)
            found = strcmp(one, name) == 0 ? all[i] : NULL;
        vm_free(one);
    }
    vm_free(all);
    return found;
}

/*
 * Finds the method of the first frame of a stack trace. NULL if it is not native, or if that cannot
 * be found out: there is no memory, or the trace is no longer the VM's.
 */
static jmethodID first_native(JNIEnv *jni, jobject exception, jclass class)
{
    /* This calls no override, which would be code of the program. */
    jobjectArray trace =
        (*jni)->CallNonvirtualObjectMethod(jni, exception, known.throwable, known.get_trace);
    if (vm_clear_exception(jni) || !trace || (*jni)->GetArrayLength(jni, trace) < 2)
        return NULL;
    jobject frame = (*jni)->GetObjectArrayElement(jni, trace, 0);
    bool native = frame && (*jni)->CallBooleanMethod(jni, frame, known.is_native);
    if (vm_clear_exception(jni) || !native)
        return NULL;
    jstring name = (*jni)->CallObjectMethod(jni, frame, known.get_name);
    if (vm_clear_exception(jni) || !name)
        return NULL;
    const char *text = (*jni)->GetStringUTFChars(jni, name, NULL);
    jmethodID found = text ? native_named(class, text) : NULL;
    if (text)
        (*jni)->ReleaseStringUTFChars(jni, name, text);
    vm_clear_exception(jni);
    return found;
}

static uint64_t class_number(JNIEnv *jni, jclass class)
{
    uint64_t number = 0;
    if (class_map_get(&known.classes, jni, class, &number))
        return number;
    pthread_mutex_lock(&known.lock);
    number = ++known.n_classes;
    pthread_mutex_unlock(&known.lock);
    class_map_put(&known.classes, jni, class, number);
    return class_map_get(&known.classes, jni, class, &number) ? number : 0;
}

static jmethodID find(JNIEnv *jni, jobject exception, jmethodID method, jlocation at)
{
    struct backtrace b;
    if (!read_backtrace(jni, exception, &b) || b.caller_bci != at ||
        !is_of(jni, method, b.caller_class))
        return NULL;
    uint64_t number = class_number(jni, b.class);
    if (!number)
        return NULL;
    uint64_t key = number << 16 | (uint16_t)b.method;
    pthread_mutex_lock(&known.lock);
    const uint64_t *seen = map_get(&known.methods, key);
    uint64_t found = seen ? *seen : 0;
    pthread_mutex_unlock(&known.lock);
    jmethodID native = (jmethodID)(uintptr_t)(found >> 8);
    if (native || (found & 255) == ATTEMPTS)
        return native;
    native = first_native(jni, exception, b.class);
    pthread_mutex_lock(&known.lock);
    (void)!map_put(&known.methods, key, (uint64_t)(uintptr_t)native << 8 | ((found & 255) + 1));
    pthread_mutex_unlock(&known.lock);
    return native;
}

jmethodID native_thrower(JNIEnv *jni, jobject exception, jmethodID method, jlocation at)
{
    jboolean native = JNI_FALSE;
    /* Interpreted native methods are still on the stack, with a location that is 0. */
    if (!known.backtrace || at < 0 ||
        ((*vm.ti)->IsMethodNative(vm.ti, method, &native) == JVMTI_ERROR_NONE && native))
        return NULL;
    if ((*jni)->PushLocalFrame(jni, 32) != 0) {
        vm_clear_exception(jni);
        return NULL;
    }
    runs = true;
    jmethodID found = find(jni, exception, method, at);
    runs = false;
    (*jni)->PopLocalFrame(jni, NULL);
    return found;
}

bool native_thrower_runs(void)
{
    return runs;
}

void native_thrower_start(JNIEnv *jni)
{
    static const char frame[] = "java/lang/StackTraceElement";
    known.shorts = vm_class(jni, "[S");
    known.ints = vm_class(jni, "[I");
    known.objects = vm_class(jni, "[Ljava/lang/Object;");
    known.throwable = vm_class(jni, "java/lang/Throwable");
    known.get_trace =
        vm_method(jni, "java/lang/Throwable", "getStackTrace", "()[Ljava/lang/StackTraceElement;");
    known.is_native = vm_method(jni, frame, "isNativeMethod", "()Z");
    known.get_name = vm_method(jni, frame, "getMethodName", "()Ljava/lang/String;");
    bool all = known.shorts && known.ints && known.objects && known.throwable && known.get_trace &&
               known.is_native && known.get_name;
    known.backtrace =
        all ? vm_field(jni, "java/lang/Throwable", "backtrace", "Ljava/lang/Object;") : NULL;
}

void native_thrower_release(JNIEnv *jni)
{
    jclass *const all[] = {&known.shorts, &known.ints, &known.objects, &known.throwable};
    known.backtrace = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (jni && *all[i])
            (*jni)->DeleteGlobalRef(jni, *all[i]);
        *all[i] = NULL;
    }
    class_map_release(&known.classes, jni);
    map_release(&known.methods);
}
