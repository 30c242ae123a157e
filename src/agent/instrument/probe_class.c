/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/probe_class.h"

#include "agent/common/fault.h"
#include "agent/vm/vm.h"
#include "classfile/classfile.h"
#include "classfile/rename.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { MAX_DEFINED = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `defined`, never Java code */

static struct {
    const char *name;
    jclass class;
} defined[MAX_DEFINED];

/* Returns a class that has been defined, or NULL. */
static jclass find_defined(const char *name)
{
    jclass found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_DEFINED && defined[i].class && !found; i++)
        found = strcmp(defined[i].name, name) == 0 ? defined[i].class : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Notes that a class has been defined. Returns false if there are too many. */
static bool note_defined(const char *name, jclass class)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < MAX_DEFINED && defined[i].class)
        i++;
    if (i < MAX_DEFINED) {
        defined[i].name = name;
        defined[i].class = class;
    }
    pthread_mutex_unlock(&lock);
    return i < MAX_DEFINED;
}

static const struct class_renaming names_8[] = {
    {"jvmscope/ForceInline", "java/lang/invoke/ForceInline"},
    {"Ljvmscope/ForceInline;", "Ljava/lang/invoke/ForceInline;"},
    {"jvmscope/DontInline", "java/lang/invoke/DontInline"},
    {"Ljvmscope/DontInline;", "Ljava/lang/invoke/DontInline;"},
    {"Ljvmscope/Stable;", "Ljava/lang/invoke/Stable;"},
    {NULL, NULL},
};

/* Since 12; from 9 to 11 without the first two rows. */
static const struct class_renaming names_12[] = {
    {"getObjectVolatile", "getReferenceVolatile"},
    {"getObject", "getReference"},
    {"jvmscope/ForceInline", "jdk/internal/vm/annotation/ForceInline"},
    {"Ljvmscope/ForceInline;", "Ljdk/internal/vm/annotation/ForceInline;"},
    {"jvmscope/DontInline", "jdk/internal/vm/annotation/DontInline"},
    {"Ljvmscope/DontInline;", "Ljdk/internal/vm/annotation/DontInline;"},
    {"Ljvmscope/Stable;", "Ljdk/internal/vm/annotation/Stable;"},
    {"sun/misc/Unsafe", "jdk/internal/misc/Unsafe"},
    {"()Lsun/misc/Unsafe;", "()Ljdk/internal/misc/Unsafe;"},
    {"Lsun/misc/Unsafe;", "Ljdk/internal/misc/Unsafe;"},
    {"putOrderedLong", "putLongRelease"},
    {"putOrderedInt", "putIntRelease"},
    {"compareAndSwapLong", "compareAndSetLong"},
    {NULL, NULL},
};

static const struct class_renaming names_any[] = {
    {"jvmscope/Carrier", "java/lang/Thread"},
    {NULL, NULL},
};

