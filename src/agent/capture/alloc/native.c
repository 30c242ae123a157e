/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations by native code. JNI functions that create objects are replaced by counting ones (JVM
 * TI, SetJNIFunctionTable). NewObject becomes AllocObject and a constructor call, as in the VM, so
 * that an object whose constructor throws is counted.
 *
 * From JDK 18 on, capturing lambdas are created by Unsafe.allocateInstance. It is bound to
 * AllocObject, which does the same; otherwise the VM would post an event for each object, which is
 * a million events per second in javac.
 *
 * On JDK 8 method handles call that method from the VM's own code, which has no probes, and the JIT
 * recognizes it by a number in the VM's structure of the method: compiled code creates the object
 * itself. While objects are counted, the number is 0, as in ordinary methods.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/instrument/rebind.h"
#include "agent/vm/flags.h"
#include "agent/vm/image.h"
#include "hotspot/memory.h"
#include "hotspot/tables.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static jniNativeInterface real;

static jobject counted(JNIEnv *jni, jobject o)
{
    if (o)
        alloc_count(jni, o);
    return o;
}

static jobject JNICALL alloc_object(JNIEnv *jni, jclass class)
{
    return counted(jni, real.AllocObject(jni, class));
}

static jobject made(JNIEnv *jni, jobject o)
{
    if (!real.ExceptionCheck(jni))
        return o;
    real.DeleteLocalRef(jni, o);
    return NULL;
}

static jobject JNICALL new_object_v(JNIEnv *jni, jclass class, jmethodID constructor,
                                    va_list arguments)
{
    jobject o = alloc_object(jni, class);
    if (!o)
        return NULL;
    real.CallNonvirtualVoidMethodV(jni, o, class, constructor, arguments);
    return made(jni, o);
}

static jobject JNICALL new_object(JNIEnv *jni, jclass class, jmethodID constructor, ...)
{
    va_list arguments;
    va_start(arguments, constructor);
    jobject o = new_object_v(jni, class, constructor, arguments);
    va_end(arguments);
    return o;
}

static jobject JNICALL new_object_a(JNIEnv *jni, jclass class, jmethodID constructor,
                                    const jvalue *arguments)
{
    jobject o = alloc_object(jni, class);
    if (!o)
        return NULL;
    real.CallNonvirtualVoidMethodA(jni, o, class, constructor, arguments);
    return made(jni, o);
}

/* A string is two objects, because its characters are in an array of their own. */
static jstring string_counted(JNIEnv *jni, jstring s)
{
    static jfieldID value;
    if (!s)
        return NULL;
    alloc_count(jni, s);
    if (!value) {
        jclass class = real.GetObjectClass(jni, s);
        value = real.GetFieldID(jni, class, "value", vm.version >= 9 ? "[B" : "[C");
        real.DeleteLocalRef(jni, class);
    }
    jobject characters = value ? real.GetObjectField(jni, s, value) : NULL;
    alloc_count(jni, characters);
    if (characters)
        real.DeleteLocalRef(jni, characters);
    return s;
}

static jstring JNICALL new_string(JNIEnv *jni, const jchar *characters, jsize n)
{
    return string_counted(jni, real.NewString(jni, characters, n));
}

static jstring JNICALL new_string_utf(JNIEnv *jni, const char *bytes)
{
    return string_counted(jni, real.NewStringUTF(jni, bytes));
}

static jobjectArray JNICALL new_object_array(JNIEnv *jni, jsize n, jclass class, jobject first)
{
    return counted(jni, real.NewObjectArray(jni, n, class, first));
}

