/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/vm.h"

#include "agent/common/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TABLES_MAX = 32, EVENT_MIN = JVMTI_MIN_EVENT_TYPE_VAL, EVENT_MAX = 88 };

struct vm vm;
__thread bool vm_beginning;

static _Atomic(const struct vm_callbacks *) tables[TABLES_MAX];
/* one more than the index of the last table ever used; each callback visits all tables below it */
static atomic_int tables_end;

/*
 * Callbacks in progress, by the parity of the epoch in which they began (in the way sleepable RCU
 * counts its readers). A waiter advances the epoch and waits until the old side is empty, so that
 * new callbacks do not delay it.
 */
static atomic_uint epoch;
static atomic_int inside[2];

static unsigned enter(void)
{
    unsigned side = atomic_load(&epoch) & 1;
    atomic_fetch_add(&inside[side], 1);
    return side;
}

static void leave(unsigned side)
{
    atomic_fetch_sub(&inside[side], 1);
}

int vm_wait_callbacks(void)
{
    for (int round = 0; round < 2; round++) {
        unsigned side = atomic_fetch_add(&epoch, 1) & 1;
        for (int spin = 0; atomic_load(&inside[side]) > 0; spin++) {
            if (spin == 2000)
                return -ETIMEDOUT;
            nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        }
    }
    return 0;
}

/* X(event, field of struct vm_callbacks, parameters, arguments) */
#define UNCOUNTED(X)                                                             \
    X(VMInit, ti.VMInit, (jvmtiEnv * ti, JNIEnv * jni, jthread t), (ti, jni, t)) \
    X(VMDeath, ti.VMDeath, (jvmtiEnv * ti, JNIEnv * jni), (ti, jni))             \
    X(VMStart, ti.VMStart, (jvmtiEnv * ti, JNIEnv * jni), (ti, jni))             \
    X(DataDumpRequest, ti.DataDumpRequest, (jvmtiEnv * ti), (ti))
