/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/natives.h"

#include "agent/instrument/choice.h"
#include "agent/instrument/native_thunks.h"
#include "agent/vm/vm.h"
#include "base/hash.h"
#include "base/map.h"
#include "classfile/classfile.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* A method with a thunk. The row is complete before the VM gets the thunk's address. */
static struct bound {
    _Atomic(void *) function;
    jmethodID method;
    unsigned stack_words;
    bool is_static;
} bound[NATIVE_THUNKS ? NATIVE_THUNKS : 1];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
/* method -> the VM's own code, until the method has a thunk. */
static struct map noted;
static struct map numbers;    /* method -> index of `bound` */
static struct map intrinsics; /* hashes of class and method of intrinsics */
static uint32_t n_bound;
static _Atomic(const struct natives_client *) active;

void native_thunk_enter(struct native_frame *f)
{
    struct bound *b = &bound[f->index];
    jobject receiver = b->is_static ? NULL : (jobject)(uintptr_t)f->integers[1];
    f->seen = (uint64_t)atomic_load_explicit(&active, memory_order_relaxed)
                  ->enter((JNIEnv *)(uintptr_t)f->integers[0], b->method, receiver);
    f->function = atomic_load_explicit(&b->function, memory_order_acquire);
    f->stack_words = b->stack_words;
}

void native_thunk_exit(struct native_frame *f)
{
    atomic_load_explicit(&active, memory_order_relaxed)
        ->exit((JNIEnv *)(uintptr_t)f->integers[0], bound[f->index].method, (int)f->seen);
}

static uint64_t key_of(struct str class_name, struct str method)
{
    return hash_u64(hash_bytes(class_name.data, class_name.len)) ^
           hash_bytes(method.data, method.len);
}

void natives_intrinsic(struct str class_name, struct str method)
{
    pthread_mutex_lock(&lock);
    (void)!map_put(&intrinsics, key_of(class_name, method), 1);
    pthread_mutex_unlock(&lock);
}

static bool is_wanted(struct str class_name, struct str method, struct str descriptor)
{
    static const char *const excluded[] = {
        "java/lang/invoke/MethodHandle",       "java/lang/invoke/VarHandle",
        "java/lang/ClassLoader$NativeLibrary", "jdk/internal/loader/NativeLibraries",
        "jdk/internal/loader/NativeLibrary",   "jdk/internal/loader/RawNativeLibraries"};
    bool thread = str_is(class_name, "java/lang/Thread");
    for (size_t i = 0; i < ARRAY_SIZE(excluded); i++)
        if (str_is(class_name, excluded[i]))
            return false;
    if (thread && vm.version >= 21 && choice_thread_changes(method))
        return false;
    if (!thread && !str_is(class_name, "java/lang/Object") && choice_is_excluded(class_name))
        return false;
    if (vm.version < 9 && str_is(class_name, "java/lang/Object") && str_is(method, "wait"))
        /* The reference handler thread calls this while holding a lock that collections need. */
        return false;
    if (vm.version < 9)
        return !choice_intrinsic_8(class_name, method, descriptor);
    pthread_mutex_lock(&lock);
    bool is = map_get(&intrinsics, key_of(class_name, method));
    pthread_mutex_unlock(&lock);
    return !is;
}

struct description {
    char *class_signature, *name, *descriptor;
    jclass class;
};

static bool describe(jmethodID method, struct description *ret)
{
    *ret = (struct description){0};
    return !(*vm.ti)->GetMethodDeclaringClass(vm.ti, method, &ret->class) &&
           !(*vm.ti)->GetClassSignature(vm.ti, ret->class, &ret->class_signature, NULL) &&
           !(*vm.ti)->GetMethodName(vm.ti, method, &ret->name, &ret->descriptor, NULL) &&
           ret->class_signature[0] == 'L';
}

static void description_release(JNIEnv *jni, struct description *d)
{
    vm_free(d->class_signature);
    vm_free(d->name);
    vm_free(d->descriptor);
    if (d->class)
        (*jni)->DeleteLocalRef(jni, d->class);
}

/*
 * Returns a thunk that calls this code of the method, or NULL when the method must stay unchanged.
 */
static void *thunk_for(JNIEnv *jni, jmethodID method, const struct description *d, void *function)
{
    struct str class_name = {d->class_signature + 1, strlen(d->class_signature) - 2};
    jint modifiers = 0;
    void *thunk = NULL;
    if (!is_wanted(class_name, (struct str){d->name, strlen(d->name)},
                   (struct str){d->descriptor, strlen(d->descriptor)}) ||
        (*vm.ti)->GetMethodModifiers(vm.ti, method, &modifiers))
        return NULL;
    pthread_mutex_lock(&lock);
    bool added = false;
    uint64_t *number = n_bound < NATIVE_THUNKS
                           ? map_at(&numbers, (uintptr_t)method, n_bound, &added)
                           : map_get(&numbers, (uintptr_t)method);
    if (number) {
        struct bound *b = &bound[*number];
        n_bound += added;
        b->method = method;
        b->stack_words = native_stack_words((struct str){d->descriptor, strlen(d->descriptor)});
        b->is_static = modifiers & ACC_STATIC;
        atomic_store(&b->function, function);
        thunk = native_thunk((unsigned)*number);
    }
    pthread_mutex_unlock(&lock);
    return thunk;
}

static void JNICALL on_bind(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jmethodID method,
                            void *address, void **ret_address)
{
    struct description d;
    if (native_is_thunk(address))
        return;
    pthread_mutex_lock(&lock);
    bool on = atomic_load(&active);
    if (!on)
        (void)!map_put(&noted, (uintptr_t)method, (uintptr_t)address);
    pthread_mutex_unlock(&lock);
    if (!on || !jni)
        return;
    void *thunk = describe(method, &d) ? thunk_for(jni, method, &d, address) : NULL;
    if (thunk) {
        atomic_load(&active)->bound(jni, d.class);
        *ret_address = thunk;
    }
    description_release(jni, &d);
}

static const struct vm_callbacks events = {.ti = {.NativeMethodBind = on_bind}};

int natives_watch(void)
{
    jvmtiCapabilities needs = {.can_generate_native_method_bind_events = 1}, missing = {0};
    int r = NATIVE_THUNKS ? vm_need(&needs, &missing) : -ENOTSUP;
    if (r < 0 || !vm_capabilities_empty(&missing))
        return r < 0 ? r : -ENOTSUP;
    return vm_events_on(&events);
}

static void bind(JNIEnv *jni, jmethodID method, void *function)
{
    struct description d;
    void *thunk = describe(method, &d) ? thunk_for(jni, method, &d, function) : NULL;
    JNINativeMethod one = {d.name, d.descriptor, thunk};
    if (thunk)
        (void)(*jni)->RegisterNatives(jni, d.class, &one, 1);
    vm_clear_exception(jni);
    description_release(jni, &d);
}

int natives_on(const struct natives_client *client, JNIEnv *jni)
{
    if (!NATIVE_THUNKS)
        return -ENOTSUP;
    pthread_mutex_lock(&lock);
    struct map before = noted;
    noted = (struct map){0};
    atomic_store(&active, client);
    pthread_mutex_unlock(&lock);
    uint64_t method, function;
    for (size_t i = 0; map_next(&before, &i, &method, &function);)
        bind(jni, (jmethodID)(uintptr_t)method, (void *)(uintptr_t)function);
    map_release(&before);
    return 0;
}