static const struct probe_class *find_class(const char *name)
{
    for (const struct probe_class *p = probe_classes; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

static jclass define(JNIEnv *jni, const struct probe_class *p)
{
    struct buf bytes = BUF(1u << 20);
    const struct class_renaming *names = vm.version >= 12  ? names_12
                                         : vm.version >= 9 ? names_12 + 2
                                                           : names_8;
    jclass class = NULL, global = NULL;
    struct class_renaming all[32];
    size_t n = 0;
    for (; names->from; names++)
        all[n++] = *names;
    for (const struct class_renaming *r = names_any; r->from; r++)
        all[n++] = *r;
    all[n++] = (struct class_renaming){"carrier",
                                       vm.version >= 21 ? "currentCarrierThread" : "currentThread"};
    all[n] = (struct class_renaming){NULL, NULL};
    if (class_rename(p->bytes, p->len, all, &bytes) == 0)
        class =
            (*jni)->DefineClass(jni, p->name, NULL, (const jbyte *)bytes.data, (jsize)bytes.len);
    if (class)
        global = (*jni)->NewGlobalRef(jni, class);
    buf_release(&bytes);
    return global;
}

static int initialise(JNIEnv *jni, jclass class)
{
    jmethodID bind = (*jni)->GetStaticMethodID(jni, class, "bind", "()V");
    if (bind)
        (*jni)->CallStaticVoidMethod(jni, class, bind);
    return bind && !(*jni)->ExceptionCheck(jni) ? 0 : -EPROTO;
}

bool probe_is_class(const char *name)
{
    static const char prefix[] = "java/lang/Jvmscope";
    for (size_t i = 0; prefix[i]; i++)
        if (name[i] != prefix[i] && !(prefix[i] == '/' && name[i] == '.'))
            return false;
    return true;
}

int probe_define(JNIEnv *jni, const char *name, jclass *ret, struct buf *why)
{
    if (fault_here())
        return -EPROTO;
    jclass class = find_defined(name);
    if (class) {
        *ret = class;
        return 0;
    }
    const struct probe_class *p = find_class(name);
    class = p ? define(jni, p) : NULL;
    int r = class ? 0 : -EPROTO;
    if (r == 0)
        r = initialise(jni, class);
    if (r == 0 && !note_defined(p->name, class))
        r = -EPROTO;
    if (r < 0) {
        if ((*jni)->ExceptionCheck(jni))
            (*jni)->ExceptionDescribe(jni);
        buf_printf(why, "the VM refuses the probe class %s%s", name,
                   vm.attached ? " (by another command than jvmscope attach, load the agent once "
                                 "before it is to record)"
                               : "");
        return r;
    }
    *ret = class;
    return 0;
}

int64_t probe_reflected_offset(JNIEnv *jni, jobject field, bool is_static)
{
    const char *name = is_static ? "staticFieldOffset" : "objectFieldOffset";
    int64_t offset = -ENOENT;
    jclass unsafe;
    jobject u = vm_unsafe(jni, &unsafe);
    jmethodID ask =
        u ? (*jni)->GetMethodID(jni, unsafe, name, "(Ljava/lang/reflect/Field;)J") : NULL;
    if (ask) {
        jlong found = (*jni)->CallLongMethod(jni, u, ask, field);
        if (!(*jni)->ExceptionCheck(jni))
            offset = found;
    }
    vm_clear_exception(jni);
    return offset;
}

static bool is_field(jclass class, jfieldID id, const char *name, const char *descriptor)
{
    char *own = NULL, *type = NULL;
    jint modifiers = 0;
    bool is = (*vm.ti)->GetFieldModifiers(vm.ti, class, id, &modifiers) == JVMTI_ERROR_NONE &&
              !(modifiers & ACC_STATIC) &&
              (*vm.ti)->GetFieldName(vm.ti, class, id, &own, &type, NULL) == JVMTI_ERROR_NONE &&
              strcmp(own, name) == 0 && strcmp(type, descriptor) == 0;
    vm_free(own);
    vm_free(type);
    return is;
}

/*
 * Finds a field that the class itself declares. GetFieldID is not used, because it initializes the
 * class, which would run code of the program where the program does not run it.
 */
static jfieldID declared_field(jclass class, const char *name, const char *descriptor)
{
    jint n = 0;
    jfieldID *fields = NULL, found = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, class, &n, &fields) != JVMTI_ERROR_NONE)
        return NULL;
    for (jint i = 0; i < n && !found; i++)
        found = is_field(class, fields[i], name, descriptor) ? fields[i] : NULL;
    vm_free(fields);
    return found;
}

int64_t probe_class_field_offset(JNIEnv *jni, jclass class, const char *field,
                                 const char *descriptor)
{
    jfieldID id = NULL;
    for (jclass c = class; c && !id; c = id ? c : (*jni)->GetSuperclass(jni, c)) {
        id = declared_field(c, field, descriptor);
        class = c;
    }
    jobject reflected = id ? (*jni)->ToReflectedField(jni, class, id, JNI_FALSE) : NULL;
    int64_t offset = reflected ? probe_reflected_offset(jni, reflected, false) : -ENOENT;
    vm_clear_exception(jni);
    return offset;
}

/*
 * Links a class, so that the VM knows its fields, but does not initialize it, as FindClass would:
 * initializing VirtualThread starts a thread in the program, which the program itself may never do.
 */
static void link_class(JNIEnv *jni, jclass c)
{
    jint status = 0;
    if ((*vm.ti)->GetClassStatus(vm.ti, c, &status) == JVMTI_ERROR_NONE &&
        status & JVMTI_CLASS_STATUS_PREPARED)
        return;
    /* It links the class first; of public constructors, VirtualThread has none to return. */
    jobjectArray(JNICALL * constructors)(JNIEnv *, jclass, jboolean public_only) = NULL;
    void *address = vm.hotspot ? vm_libjvm_function("JVM_GetClassDeclaredConstructors") : NULL;
    memcpy(&constructors, &address, sizeof(constructors));
    if (constructors)
        constructors(jni, c, JNI_TRUE);
    vm_clear_exception(jni);
}

int64_t probe_field_offset(JNIEnv *jni, const char *class_name, const char *field,
                           const char *descriptor)
{
    if ((*jni)->PushLocalFrame(jni, 16) != 0) {
        vm_clear_exception(jni);
        return -ENOMEM;
    }
    jclass class = vm_find_class(jni, class_name);
    if (class)
        link_class(jni, class);
    int64_t offset = probe_class_field_offset(jni, class, field, descriptor);
    (*jni)->PopLocalFrame(jni, NULL);
    return offset;
}