#define COUNTED(X)                                                                                 \
    X(ThreadStart, ti.ThreadStart, (jvmtiEnv * ti, JNIEnv * jni, jthread t), (ti, jni, t))         \
    X(ThreadEnd, ti.ThreadEnd, (jvmtiEnv * ti, JNIEnv * jni, jthread t), (ti, jni, t))             \
    X(ClassLoad, ti.ClassLoad, (jvmtiEnv * ti, JNIEnv * jni, jthread t, jclass c),                 \
      (ti, jni, t, c))                                                                             \
    X(ClassPrepare, ti.ClassPrepare, (jvmtiEnv * ti, JNIEnv * jni, jthread t, jclass c),           \
      (ti, jni, t, c))                                                                             \
    X(Exception, ti.Exception,                                                                     \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jmethodID m, jlocation at, jobject e, jmethodID cm, \
       jlocation cat),                                                                             \
      (ti, jni, t, m, at, e, cm, cat))                                                             \
    X(ExceptionCatch, ti.ExceptionCatch,                                                           \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jmethodID m, jlocation at, jobject e),              \
      (ti, jni, t, m, at, e))                                                                      \
    X(SingleStep, ti.SingleStep,                                                                   \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jmethodID m, jlocation at), (ti, jni, t, m, at))    \
    X(FramePop, ti.FramePop, (jvmtiEnv * ti, JNIEnv * jni, jthread t, jmethodID m, jboolean ex),   \
      (ti, jni, t, m, ex))                                                                         \
    X(Breakpoint, ti.Breakpoint,                                                                   \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jmethodID m, jlocation at), (ti, jni, t, m, at))    \
    X(MethodEntry, ti.MethodEntry, (jvmtiEnv * ti, JNIEnv * jni, jthread t, jmethodID m),          \
      (ti, jni, t, m))                                                                             \
    X(MethodExit, ti.MethodExit,                                                                   \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jmethodID m, jboolean ex, jvalue v),                \
      (ti, jni, t, m, ex, v))                                                                      \
    X(NativeMethodBind, ti.NativeMethodBind,                                                       \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jmethodID m, void *address, void **new_address),    \
      (ti, jni, t, m, address, new_address))                                                       \
    X(CompiledMethodLoad, ti.CompiledMethodLoad,                                                   \
      (jvmtiEnv * ti, jmethodID m, jint size, const void *code, jint n,                            \
       const jvmtiAddrLocationMap *map, const void *info),                                         \
      (ti, m, size, code, n, map, info))                                                           \
    X(CompiledMethodUnload, ti.CompiledMethodUnload,                                               \
      (jvmtiEnv * ti, jmethodID m, const void *code), (ti, m, code))                               \
    X(DynamicCodeGenerated, ti.DynamicCodeGenerated,                                               \
      (jvmtiEnv * ti, const char *name, const void *code, jint size), (ti, name, code, size))      \
    X(MonitorWait, ti.MonitorWait, (jvmtiEnv * ti, JNIEnv * jni, jthread t, jobject o, jlong ms),  \
      (ti, jni, t, o, ms))                                                                         \
    X(MonitorWaited, ti.MonitorWaited,                                                             \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jobject o, jboolean late), (ti, jni, t, o, late))   \
    X(MonitorContendedEnter, ti.MonitorContendedEnter,                                             \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jobject o), (ti, jni, t, o))                        \
    X(MonitorContendedEntered, ti.MonitorContendedEntered,                                         \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jobject o), (ti, jni, t, o))                        \
    X(ResourceExhausted, ti.ResourceExhausted,                                                     \
      (jvmtiEnv * ti, JNIEnv * jni, jint flags, const void *reserved, const char *d),              \
      (ti, jni, flags, reserved, d))                                                               \
    X(GarbageCollectionStart, ti.GarbageCollectionStart, (jvmtiEnv * ti), (ti))                    \
    X(GarbageCollectionFinish, ti.GarbageCollectionFinish, (jvmtiEnv * ti), (ti))                  \
    X(ObjectFree, ti.ObjectFree, (jvmtiEnv * ti, jlong tag), (ti, tag))                            \
    X(VMObjectAlloc, ti.VMObjectAlloc,                                                             \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jobject o, jclass c, jlong size),                   \
      (ti, jni, t, o, c, size))                                                                    \
    X(SampledObjectAlloc, ti.SampledObjectAlloc,                                                   \
      (jvmtiEnv * ti, JNIEnv * jni, jthread t, jobject o, jclass c, jlong size),                   \
      (ti, jni, t, o, c, size))                                                                    \
    X(VirtualThreadStart, VM_VIRTUAL_THREAD_START, (jvmtiEnv * ti, JNIEnv * jni, jthread t),       \
      (ti, jni, t))                                                                                \
    X(VirtualThreadEnd, VM_VIRTUAL_THREAD_END, (jvmtiEnv * ti, JNIEnv * jni, jthread t),           \
      (ti, jni, t))

/*
 * A thread's end is passed to the tables in reverse order: the thread table, which is the first
 * one, removes the thread when all others have handled it.
 */
