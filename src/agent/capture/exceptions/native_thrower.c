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
    jmethodID get_trace, is_native, get_name, get_line;
    struct class_map classes; /* numbers, from 1 */
    pthread_mutex_t lock;
    uint64_t n_classes;
    struct map methods; /* by number of the class << 16 | method: its jmethodID << 8 | attempts */
} known = {.classes = {.lock = PTHREAD_MUTEX_INITIALIZER}, .lock = PTHREAD_MUTEX_INITIALIZER};

static __thread bool runs;

/* The two innermost frames of a stack trace, as the VM keeps it. */
struct backtrace {
    jclass class, caller_class;
    jshort method, caller; /* their numbers in their classes, which do not change */
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
    jshort methods_read[2] = {0};
    if (!methods || !places || !classes)
        return false;
    (*jni)->GetShortArrayRegion(jni, methods, 0, 2, methods_read);
    (*jni)->GetIntArrayRegion(jni, places, 0, 2, places_read);
    ret->method = methods_read[0];
    ret->caller = methods_read[1];
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

static jint line_at(jmethodID m, jlocation at)
{
    jvmtiLineNumberEntry *lines = NULL;
    jint n = 0, line = -1;
    if ((*vm.ti)->GetLineNumberTable(vm.ti, m, &n, &lines) != JVMTI_ERROR_NONE)
        return -1;
    jlocation best = -1;
    for (jint i = 0; i < n; i++)
        if (lines[i].start_location <= at && lines[i].start_location > best) {
            best = lines[i].start_location;
            line = lines[i].line_number;
        }
    vm_free(lines);
    return line;
}

/* What a method must be: native, or at a line in its `at`; -1: unknown. */
struct wanted {
    const char *name;
    bool native;
    jlocation at;
    jint line;
};

static bool is_wanted(jmethodID m, const struct wanted *w)
{
    char *name = NULL;
    jboolean native = JNI_FALSE;
    bool is = (*vm.ti)->IsMethodNative(vm.ti, m, &native) == JVMTI_ERROR_NONE &&
              native == w->native &&
              (*vm.ti)->GetMethodName(vm.ti, m, &name, NULL, NULL) == JVMTI_ERROR_NONE &&
              strcmp(name, w->name) == 0 && (w->line < 0 || line_at(m, w->at) == w->line);
    vm_free(name);
    return is;
}

static jmethodID method_wanted(jclass class, const struct wanted *w)
{
    jmethodID *all = NULL, found = NULL;
    jint n = 0;
    if ((*vm.ti)->GetClassMethods(vm.ti, class, &n, &all) != JVMTI_ERROR_NONE)
        return NULL;
    for (jint i = 0; i < n && !found; i++)
        found = is_wanted(all[i], w) ? all[i] : NULL;
    vm_free(all);
    return found;
}

/*
 * Finds the method of frame 0 of a stack trace, which must be native, or of frame 1, its caller at
 * a location. NULL if it is not, or if that cannot be found out: there is no memory, or the trace
 * is no longer the VM's.
 */
static jmethodID find_method(JNIEnv *jni, jobject exception, jclass class, jsize i, jlocation at)
{
    struct wanted w = {.native = i == 0, .at = at, .line = -1};
    /* This calls no override, which would be code of the program. */
    jobjectArray trace =
        (*jni)->CallNonvirtualObjectMethod(jni, exception, known.throwable, known.get_trace);
    if (vm_clear_exception(jni) || !trace || (*jni)->GetArrayLength(jni, trace) < 2)
        return NULL;
    jobject frame = (*jni)->GetObjectArrayElement(jni, trace, i);
    bool native = frame && (*jni)->CallBooleanMethod(jni, frame, known.is_native);
    if (vm_clear_exception(jni) || !frame || native != w.native)
        return NULL;
    if (!native)
        w.line = (*jni)->CallIntMethod(jni, frame, known.get_line);
    if (vm_clear_exception(jni))
        return NULL;
    jstring name = (*jni)->CallObjectMethod(jni, frame, known.get_name);
    if (vm_clear_exception(jni) || !name)
        return NULL;
    w.name = (*jni)->GetStringUTFChars(jni, name, NULL);
    jmethodID found = w.name ? method_wanted(class, &w) : NULL;
    if (w.name)
        (*jni)->ReleaseStringUTFChars(jni, name, w.name);
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

/* Returns the method of frame 0 or 1, which the first exceptions with it make known, or NULL. */
static jmethodID method_of(JNIEnv *jni, jobject exception, const struct backtrace *b, jsize i)
{
    jclass class = i == 0 ? b->class : b->caller_class;
    uint64_t number = class_number(jni, class);
    if (!number)
        return NULL;
    uint64_t key = number << 16 | (uint16_t)(i == 0 ? b->method : b->caller);
    pthread_mutex_lock(&known.lock);
    const uint64_t *seen = map_get(&known.methods, key);
    uint64_t found = seen ? *seen : 0;
    pthread_mutex_unlock(&known.lock);
    jmethodID method = (jmethodID)(uintptr_t)(found >> 8);
    if (method || (found & 255) == ATTEMPTS)
        return method;
    method = find_method(jni, exception, class, i, b->caller_bci);
    pthread_mutex_lock(&known.lock);
    (void)!map_put(&known.methods, key, (uint64_t)(uintptr_t)method << 8 | ((found & 255) + 1));
    pthread_mutex_unlock(&known.lock);
    return method;
}

static jmethodID find(JNIEnv *jni, jobject exception, jmethodID method, jlocation at)
{
    struct backtrace b;
    if (!read_backtrace(jni, exception, &b) || b.caller_bci != at ||
        !is_of(jni, method, b.caller_class))
        return NULL;
    jmethodID native = method_of(jni, exception, &b, 0);
    /* Another method of the class may throw it later, at a place with the same number. */
    return native && method_of(jni, exception, &b, 1) == method ? native : NULL;
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
    known.get_line = vm_method(jni, frame, "getLineNumber", "()I");
    bool all = known.shorts && known.ints && known.objects && known.throwable && known.get_trace &&
               known.is_native && known.get_name && known.get_line;
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
