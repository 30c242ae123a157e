/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the owner of the monitor that the calling thread is about to enter. GetObjectMonitorUsage
 * needs a safepoint (100 to 340 us measured, milliseconds under load), so on HotSpot the owner is
 * read from the monitor itself: while the event is posted the VM keeps the monitor's address in the
 * thread, and the VM's tables give the offset of its owner field. Depending on the version the
 * owner is the VM's thread, an address on the owner's stack (a stack lock that was inflated), or a
 * Java thread id (24 and later).
 */

#include "agent/capture/threads/owner.h"

#include "agent/capture/threads/carriers.h"
#include "agent/capture/threads/waiters.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { OWNER_NONE = 0, OWNER_ANONYMOUS = 1, OWNER_DEFLATER = 2 };

/*
 * A stack lock lies within this distance of the base of its thread's stack, or slightly above it
 * (the main thread's recorded base is deeper than main()).
 */
#define STACK_BELOW (UINT64_C(8) << 20)
#define STACK_ABOVE (UINT64_C(64) << 10)

static struct {
    int64_t pending, owner;         /* offsets; < 0: unknown */
    int64_t stack_base, stack_size; /* the same, in the VM's thread */
    uint64_t env_offset;            /* of the JNI environment in the VM's thread */
    bool by_id;                     /* the owner is a Java thread id */
} layout = {.pending = -1, .owner = -1, .stack_base = -1, .stack_size = -1};

static void *libjvm_symbol(const char *name)
{
    static void *libjvm;
    if (!libjvm) {
        Dl_info info;
        if (dladdr((void *)(uintptr_t)(*vm.ti)->GetPhase, &info))
            libjvm = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
    return libjvm ? dlsym(libjvm, name) : NULL;
}

/* Returns the offset of TYPE::FIELD from gHotSpotVMStructs, or -1. */
static int64_t field_offset(const char *type, const char *field)
{
    char *const *table = libjvm_symbol("gHotSpotVMStructs");
    static const char *const names[] = {
        "gHotSpotVMStructEntryTypeNameOffset", "gHotSpotVMStructEntryFieldNameOffset",
        "gHotSpotVMStructEntryOffsetOffset", "gHotSpotVMStructEntryArrayStride"};
    uint64_t at[ARRAY_SIZE(names)];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const uint64_t *value = libjvm_symbol(names[i]);
        if (!value || !table)
            return -1;
        at[i] = *value;
    }
    for (const char *row = *table; row && *(char *const *)(row + at[0]); row += at[3]) {
        const char *row_field = *(char *const *)(row + at[1]);
        if (row_field && strcmp(*(char *const *)(row + at[0]), type) == 0 &&
            strcmp(row_field, field) == 0)
            return (int64_t) * (const uint64_t *)(row + at[2]);
    }
    return -1;
}

/* Returns the offset of a field of the VM's thread, or -1. */
static int64_t thread_offset(const char *field)
{
    int64_t offset = field_offset("JavaThread", field);
    return offset < 0 ? field_offset("Thread", field) : offset;
}

void owner_init(JNIEnv *jni)
{
    if (!vm.hotspot || layout.owner >= 0)
        return;
    uint64_t vm_thread = vm_thread_address(jni, NULL);
    layout.env_offset = (uint64_t)(uintptr_t)jni - vm_thread;
    if (!vm_thread || layout.env_offset > 1 << 16)
        return;
    layout.pending = thread_offset("_current_pending_monitor");
    layout.stack_base = thread_offset("_stack_base");
    layout.stack_size = thread_offset("_stack_size");
    layout.owner = field_offset("ObjectMonitor", "_owner");
    layout.by_id = vm.version >= 24;
}

uint64_t owner_vm_thread(JNIEnv *jni)
{
    return layout.owner >= 0 ? (uint64_t)(uintptr_t)jni - layout.env_offset : 0;
}

/* Returns the thread whose stack contains an address: the one with the nearest base above it. */
static uint64_t stack_owner(uint64_t address)
{
    uint64_t best = STACK_BELOW, id = 0;
    for (struct thread *t = NULL; (t = threads_next(t));) {
        uint64_t base = waiter_stack(t);
        if (base && base + STACK_ABOVE - address < best) {
            best = base + STACK_ABOVE - address;
            id = thread_running_on(t);
        }
    }
    return id;
}

/*
 * Asks the VM when the fields do not show the owner. This is needed once in a monitor's life, when
 * a thread other than the owner inflated it.
 */
