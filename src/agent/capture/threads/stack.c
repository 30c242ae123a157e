/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread. A program waits at few places over and over: so a stack is known again by a fingerprint of
 * the thread's memory, for half of what the walk of own_stack.h costs. Into that goes every word of the Java part that lies in
 * the code cache, with its place: all return addresses are among them, and these say which compiled methods are where. Of a
 * frame of the interpreter, whose return address is the same for all methods, the method and the place of its bytecode go in
 * too. Words that are left over from earlier calls make a stack unknown at worst. Stacks of virtual threads are walked each
 * time: part of them may lie in the heap.
 *
 * Of the last stacks of a thread the words that went into the fingerprint are kept: while all of these are what they were, the
 * frames are the same. The innermost one has the same code and place, so it ends where it ended; what lies there is the place
 * in its caller, which is the same; and so on. That takes a tenth of the fingerprint's time.
 */
#include "agent/capture/threads/threads.h"

#include "agent/own_stack.h"
#include "hotspot/code.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 512, ENTRIES = 1 << 14, SCAN_MAX = 1 << 17, LAST = 8, WORDS_MAX = 200 };

/* What is known is so for three seconds: by then code that was thrown away may have made room for other code. */
enum { KNOWN_FLUSHES = 30 };

static _Atomic uint32_t flushes, age = 1;

/* A stack that its thread had a moment ago. */
struct last_stack {
    uint64_t fp, trace;
    uint32_t age, n;        /* n: words; 0: none */
    uint16_t at[WORDS_MAX]; /* in words below the stack's highest address */
    uint64_t word[WORDS_MAX];
};

struct last_stacks {
    uint32_t next; /* to be replaced */
    uint64_t sp[LAST], pc[LAST];
    struct last_stack stacks[LAST];
};

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
    atomic_fetch_add(&age, 1); /* traces of another recording */
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

/* The Java part of the calling thread's stack: from low to high; where it ends, and the innermost frame's code and fp. */
struct extent {
    uint64_t low, high, sp, pc, fp;
};

static bool find_extent(JNIEnv *jni, struct extent *ret)
{
    uint64_t thread = owner_vm_thread(jni), anchor = thread + (uint64_t)layout.thread_anchor;
    if (!thread || (layout.thread_cont_entry >= 0 && word_at(thread + (uint64_t)layout.thread_cont_entry)))
        return false;
    uint64_t sp = word_at(anchor + (uint64_t)layout.anchor_sp), high = word_at(thread + (uint64_t)layout.thread_stack_base);
    if (!sp || sp & 7 || sp >= high || high - sp > SCAN_MAX)
        return false;
    *ret = (struct extent){sp - 16, high, sp, word_at(anchor + (uint64_t)layout.anchor_pc),
                           word_at(anchor + (uint64_t)layout.anchor_fp)};
    return true;
}

static void keep(const struct extent *e, uint64_t at, struct last_stack *last)
{
    if (last->n < WORDS_MAX) {
        last->at[last->n] = (uint16_t)((e->high - at) / 8);
        last->word[last->n] = word_at(at);
    }
    last->n++;
}

/* What an interpreter's frame runs: its method, and where in it. */
static uint64_t take_interpreted(uint64_t hash, const struct extent *e, uint64_t fp, struct last_stack *last)
{
    uint64_t method = fp - 24, place = fp - 8 * (uint64_t)layout.interpreter_bcp;
    keep(e, method, last);
    keep(e, place, last);
    return mix(mix(hash, word_at(method)), word_at(place));
}

/* False: a word that was left over. */
static bool is_frame(const struct extent *e, uint64_t fp)
{
    return !(fp & 7) && fp >= e->low + 128 && fp < e->high;
}

/* Of all words that count, which are kept; and so are those that say where an interpreter's frame is. */
static uint64_t fingerprint(const struct extent *e, struct last_stack *last)
{
    uint64_t hash = mix(mix(last->age, e->high - e->sp), e->pc);
    last->n = 0;
    /* The interpreter's own native frame is the one that has no return address of its own below it. */
    if (is_frame(e, e->fp))
        hash = take_interpreted(hash, e, e->fp, last);
    for (uint64_t at = e->low; at < e->high; at += 8) {
        uint64_t word = word_at(at);
        if (likely(!code_holds(&cache, word)))
            continue;
        hash = mix(hash, word + (e->high - at));
        keep(e, at, last);
        uint64_t fp = code_is_interpreter(&cache, word) ? word_at(at - 8) : 0;
        if (unlikely(is_frame(e, fp))) {
            keep(e, at - 8, last);
            hash = take_interpreted(hash, e, fp, last);
        }
    }
    return hash ? hash : 1;
}

static bool same_as(const struct last_stack *last, const struct extent *e)
{
    for (uint32_t i = 0; i < last->n; i++)
        if (word_at(e->high - 8 * (uint64_t)last->at[i]) != last->word[i])
            return false;
    return true;
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

/* By the table that all threads share. */
static uint64_t find_known(JNIEnv *jni, uint64_t print)
{
    uint64_t place = print >> 20 & (ENTRIES - 1);
    uint64_t trace = atomic_load_explicit(&known[place].trace, memory_order_relaxed);
    if (trace && (atomic_load_explicit(&known[place].mixed, memory_order_relaxed) ^ trace) == print)
        return trace;
    trace = walk(jni);
    atomic_store_explicit(&known[place].mixed, print ^ trace, memory_order_relaxed);
    atomic_store_explicit(&known[place].trace, trace, memory_order_relaxed);
    return trace;
}

/* The place of a stack that ends there, or one for it. */
static struct last_stack *find_last(struct last_stacks *all, const struct extent *e)
{
    for (int i = 0; i < LAST; i++)
        if (all->sp[i] == e->sp && all->pc[i] == e->pc)
            return &all->stacks[i];
    uint32_t i = all->next++ % LAST;
    all->sp[i] = e->sp;
    all->pc[i] = e->pc;
    all->stacks[i].n = 0;
    return &all->stacks[i];
}

uint64_t stack_here(JNIEnv *jni, struct waiter *w)
{
    struct extent e;
    if (thread_capture.depth == 0)
        return 0;
    if (writer != thread_capture.jfr || !find_extent(jni, &e))
        return walk(jni);
    if (unlikely(!w->last) && !(w->last = calloc(1, sizeof(*w->last))))
        return walk(jni);
    uint32_t now = atomic_load_explicit(&age, memory_order_relaxed);
    struct last_stack *last = find_last(w->last, &e);
    if (likely(last->n && last->fp == e.fp && last->age == now && same_as(last, &e)))
        return last->trace;
    last->age = now;
    last->fp = e.fp;
    last->trace = find_known(jni, fingerprint(&e, last));
    if (last->n > WORDS_MAX)
        last->n = 0; /* too many to keep */
    return last->trace;
}

void stack_flush(void)
{
    if (atomic_fetch_add(&flushes, 1) % KNOWN_FLUSHES == 0)
        atomic_fetch_add(&age, 1);
}
