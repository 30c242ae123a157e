/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread. A program waits at few places over and over: so a stack is known again by a fingerprint of
 * the thread's memory, for half of what the walk of own_stack.h costs. Into that goes every word of the Java part that lies in
 * the code cache, with its place: all return addresses are among them, and these say which compiled methods are where. Of a
 * frame of the interpreter, whose return address is the same for all methods, the method and the place of its bytecode go in
 * too. Words that are left over from earlier calls make a stack unknown at worst. Stacks of virtual threads are walked each
 * time: part of them may lie in the heap.
 */
#include "agent/capture/threads/threads.h"

#include "agent/own_stack.h"
#include "base/clock.h"
#include "hotspot/code.h"

#include <dlfcn.h>
#include <string.h>

enum { DEPTH_MAX = 512, ENTRIES = 1 << 14, SCAN_MAX = 1 << 17 };

/* A fingerprint is known for four seconds: by then code that was thrown away may have made room for other code. */
#define KNOWN_SHIFT 32

/* Neither is written under a lock: the two belong together when they give the fingerprint. */
static struct {
    _Atomic uint64_t mixed, trace; /* mixed: fingerprint ^ trace */
} known[ENTRIES];

static struct hotspot_layout layout;
static struct code_cache cache;
static struct jfr_writer *writer; /* whose traces are known */

void stack_init(JNIEnv *jni)
{
    Dl_info info;
    char why[256];
    writer = NULL;
#if defined(__x86_64__)
    void *libjvm = vm.hotspot && owner_vm_thread(jni) && dladdr((void *)(uintptr_t)(*vm.ti)->GetPhase, &info)
                       ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                       : NULL;
    if (!libjvm)
        return;
    struct hotspot_image image = hotspot_image_of_library(libjvm);
    if (hotspot_layout_read(&image, &layout, why, sizeof(why)) == 0 &&
        code_cache_init(&cache, &layout, &process_memory, why, sizeof(why)) == 0)
        writer = thread_capture.jfr;
    memset(known, 0, sizeof(known));
#endif
}

static uint64_t word_at(uint64_t address)
{
    return *(const volatile uint64_t *)(uintptr_t)address;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* What an interpreter's frame runs: its method, and where in it. */
static uint64_t mix_interpreted(uint64_t hash, uint64_t fp, uint64_t low, uint64_t high)
{
    if (fp & 7 || fp < low + 128 || fp >= high)
        return hash; /* a word that was left over */
    return mix(mix(hash, word_at(fp - 24)), word_at(fp - 8 * (uint64_t)layout.interpreter_bcp));
}

/* 0: it cannot be told. */
static uint64_t fingerprint(JNIEnv *jni)
{
    uint64_t thread = owner_vm_thread(jni), anchor = thread + (uint64_t)layout.thread_anchor;
    if (!thread || (layout.thread_cont_entry >= 0 && word_at(thread + (uint64_t)layout.thread_cont_entry)))
        return 0;
    uint64_t sp = word_at(anchor + (uint64_t)layout.anchor_sp), high = word_at(thread + (uint64_t)layout.thread_stack_base);
    if (!sp || sp & 7 || sp >= high || high - sp > SCAN_MAX)
        return 0;
    uint64_t low = sp - 16, hash = mix(now_ns() >> KNOWN_SHIFT, high - sp);
    /* The interpreter's own native frame is the one that has no return address of its own below it. */
    uint64_t pc = word_at(anchor + (uint64_t)layout.anchor_pc), fp = word_at(anchor + (uint64_t)layout.anchor_fp);
    hash = mix(hash, pc);
    if (fp)
        hash = mix_interpreted(hash, fp, low, high);
    for (uint64_t at = low; at < high; at += 8) {
        uint64_t word = word_at(at);
        if (likely(!code_holds(&cache, word)))
            continue;
        hash = mix(hash, word + (high - at));
        if (code_is_interpreter(&cache, word))
            hash = mix_interpreted(hash, word_at(at - 8), low, high);
    }
    return hash;
}

static jint depth(void)
{
    return MIN(thread_capture.depth, (jint)DEPTH_MAX);
}

static uint64_t trace_of(const jvmtiFrameInfo *frames, jint n)
{
    struct jfr_frame out[DEPTH_MAX];
    for (jint i = 0; i < n; i++)
        out[i] = (struct jfr_frame){(uint64_t)(uintptr_t)frames[i].method, (int32_t)frames[i].location, JFR_FRAME_JIT};
    return jfr_trace(thread_capture.jfr, out, (uint32_t)n, n == depth());
}

static uint64_t walk(JNIEnv *jni)
{
    jvmtiFrameInfo frames[DEPTH_MAX];
    return trace_of(frames, own_stack(jni, frames, depth()));
}

uint64_t stack_unmounting(void)
{
    jvmtiFrameInfo frames[DEPTH_MAX];
    jint n = 0;
    if (thread_capture.depth == 0 || (*vm.ti)->GetStackTrace(vm.ti, NULL, 0, depth(), frames, &n) != JVMTI_ERROR_NONE)
        return 0;
    return trace_of(frames, n);
}

uint64_t stack_here(JNIEnv *jni)
{
    if (thread_capture.depth == 0)
        return 0;
    uint64_t print = writer == thread_capture.jfr ? fingerprint(jni) : 0;
    if (!print)
        return walk(jni);
    uint64_t place = print >> 20 & (ENTRIES - 1);
    uint64_t trace = atomic_load_explicit(&known[place].trace, memory_order_relaxed);
    if (trace && (atomic_load_explicit(&known[place].mixed, memory_order_relaxed) ^ trace) == print)
        return trace;
    trace = walk(jni);
    atomic_store_explicit(&known[place].mixed, print ^ trace, memory_order_relaxed);
    atomic_store_explicit(&known[place].trace, trace, memory_order_relaxed);
    return trace;
}