static uint64_t ask_vm(JNIEnv *jni, jobject monitor)
{
    jvmtiMonitorUsage usage = {0};
    if (!vm.have.can_get_monitor_info ||
        (*vm.ti)->GetObjectMonitorUsage(vm.ti, monitor, &usage) != JVMTI_ERROR_NONE)
        return 0;
    uint64_t id = 0;
    if (usage.owner) {
        id = thread_record(jni, usage.owner);
        (*jni)->DeleteLocalRef(jni, usage.owner);
    }
    for (jint i = 0; i < usage.waiter_count; i++)
        (*jni)->DeleteLocalRef(jni, usage.waiters[i]);
    for (jint i = 0; i < usage.notify_waiter_count; i++)
        (*jni)->DeleteLocalRef(jni, usage.notify_waiters[i]);
    vm_free(usage.waiters);
    vm_free(usage.notify_waiters);
    return id;
}

uint64_t owner_of_synchronizer(JNIEnv *jni, jobject synchronizer, bool *ret_owned)
{
    jclass c = vm_find_class(jni, "java/util/concurrent/locks/AbstractOwnableSynchronizer");
    jfieldID field =
        c ? (*jni)->GetFieldID(jni, c, "exclusiveOwnerThread", "Ljava/lang/Thread;") : NULL;
    vm_clear_exception(jni);
    *ret_owned = field && (*jni)->IsInstanceOf(jni, synchronizer, c);
    jthread owner = *ret_owned ? (*jni)->GetObjectField(jni, synchronizer, field) : NULL;
    uint64_t id = owner ? thread_record(jni, owner) : 0;
    if (owner)
        (*jni)->DeleteLocalRef(jni, owner);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return id;
}

uint64_t owner_of_pending(JNIEnv *jni, jobject monitor, uint64_t *ret_monitor)
{
    if (layout.pending < 0 || layout.owner < 0)
        return ask_vm(jni, monitor);
    uint64_t thread = (uint64_t)(uintptr_t)jni - layout.env_offset;
    uint64_t pending = *(const volatile uint64_t *)(thread + (uint64_t)layout.pending);
    *ret_monitor = pending;
    if (!pending)
        return ask_vm(jni, monitor);
    uint64_t owner = *(const volatile uint64_t *)(pending + (uint64_t)layout.owner);
    if (owner == OWNER_NONE)
        return 0;
    if (owner == OWNER_ANONYMOUS || owner == OWNER_DEFLATER)
        return ask_vm(jni, monitor);
    struct thread *t =
        layout.by_id ? NULL : threads_by_env((JNIEnv *)(uintptr_t)(owner + layout.env_offset));
    uint64_t id = layout.by_id ? thread_record_id(owner)
                  : t          ? thread_running_on(t)
                               : stack_owner(owner);
    return id ? id : ask_vm(jni, monitor);
}

/*
 * The monitor may have been freed and its memory unmapped, so it is read in a way that cannot
 * fault.
 */
static bool read_word(uint64_t address, uint64_t *ret)
{
    static int memory = -2;
    if (memory == -2)
        memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    return memory >= 0 && pread(memory, ret, sizeof(*ret), (off_t)address) == (ssize_t)sizeof(*ret);
}

/* Reads a field of a thread that may end meanwhile. */
static bool read_field(const struct thread *t, int64_t offset, uint64_t *ret)
{
    uint64_t env = (uint64_t)(uintptr_t)atomic_load(&t->env);
    return env && offset >= 0 && read_word(env - layout.env_offset + (uint64_t)offset, ret);
}

uint64_t owner_awaited_monitor(const struct thread *t)
{
    uint64_t monitor;
    return layout.owner >= 0 && read_field(t, layout.pending, &monitor) ? monitor : 0;
}

static bool stack_has(const struct thread *t, uint64_t address)
{
    uint64_t low, high, base, size;
    if (waiter_stack_known(t, &low, &high))
        return address >= low && address < high;
    return read_field(t, layout.stack_base, &base) && read_field(t, layout.stack_size, &size) &&
           address < base && base - address <= size;
}

bool owner_of_monitor(uint64_t monitor, uint64_t *ret_id)
{
    uint64_t owner;
    if (!monitor || layout.owner < 0 || !read_word(monitor + (uint64_t)layout.owner, &owner) ||
        owner == OWNER_ANONYMOUS)
        return false;
    *ret_id = 0;
    if (owner == OWNER_NONE || owner == OWNER_DEFLATER)
        return true;
    if (layout.by_id) {
        *ret_id = thread_record_id(owner);
        return true;
    }
    struct thread *t = threads_by_env((JNIEnv *)(uintptr_t)(owner + layout.env_offset));
    for (struct thread *other = NULL; !t && (other = threads_next(other));)
        t = stack_has(other, owner) ? other : NULL;
    *ret_id = t ? thread_running_on(t) : 0;
    return true;
}
