/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks stacks by reading the VM's own structures (src/unwind). Every stack that can be walked at
 * all is walked, including native frames.
 */
#include "agent/stacks/stack.h"

#include "agent/stacks/chunks.h"
#include "base/buf.h"
#include "hotspot/layout.h"
#include "hotspot/memory.h"
#include "unwind/kernel_symbols.h"
#include "unwind/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct walker *walker; /* never freed, because a handler may be using it */
    struct snapshot_walker *later;
    volatile uint8_t *describes_all; /* the VM's flag, if we have set it */
    unsigned flags;
    uint64_t faults_before; /* the number of faults when the recording of these stacks began */
    _Atomic uint64_t ends[WALK_STATUSES], recovered;
    pthread_mutex_t lock; /* protects symbols */
    struct symbols *symbols;
    struct kernel_symbols *kernel;
} stacks = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(sizeof(struct walk_frame) == sizeof(struct jfr_frame) &&
                   offsetof(struct walk_frame, bci) == offsetof(struct jfr_frame, bci),
               "converted in place");

static const uint8_t frame_types[WALK_KINDS] = {
    [WALK_INTERPRETED] = JFR_FRAME_INTERPRETED,
    [WALK_C1] = JFR_FRAME_C1,
    [WALK_C2] = JFR_FRAME_JIT,
    [WALK_INLINED] = JFR_FRAME_INLINED,
    [WALK_NATIVE_METHOD] = JFR_FRAME_NATIVE,
    [WALK_NATIVE] = JFR_FRAME_NATIVE,
    [WALK_VM] = JFR_FRAME_CPP,
    [WALK_STUB] = JFR_FRAME_STUB,
    [WALK_GAP] = JFR_FRAME_STUB,
    [WALK_KERNEL] = JFR_FRAME_KERNEL,
};

/* Counts how a walk ended and converts what it found to frames, in place. */
at_each_sample static int conclude(struct jfr_frame *frames, unsigned n, const struct walk_end *end,
                                   bool *ret_cut)
{
    const struct walk_frame *walked = (const struct walk_frame *)(void *)frames;
    atomic_fetch_add_explicit(&stacks.ends[end->status], 1, memory_order_relaxed);
    if (end->recovered)
        atomic_fetch_add_explicit(&stacks.recovered, 1, memory_order_relaxed);
    if (n == 0)
        return end->status == WALK_COMPLETE ? -1 - WALK_NOT_JAVA : -1 - WALK_BROKEN_JAVA;
    for (unsigned i = 0; i < n; i++) {
        struct walk_frame f = walked[i];
        frames[i] = (struct jfr_frame){
            .method = f.id, .bci = f.bci >= 0 ? f.bci : -1, .type = frame_types[f.kind]};
    }
    *ret_cut = end->status >= WALK_HEAP;
    return (int)n;
}

/*
 * True for a thread without Java code, such as the main thread before it calls main. Its other
 * frames show what it does.
 */
static bool is_bare(unsigned n, const struct walk_end *end)
{
    return n == 0 && end->status == WALK_COMPLETE && !(stacks.flags & WALK_WITH_NATIVE);
}

at_each_sample static int walk(void *ucontext, JNIEnv *env, struct jfr_frame *frames, uint32_t max,
                               bool *ret_cut)
{
    struct walk_frame *walked = (struct walk_frame *)(void *)frames;
    struct walk_end end;
    unsigned n = walk_stack(stacks.walker, ucontext, env, stacks.flags, walked, max, &end);
    if (is_bare(n, &end))
        n = walk_stack(stacks.walker, ucontext, env, WALK_WITH_NATIVE, walked, max, &end);
    return conclude(frames, n, &end, ret_cut);
}

bool stack_vm_later(void)
{
    if (!stacks.later && stacks.walker && snapshot_possible(stacks.walker))
        stacks.later = snapshot_walker_new(stacks.walker);
    return stacks.later != NULL;
}

at_each_sample bool stack_vm_measure(const void *ucontext, JNIEnv *env, struct snapshot *ret)
{
    return snapshot_measure(stacks.walker, ucontext, env, ret);
}

at_each_sample void stack_vm_take(const struct snapshot *measured, struct snapshot *ret)
{
    snapshot_take(stacks.walker, measured, ret);
}

int stack_vm_walk_later(const struct snapshot *of, struct jfr_frame *frames, uint32_t max,
                        bool *ret_cut)
{
    struct walk_frame *walked = (struct walk_frame *)(void *)frames;
    struct walk_end end;
    unsigned n = snapshot_walk(stacks.later, of, stacks.flags, walked, max, &end);
    if (is_bare(n, &end))
        n = snapshot_walk(stacks.later, of, WALK_WITH_NATIVE, walked, max, &end);
    return conclude(frames, n, &end, ret_cut);
}

/*
 * Opens the libjvm that our JNI table belongs to, which is never unloaded. Returns NULL when the
 * table is in no library.
 */
static void *open_libjvm(void)
{
    Dl_info where;
    return dladdr((void *)(*vm.java)->GetEnv, &where) && where.dli_fname
               ? dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
               : NULL;
}

/* Creates the walker when it is first needed. Must be called from a platform thread of the VM. */
static int make_walker(JNIEnv *jni, char *why, size_t size)
{
    if (stacks.walker)
        return 0;
    void *libjvm = open_libjvm();
    uint64_t thread = vm_thread_address(jni, NULL);
    if (!libjvm || !thread) {
        snprintf(why, size, "this VM keeps its structures elsewhere");
        return -ENOTSUP;
    }
    int r = walker_new(&stacks.walker, libjvm, jni, thread, why, size);
    struct hotspot_image image = hotspot_image_of_library(libjvm);
    struct walk_chunks chunks;
    if (r == 0 && chunks_find(jni, walker_layout(stacks.walker), &image, &chunks))
        walker_chunks(stacks.walker, &chunks);
    return r;
}

