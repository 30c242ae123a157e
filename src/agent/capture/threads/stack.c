/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread. A program waits repeatedly at a small number of places. For each
 * thread's last stacks we keep the words that determine their frames (unwind/walk.h); while all of
 * these words are unchanged, the frames are too, which saves nine tenths of a walk. Stacks of
 * virtual threads are walked each time, because part of them may be in the heap.
 */

#include "agent/capture/threads/stack.h"

#include "agent/capture/budget/budget.h"
#include "agent/capture/threads/owner.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/stacks/own_stack.h"
#include "agent/stacks/stack.h"
#include "hotspot/layout.h"

#include <stdlib.h>

enum { DEPTH_MAX = 512, LAST = 8, STACK_WORDS_MAX = 1 << 16 };

/*
 * Cached stacks are valid for three seconds: after that, code may have been freed and its memory
 * used for other code.
 */
enum { KNOWN_FLUSHES = 30 };

static _Atomic uint32_t flushes, age = 1;

/* A stack that its thread had recently. */
struct last_stack {
    uint64_t trace;
    uint32_t age, n;             /* n: number of words; 0: none */
    uint16_t at[WALK_WORDS_MAX]; /* in words below the highest address of the stack */
    uint64_t word[WALK_WORDS_MAX];
};

/* Where Java code was left; together with the words it determines the frames. */
struct left_java {
    uint64_t sp, pc, fp;
};

struct last_stacks {
    uint32_t next; /* to be replaced next */
    struct left_java left[LAST];
    struct last_stack stacks[LAST];
};

static const struct hotspot_layout *layout;
static struct jfr_writer *writer; /* the capture whose traces are cached; NULL: no caching */

void stack_init(JNIEnv *jni)
{
    writer = NULL;
    atomic_fetch_add(&age, 1); /* the traces belong to another recording */
    layout = stack_vm_layout();
    if (layout && owner_vm_thread(jni))
        writer = thread_capture.jfr;
}

static uint64_t word_at(uint64_t address)
{
    return *(const volatile uint64_t *)(uintptr_t)address;
}

/* False for a virtual thread's stack, or when there is none. */
static bool find_left(JNIEnv *jni, struct left_java *ret, uint64_t *ret_high)
{
    uint64_t thread = owner_vm_thread(jni), anchor = thread + (uint64_t)layout->thread_anchor;
    if (!thread ||
        (layout->thread_cont_entry >= 0 && word_at(thread + (uint64_t)layout->thread_cont_entry)))
        return false;
    *ret = (struct left_java){
        word_at(anchor + (uint64_t)layout->anchor_sp),
        word_at(anchor + (uint64_t)layout->anchor_pc),
        layout->anchor_fp < 0 ? 0 : word_at(anchor + (uint64_t)layout->anchor_fp)};
    *ret_high = word_at(thread + (uint64_t)layout->thread_stack_base);
    return ret->sp && ret->sp < *ret_high;
}

static bool same_words(const struct last_stack *last, uint64_t high)
{
    for (uint32_t i = 0; i < last->n; i++)
        if (word_at(high - 8 * (uint64_t)last->at[i]) != last->word[i])
            return false;
    return true;
}

static const struct last_stack *find_last(const struct last_stacks *all,
                                          const struct left_java *left, uint64_t high)
{
    uint32_t now = atomic_load_explicit(&age, memory_order_relaxed);
    for (int i = 0; i < LAST; i++)
        if (all->left[i].sp == left->sp && all->left[i].pc == left->pc &&
            all->left[i].fp == left->fp && all->stacks[i].n && all->stacks[i].age == now &&
            same_words(&all->stacks[i], high))
            return &all->stacks[i];
    return NULL;
}

static void keep(struct last_stacks *all, const struct left_java *left, uint64_t high,
                 const struct walk_words *words, uint64_t trace)
{
    uint32_t place = all->next++ % LAST;
    struct last_stack *last = &all->stacks[place];
    all->left[place] = *left;
    last->trace = trace;
    last->age = atomic_load_explicit(&age, memory_order_relaxed);
    last->n = words->n <= WALK_WORDS_MAX ? words->n : 0;
    for (uint32_t i = 0; i < last->n; i++) {
        uint64_t below = (high - words->at[i]) / 8;
        if (below >= STACK_WORDS_MAX) {
            last->n = 0;
            break;
        }
        last->at[i] = (uint16_t)below;
        last->word[i] = word_at(words->at[i]);
    }
}

static jint depth(void)
{
    return MIN(thread_capture.depth, (jint)DEPTH_MAX);
}

static uint64_t trace_of(const jvmtiFrameInfo *frames, jint n)
{
    struct jfr_frame out[DEPTH_MAX];
    for (jint i = 0; i < n; i++)
        out[i] = (struct jfr_frame){(uint64_t)(uintptr_t)frames[i].method,
                                    (int32_t)frames[i].location, JFR_FRAME_JIT};
    return jfr_trace(thread_capture.jfr, out, (uint32_t)n, n == depth());
}

uint64_t stack_of_frames(const jvmtiFrameInfo *frames, jint n)
{
    return thread_capture.depth ? trace_of(frames, n) : 0;
}

static uint64_t walk(JNIEnv *jni, struct walk_words *ret_words)
{
    jvmtiFrameInfo frames[DEPTH_MAX];
    return trace_of(frames, own_stack_words(jni, frames, depth(), ret_words));
}

uint64_t stack_unmounting(void)
{
    jvmtiFrameInfo frames[DEPTH_MAX];
    jint n = 0;
    if (thread_capture.depth == 0 ||
        (*vm.ti)->GetStackTrace(vm.ti, NULL, 0, depth(), frames, &n) != JVMTI_ERROR_NONE)
        return 0;
    return trace_of(frames, n);
}

uint64_t stack_here(JNIEnv *jni, struct waiter *w)
{
    struct left_java left;
    struct walk_words words;
    uint64_t high;
    if (thread_capture.depth == 0)
        return 0;
    if (writer != thread_capture.jfr || !find_left(jni, &left, &high))
        return walk(jni, NULL);
    if (unlikely(!w->last) && !(w->last = calloc(1, sizeof(*w->last))))
        return walk(jni, NULL);
    const struct last_stack *last = find_last(w->last, &left, high);
    if (likely(last) && likely(jfr_trace_stays(thread_capture.jfr, last->trace)))
        return last->trace;
    uint64_t trace = walk(jni, &words);
    keep(w->last, &left, high, &words, trace);
    return trace;
}

uint64_t stack_of_wait(JNIEnv *jni, struct waiter *w)
{
    return w->was_short && !budget_keeps(&budget_stacks_of) ? 0 : stack_here(jni, w);
}

void stack_flush(void)
{
    if (atomic_fetch_add(&flushes, 1) % KNOWN_FLUSHES == 0)
        atomic_fetch_add(&age, 1);
}