#define TO_ALL(event, place, arguments)                                       \
    for (int k = 0, end = atomic_load(&tables_end); k < end; k++) {           \
        int i = __builtin_strcmp(#event, "ThreadEnd") == 0 ? end - 1 - k : k; \
        const struct vm_callbacks *table = atomic_load(&tables[i]);           \
        if (table && table->place)                                            \
            table->place arguments;                                           \
    }
#define UNCOUNTED_TRAMPOLINE(event, place, parameters, arguments) \
    static void JNICALL on_##event parameters                     \
    {                                                             \
        TO_ALL(event, place, arguments)                           \
    }
#define COUNTED_TRAMPOLINE(event, place, parameters, arguments) \
    static void JNICALL on_##event parameters                   \
    {                                                           \
        unsigned side = enter();                                \
        TO_ALL(event, place, arguments)                         \
        leave(side);                                            \
    }
UNCOUNTED(UNCOUNTED_TRAMPOLINE)
COUNTED(COUNTED_TRAMPOLINE)

/* Each table receives the class file that the previous one has produced. */
static void JNICALL on_ClassFileLoadHook(jvmtiEnv *ti, JNIEnv *jni, jclass redefined,
                                         jobject loader, const char *name, jobject domain, jint len,
                                         const unsigned char *data, jint *new_len,
                                         unsigned char **new_data)
{
    unsigned side = enter();
    /* The frame that the VM makes for this event has room for few, and it counts the caller's. */
    vm_expect_references(jni);
    for (int k = 0, end = atomic_load(&tables_end); k < 2 * end; k++) {
        const struct vm_callbacks *table = atomic_load(&tables[k % end]);
        unsigned char *made = NULL;
        jint made_len = 0;
        if (!table || !table->ti.ClassFileLoadHook || table->rewrites_first != (k < end))
            continue;
        table->ti.ClassFileLoadHook(ti, jni, redefined, loader, name, domain, len, data, &made_len,
                                    &made);
        if (!made)
            continue;
        vm_free(*new_data);
        *new_data = made;
        *new_len = made_len;
        data = made;
        len = made_len;
    }
    leave(side);
}

static const struct vm_callbacks trampolines = {
#define ROW(event, place, parameters, arguments) .place = on_##event,
    UNCOUNTED(ROW) COUNTED(ROW)
#undef ROW
        .ti.ClassFileLoadHook = on_ClassFileLoadHook,
};

/*
 * Returns whether a table has a callback for an event. Both structures are arrays of pointers in
 * the order of event numbers.
 */
static bool table_has(const struct vm_callbacks *table, int event)
{
    void *callback;
    memcpy(&callback, (const char *)table + (event - EVENT_MIN) * sizeof(callback),
           sizeof(callback));
    return callback != NULL;
}

static int set_event(int event, bool on)
{
    jvmtiError e = (*vm.ti)->SetEventNotificationMode(vm.ti, on ? JVMTI_ENABLE : JVMTI_DISABLE,
                                                      (jvmtiEvent)event, NULL);
    return e == JVMTI_ERROR_NONE ? 0 : -EPROTO;
}

/* Enables or disables those events that no other active table has. */
static int set_events(const struct vm_callbacks *which, bool on)
{
    int r = 0;
    for (int event = EVENT_MIN; event <= EVENT_MAX; event++) {
        if (!table_has(which, event))
            continue;
        bool shared = false;
        for (int i = 0; i < TABLES_MAX; i++) {
            const struct vm_callbacks *table = atomic_load(&tables[i]);
            shared = shared || (table && table != which && table_has(table, event));
        }
        int failed = shared ? 0 : set_event(event, on);
        r = r < 0 ? r : failed;
    }
    return r;
}

/* Protects the tables against two threads that change them. */
static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;

static int add_table(const struct vm_callbacks *table)
{
    int free_slot = -1;
    for (int i = 0; i < TABLES_MAX && free_slot < 0; i++)
        if (!atomic_load(&tables[i]))
            free_slot = i;
    if (free_slot < 0)
        return -ENOSPC;
    atomic_store(&tables[free_slot], table);
    if (free_slot >= atomic_load(&tables_end))
        atomic_store(&tables_end, free_slot + 1);
    return set_events(table, true);
}

int vm_events_on(const struct vm_callbacks *table)
{
    if (fault_here())
        return -EPROTO;
    pthread_mutex_lock(&tables_lock);
    int r = add_table(table);
    pthread_mutex_unlock(&tables_lock);
    if (r < 0)
        vm_events_off(table);
    return r;
}

int vm_events_off(const struct vm_callbacks *table)
{
    pthread_mutex_lock(&tables_lock);
    for (int i = 0; i < TABLES_MAX; i++)
        if (atomic_load(&tables[i]) == table) {
            set_events(table, false);
            atomic_store(&tables[i], NULL);
        }
    pthread_mutex_unlock(&tables_lock);
    return vm_wait_callbacks();
}

static void learn_version(void)
{
    char *value = NULL;
    if ((*vm.ti)->GetSystemProperty(vm.ti, "java.vm.specification.version", &value) ==
            JVMTI_ERROR_NONE &&
        value) {
        int major = atoi(value), minor = 0;
        const char *dot = strchr(value, '.');
        if (dot)
            minor = atoi(dot + 1);
        vm.version = major == 1 ? minor : major;
    }
    vm_free(value);
    value = NULL;
    if ((*vm.ti)->GetSystemProperty(vm.ti, "java.vm.name", &value) == JVMTI_ERROR_NONE && value)
        vm.hotspot = strstr(value, "HotSpot") || strstr(value, "OpenJDK");
    vm_free(value);
}

int vm_open(JavaVM *java, bool attached)
{
    jvmtiEnv *ti = NULL;
    if ((*java)->GetEnv(java, (void **)&ti, JVMTI_VERSION_1_2) != JNI_OK || !ti)
        return -ENOTSUP;
    vm = (struct vm){.java = java, .ti = ti, .attached = attached, .live = attached};
    learn_version();
    /* A VM copies the part that it knows. */
    jvmtiError e = (*ti)->SetEventCallbacks(ti, &trampolines.ti, sizeof(trampolines));
    return e == JVMTI_ERROR_NONE ? 0 : -ENOTSUP;
}

/* A set of capabilities as bits, in the order of the specification. */
union capability_bits {
    jvmtiCapabilities caps;
    uint64_t words[2];
};

_Static_assert(sizeof(jvmtiCapabilities) == 16, "128 bits since JVM TI 1.0");

static const char *const capability_names[] = {
    "can_tag_objects",
    "can_generate_field_modification_events",
    "can_generate_field_access_events",
    "can_get_bytecodes",
    "can_get_synthetic_attribute",
    "can_get_owned_monitor_info",
    "can_get_current_contended_monitor",
    "can_get_monitor_info",
    "can_pop_frame",
    "can_redefine_classes",
    "can_signal_thread",
    "can_get_source_file_name",
    "can_get_line_numbers",
    "can_get_source_debug_extension",
    "can_access_local_variables",
    "can_maintain_original_method_order",
    "can_generate_single_step_events",
    "can_generate_exception_events",
    "can_generate_frame_pop_events",
    "can_generate_breakpoint_events",
    "can_suspend",
    "can_redefine_any_class",
    "can_get_current_thread_cpu_time",
    "can_get_thread_cpu_time",
    "can_generate_method_entry_events",
    "can_generate_method_exit_events",
    "can_generate_all_class_hook_events",
    "can_generate_compiled_method_load_events",
    "can_generate_monitor_events",
    "can_generate_vm_object_alloc_events",
    "can_generate_native_method_bind_events",
    "can_generate_garbage_collection_events",
    "can_generate_object_free_events",
    "can_force_early_return",
    "can_get_owned_monitor_stack_depth_info",
    "can_get_constant_pool",
    "can_set_native_method_prefix",
    "can_retransform_classes",
    "can_retransform_any_class",
    "can_generate_resource_exhaustion_heap_events",
    "can_generate_resource_exhaustion_threads_events",
    "can_generate_early_vmstart",
    "can_generate_early_class_hook_events",
    "can_generate_sampled_object_alloc_events",
    "can_support_virtual_threads",
};

void vm_capability_virtual_threads(jvmtiCapabilities *c)
{
    union capability_bits bits = {.caps = *c};
    bits.words[0] |= UINT64_C(1) << 44;
    *c = bits.caps;
}

bool vm_capabilities_empty(const jvmtiCapabilities *c)
{
    union capability_bits bits = {.caps = *c};
    return (bits.words[0] | bits.words[1]) == 0;
}

void vm_capability_names(const jvmtiCapabilities *c, struct buf *out)
{
    union capability_bits bits = {.caps = *c};
    const char *between = "";
    for (size_t i = 0; i < ARRAY_SIZE(capability_names); i++)
        if (bits.words[0] >> i & 1) {
            buf_printf(out, "%s%s", between, capability_names[i]);
            between = ", ";
        }
}

void vm_capability_words(const jvmtiCapabilities *c, struct buf *out)
{
    static const char *const verbs[] = {"can_generate_", "can_get_", "can_"};
    _cleanup_(buf_release) struct buf names = BUF(8192);
    vm_capability_names(c, &names);
    for (const char *p = buf_str(&names); *p;) {
        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
            if (strncmp(p, verbs[i], strlen(verbs[i])) == 0)
                p += strlen(verbs[i]);
        for (; *p && *p != ','; p++)
            buf_u8(out, (uint8_t)(*p == '_' ? ' ' : *p));
        for (; *p == ',' || *p == ' '; p++)
            buf_u8(out, (uint8_t)*p);
    }
}

/*
 * Splits the capabilities that are requested and not present into those that the VM can grant and
 * those that it cannot.
 */
static int split_wanted(const jvmtiCapabilities *wanted, union capability_bits *ret_can,
                        union capability_bits *ret_missing)
{
    union capability_bits want = {.caps = *wanted}, have = {.caps = vm.have}, potential = {0};
    if ((*vm.ti)->GetPotentialCapabilities(vm.ti, &potential.caps) != JVMTI_ERROR_NONE)
        return -EPROTO;
    for (int i = 0; i < 2; i++) {
        want.words[i] &= ~have.words[i];
        ret_missing->words[i] = want.words[i] & ~potential.words[i];
        ret_can->words[i] = want.words[i] & potential.words[i];
    }
    return 0;
}

int vm_could(const jvmtiCapabilities *wanted, jvmtiCapabilities *ret_missing)
{
    union capability_bits can = {0}, missing = {0};
    int r = split_wanted(wanted, &can, &missing);
    *ret_missing = missing.caps;
    return r;
}

int vm_need(const jvmtiCapabilities *wanted, jvmtiCapabilities *ret_missing)
{
    /* Up to JDK 20, one of two calls of AddCapabilities at the same time can be lost. */
    static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
    union capability_bits want = {0}, missing = {0};
    if (fault_here())
        return -EPROTO;
    pthread_mutex_lock(&adding);
    bool added = split_wanted(wanted, &want, &missing) == 0 &&
                 (vm_capabilities_empty(&want.caps) ||
                  (*vm.ti)->AddCapabilities(vm.ti, &want.caps) == JVMTI_ERROR_NONE) &&
                 (*vm.ti)->GetCapabilities(vm.ti, &vm.have) == JVMTI_ERROR_NONE;
    pthread_mutex_unlock(&adding);
    if (!added)
        return -EPROTO;
    if (ret_missing)
        *ret_missing = missing.caps;
    return 0;
}

JNIEnv *vm_jni(void)
{
    JNIEnv *jni = NULL;
    return (*vm.java)->GetEnv(vm.java, (void **)&jni, JNI_VERSION_1_6) == JNI_OK ? jni : NULL;
}

bool vm_is_live(void)
{
    jvmtiPhase phase = JVMTI_PHASE_ONLOAD;
    return (*vm.ti)->GetPhase(vm.ti, &phase) == JVMTI_ERROR_NONE && phase == JVMTI_PHASE_LIVE;
}

uint64_t vm_thread_address(JNIEnv *jni, jthread thread)
{
    jthread self = NULL;
    if (!thread && (*vm.ti)->GetCurrentThread(vm.ti, &self) != JVMTI_ERROR_NONE)
        self = NULL;
    jfieldID field = vm_field(jni, "java/lang/Thread", "eetop", "J");
    jthread of = thread ? thread : self;
    uint64_t address = field && of ? (uint64_t)(*jni)->GetLongField(jni, of, field) : 0;
    if (self)
        (*jni)->DeleteLocalRef(jni, self);
    return address;
}

bool vm_put_string(JNIEnv *jni, jstring text, struct buf *out)
{
    const char *s = text ? (*jni)->GetStringUTFChars(jni, text, NULL) : NULL;
    if (!s)
        return false;
    buf_string(out, s);
    (*jni)->ReleaseStringUTFChars(jni, text, s);
    return true;
}

void vm_expect_references(JNIEnv *jni)
{
    enum { MANY = 65000 }; /* HotSpot refuses more than 65,536 */

    if (jni && vm.version <= 11 && (*jni)->EnsureLocalCapacity(jni, MANY) != 0)
        vm_clear_exception(jni);
}

jvmtiError vm_all_threads(jint *ret_n, jthread **ret_threads)
{
    vm_expect_references(vm_jni());
    return (*vm.ti)->GetAllThreads(vm.ti, ret_n, ret_threads);
}

jvmtiError vm_all_stacks(jint depth, jint *ret_n, jvmtiStackInfo **ret_infos)
{
    vm_expect_references(vm_jni());
    return (*vm.ti)->GetAllStackTraces(vm.ti, depth, ret_infos, ret_n);
}

jclass vm_find_class(JNIEnv *jni, const char *name)
{
    typedef jclass (*find_in_boot_loader)(JNIEnv *, const char *);
    static _Atomic(find_in_boot_loader) find;
    find_in_boot_loader f = atomic_load_explicit(&find, memory_order_relaxed);
    if (!f && vm.hotspot) {
        void *address = vm_libjvm_function("JVM_FindClassFromBootLoader");
        memcpy(&f, &address, sizeof(f));
        atomic_store_explicit(&find, f, memory_order_relaxed);
    }
    jclass c = f ? f(jni, name) : NULL;
    vm_clear_exception(jni);
    c = c ? c : (*jni)->FindClass(jni, name);
    vm_clear_exception(jni);
    return c;
}

jclass vm_loaded_boot_class(JNIEnv *jni, const char *name, bool *ret_known)
{
    jclass(JNICALL * find)(JNIEnv *, jobject loader, jstring name) = NULL;
    void *address = vm.hotspot ? vm_libjvm_function("JVM_FindLoadedClass") : NULL;
    memcpy(&find, &address, sizeof(find));
    jstring text = find ? (*jni)->NewStringUTF(jni, name) : NULL;
    jclass c = text ? find(jni, NULL, text) : NULL;
    *ret_known = text && !vm_clear_exception(jni);
    if (text)
        (*jni)->DeleteLocalRef(jni, text);
    return c;
}

jmethodID vm_method(JNIEnv *jni, const char *class_name, const char *name, const char *descriptor)
{
    jclass c = vm_find_class(jni, class_name);
    jmethodID m = c ? (*jni)->GetMethodID(jni, c, name, descriptor) : NULL;
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return m;
}

jfieldID vm_field(JNIEnv *jni, const char *class_name, const char *name, const char *descriptor)
{
    jclass c = vm_find_class(jni, class_name);
    jfieldID f = c ? (*jni)->GetFieldID(jni, c, name, descriptor) : NULL;
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return f;
}

jclass vm_class(JNIEnv *jni, const char *name)
{
    jclass local = vm_find_class(jni, name);
    jclass global = local ? (*jni)->NewGlobalRef(jni, local) : NULL;
    vm_clear_exception(jni);
    if (local)
        (*jni)->DeleteLocalRef(jni, local);
    return global;
}

jlong vm_size_of_new(JNIEnv *jni, jobject o)
{
    jlong size = 0;
    if (o)
        (*vm.ti)->GetObjectSize(vm.ti, o, &size);
    vm_clear_exception(jni);
    if (o)
        (*jni)->DeleteLocalRef(jni, o);
    return size;
}

jobject vm_unsafe(JNIEnv *jni, jclass *ret_class)
{
    jclass class =
        vm_find_class(jni, vm.version >= 9 ? "jdk/internal/misc/Unsafe" : "sun/misc/Unsafe");
    jobject unsafe = vm_unsafe_of(jni, class);
    if (!unsafe && class)
        (*jni)->DeleteLocalRef(jni, class);
    *ret_class = unsafe ? class : NULL;
    return unsafe;
}

jobject vm_unsafe_of(JNIEnv *jni, jclass class)
{
    const char *type = vm.version >= 9 ? "Ljdk/internal/misc/Unsafe;" : "Lsun/misc/Unsafe;";
    jfieldID the = class ? (*jni)->GetStaticFieldID(jni, class, "theUnsafe", type) : NULL;
    jobject unsafe = the ? (*jni)->GetStaticObjectField(jni, class, the) : NULL;
    vm_clear_exception(jni);
    return unsafe;
}

void *vm_libjvm_function(const char *symbol)
{
    Dl_info info;
    void *libjvm = dladdr((void *)(uintptr_t)(*vm.ti)->GetPhase, &info)
                       ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                       : NULL;
    void *f = libjvm ? dlsym(libjvm, symbol) : NULL;
    if (libjvm)
        dlclose(libjvm);
    return f;
}