stack_walk_fn *stack_vm(JNIEnv *jni, bool native, char *why, size_t size)
{
    stacks.flags = native ? WALK_WITH_NATIVE : 0;
    for (int i = 0; i < WALK_STATUSES; i++)
        atomic_store(&stacks.ends[i], 0);
    atomic_store(&stacks.recovered, 0);
    stacks.faults_before = walker_faults();
    return make_walker(jni, why, size) == 0 ? walk : NULL;
}

bool stack_vm_describe_all(void)
{
    struct hotspot_image image = hotspot_image_of_library(open_libjvm());
    uint64_t address =
        hotspot_flag_address(walker_layout(stacks.walker), &image, "DebugNonSafepoints");
    uint8_t value;
    if (!memory_read(&process_memory, address, &value, 1) || value > 1)
        return false;
    if (!value)
        stacks.describes_all = (uint8_t *)(uintptr_t)address;
    if (stacks.describes_all)
        *stacks.describes_all = 1;
    return true;
}

void stack_vm_describe_less(void)
{
    if (stacks.describes_all)
        *stacks.describes_all = 0;
    stacks.describes_all = NULL;
}

int stack_vm_prepare(JNIEnv *jni)
{
    char why[200];
    return make_walker(jni, why, sizeof(why));
}

const struct hotspot_layout *stack_vm_layout(void)
{
    return stacks.walker ? walker_layout(stacks.walker) : NULL;
}

int stack_vm_own(JNIEnv *jni, struct walk_frame *frames, uint32_t max, struct walk_words *ret_words)
{
    struct walk_end end;
    unsigned n = walk_own_stack(stacks.walker, jni, WALK_TO_HEAP, frames, max, ret_words, &end);
    return end.status <= WALK_DEPTH && !end.recovered ? (int)n : -1 - end.status;
}

bool stack_vm_start(JNIEnv *jni, struct walk_start *ret)
{
    return stacks.walker && known_stack_own_start(stacks.walker, jni, ret);
}

bool stack_vm_is(const struct known_stack *k, const struct walk_start *start)
{
    return known_stack_is(stacks.walker, k, start);
}

at_each_sample void stack_vm_fetch(const void *ucontext)
{
    if (stacks.walker)
        walker_fetch(stacks.walker, ucontext);
}

void stack_vm_work(void)
{
    if (stacks.walker)
        walker_refresh(stacks.walker);
}

int stack_vm_describe(uint64_t id, struct method_description *ret)
{
    return stacks.walker ? walker_describe(stacks.walker, id, ret) : -ESTALE;
}

bool stack_vm_class_name(uint64_t address, struct buf *ret)
{
    return stacks.walker && walker_class_name(stacks.walker, address, ret);
}

static int kernel_name(uint64_t pc, struct buf *library, struct buf *name)
{
    pthread_mutex_lock(&stacks.lock);
    if (!stacks.kernel)
        stacks.kernel = kernel_symbols_new();
    const char *found = stacks.kernel ? kernel_symbols_find(stacks.kernel, pc) : NULL;
    buf_string(library, "kernel");
    buf_string(name, found ? found : "[no symbol]");
    pthread_mutex_unlock(&stacks.lock);
    return 0;
}

int stack_vm_native_name(uint64_t id, struct buf *library, struct buf *name)
{
    uint64_t pc = walk_id_pc(id);
    struct symbol_place place;
    char stub[128];
    if (walk_id_kernel(id))
        return kernel_name(walk_id_kernel(id), library, name);
    if (pc == 0) {
        buf_string(name, "[frames in the heap]");
        return 0;
    }
    walker_stub_name(stacks.walker, pc, stub, sizeof(stub));
    if (stub[0]) {
        buf_string(name, stub);
        return 0;
    }
    pthread_mutex_lock(&stacks.lock);
    if (!stacks.symbols)
        stacks.symbols = symbols_new();
    /* The address after a call may belong to the next function. */
    int r = stacks.symbols ? symbols_find(stacks.symbols, pc - 1, &place) : -ENOMEM;
    if (r == 0) {
        buf_string(library, place.library);
        char plain[512];
        /*
         * A library without symbols gets a single row, because its addresses would become a row
         * each.
         */
        buf_string(name, place.name ? symbols_plain_name(place.name, plain, sizeof(plain))
                                    : "[no symbol]");
    }
    pthread_mutex_unlock(&stacks.lock);
    return r;
}

void stack_vm_trouble(uint64_t *ret_resumed, uint64_t *ret_faults)
{
    *ret_resumed = atomic_load(&stacks.recovered);
    *ret_faults = stacks.walker ? walker_faults() - stacks.faults_before : 0;
}

void stack_vm_status(struct buf *out)
{
    static const char *const names[WALK_STATUSES] = {"complete", "cut", "heap", "broken",
                                                     "faulted"};
    if (!stacks.walker)
        return;
    for (int i = 0; i < WALK_STATUSES; i++)
        buf_printf(out, "cpu.walks.%s %llu\n", names[i],
                   (unsigned long long)atomic_load(&stacks.ends[i]));
    uint64_t resumed, faults;
    stack_vm_trouble(&resumed, &faults);
    buf_printf(out, "cpu.walks_resumed %llu\ncpu.walk_faults %llu\n", (unsigned long long)resumed,
               (unsigned long long)faults);
}