#define PRIMITIVES(X) X(Boolean) X(Byte) X(Char) X(Short) X(Int) X(Long) X(Float) X(Double)
#define NEW_ARRAY(name)                                     \
    static jarray JNICALL new_##name(JNIEnv *jni, jsize n)  \
    {                                                       \
        return counted(jni, real.New##name##Array(jni, n)); \
    }
PRIMITIVES(NEW_ARRAY)

/*
 * If instrumented code has announced this call (alloc_expected), it counts the object itself. That
 * is asked before the call, which may initialize the class, whose code may create other objects.
 */
static jobject JNICALL allocate_instance(JNIEnv *jni, jobject unsafe, jclass class)
{
    bool expected = alloc_expected();
    jobject o = real.AllocObject(jni, class);
    return expected ? o : counted(jni, o);
}

static void *real_allocate;
static const struct rebind_row rows[] = {
    {"allocateInstance", (void *)allocate_instance, &real_allocate}};

/* Installs our functions in a table, or restores the originals where ours are still installed. */
static void change(jniNativeInterface *t, bool to_ours)
{
#define ENTRY(name, function)                            \
    if (to_ours)                                         \
        t->name = (__typeof__(t->name))(function);       \
    else if (t->name == (__typeof__(t->name))(function)) \
        t->name = real.name;
    ENTRY(AllocObject, alloc_object)
    ENTRY(NewObject, new_object)
    ENTRY(NewObjectV, new_object_v)
    ENTRY(NewObjectA, new_object_a)
    ENTRY(NewString, new_string)
    ENTRY(NewStringUTF, new_string_utf)
    ENTRY(NewObjectArray, new_object_array)
#define ARRAY_ENTRY(name) ENTRY(New##name##Array, new_##name)
    PRIMITIVES(ARRAY_ENTRY)
}

static int set(bool to_ours)
{
    jniNativeInterface *table = NULL;
    if ((*vm.ti)->GetJNIFunctionTable(vm.ti, &table) != JVMTI_ERROR_NONE)
        return -EPROTO;
    if (to_ours)
        real = *table;
    change(table, to_ours);
    int r = (*vm.ti)->SetJNIFunctionTable(vm.ti, table) == JVMTI_ERROR_NONE ? 0 : -EPROTO;
    vm_free(table);
    return r;
}

/* The number by which the JIT of JDK 8 recognizes Unsafe.allocateInstance. */
static struct {
    uint8_t *place; /* NULL: not found, or not changed */
    uint8_t number;
} known_to_jit;

static int find_number(void *context, const struct table_entry *e)
{
    if (e->kind == TABLE_FIELD && strcmp(e->type, "Method") == 0 &&
        strcmp(e->name, "_intrinsic_id") == 0)
        *(uint64_t *)context = (uint64_t)e->value;
    return 0;
}

static void hide_from_jit(JNIEnv *jni)
{
    uint64_t offset = 0, method = 0;
    /* With -Xcheck:jni the VM prints on the program's output that a signal handler was replaced. */
    if (vm.version != 8 || !vm.hotspot || vm_flag("CheckJNICalls") || memory_guard_init() < 0 ||
        hotspot_tables_visit(&vm_image, find_number, &offset) < 0 || !offset)
        return;
    /* A jmethodID is the address of the method's address. */
    jmethodID id = vm_method(jni, "sun/misc/Unsafe", "allocateInstance",
                             "(Ljava/lang/Class;)Ljava/lang/Object;");
    uint8_t number = 0;
    if (!id || !load_u64(&process_memory, (uint64_t)(uintptr_t)id, &method) ||
        !load_u8(&process_memory, method + offset, &number) || !number)
        return;
    known_to_jit.place = (uint8_t *)(uintptr_t)(method + offset);
    known_to_jit.number = number;
    __atomic_store_n(known_to_jit.place, 0, __ATOMIC_RELAXED);
}

static void show_to_jit(void)
{
    if (known_to_jit.place)
        __atomic_store_n(known_to_jit.place, known_to_jit.number, __ATOMIC_RELAXED);
    known_to_jit.place = NULL;
}

static bool on; /* true while at least some of them are installed */

int alloc_native_on(JNIEnv *jni, struct buf *why)
{
    on = true;
    int r = set(true);
    if (r == 0)
        r = rebind_natives(jni, rows, ARRAY_SIZE(rows), true, NULL);
    if (r < 0)
        buf_printf(why, "the VM does not allow the functions of JNI to be replaced");
    else
        hide_from_jit(jni);
    return MIN(r, 0);
}

void alloc_native_off(JNIEnv *jni)
{
    if (!on)
        return;
    on = false;
    show_to_jit();
    if (real_allocate && !vm.dying)
        (void)!rebind_natives(jni, rows, ARRAY_SIZE(rows), false, NULL);
    (void)!set(false);
}
