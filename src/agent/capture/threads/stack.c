/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread. A program waits repeatedly at a small number of places, so each
 * thread keeps its last stacks, which are recognized without another walk (unwind/known.h). Stacks
 * of virtual threads are walked each time, because part of them may be in the heap.
 */

#include "agent/capture/threads/stack.h"

#include "agent/capture/threads/owner.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/session/budget.h"
#include "agent/stacks/own_stack.h"
#include "agent/stacks/stack.h"
#include "agent/vm/self.h"
#include "hotspot/layout.h"

#include <stdlib.h>

enum { DEPTH_MAX = 512, LAST = 8 };

static _Atomic uint32_t recordings;

/* A stack that the thread had recently. */
struct last_stack {
    uint64_t trace;
    uint32_t recording; /* to which the trace belongs */
    struct known_stack known;
};

struct last_stacks {
    uint32_t next;     /* index of the entry that is replaced next */
    uint64_t sp[LAST]; /* their stack pointers when they left Java, which usually differ */
    struct last_stack stacks[LAST];
};

static const struct hotspot_layout *layout;
static struct jfr_writer *writer; /* the recording whose traces are cached; NULL: no caching */

void stack_init(JNIEnv *jni)
{
    writer = NULL;
    atomic_fetch_add(&recordings, 1);
    layout = stack_vm_layout();
    if (layout && owner_vm_thread(jni))
        writer = thread_capture.jfr;
}

static uint64_t word_at(uint64_t address)
{
    return *(const volatile uint64_t *)(uintptr_t)address;
}

/*
 * Finds where a walk of the calling thread's stack starts. Returns false for a virtual thread, or
 * if there is no Java stack.
 */
static bool find_start(JNIEnv *jni, struct walk_start *ret)
{
    uint64_t thread = owner_vm_thread(jni);
    return thread &&
           (layout->thread_cont_entry < 0 ||
            !word_at(thread + (uint64_t)layout->thread_cont_entry)) &&
           own_stack_place(jni, ret);
}

static const struct last_stack *find_last(const struct last_stacks *all,
                                          const struct walk_start *start)
{
    uint32_t now = atomic_load_explicit(&recordings, memory_order_relaxed);
    for (int i = 0; i < LAST; i++)
        if (all->sp[i] == start->sp && all->stacks[i].recording == now &&
            own_stack_is(&all->stacks[i].known, start))
            return &all->stacks[i];
    return NULL;
}

static void keep(struct last_stacks *all, const struct walk_words *words, uint64_t trace)
{
    uint32_t place = all->next++ % LAST;
    struct last_stack *last = &all->stacks[place];
    all->sp[place] = known_stack_keep(&last->known, words) ? words->start.sp : 0;
    last->trace = trace;
    last->recording = atomic_load_explicit(&recordings, memory_order_relaxed);
}

void stack_forget_last(struct last_stacks *all)
{
    for (int i = 0; all && i < LAST; i++)
        known_stack_release(&all->stacks[i].known);
    free(all);
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
                                    (int32_t)frames[i].location, JFR_FRAME_JAVA};
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

uint64_t stack_of_unmounting_thread(void)
{
    jvmtiFrameInfo frames[DEPTH_MAX];
    jint n = 0;
    if (thread_capture.depth == 0 || self_frames(0, depth(), frames, &n) != JVMTI_ERROR_NONE)
        return 0;
    return trace_of(frames, n);
}

uint64_t stack_here(JNIEnv *jni, struct waiter *w)
{
    struct walk_start start;
    struct walk_words words;
    if (thread_capture.depth == 0)
        return 0;
    if (writer != thread_capture.jfr || !find_start(jni, &start))
        return walk(jni, NULL);
    if (unlikely(!w->last) && !(w->last = calloc(1, sizeof(*w->last))))
        return walk(jni, NULL);
    const struct last_stack *last = find_last(w->last, &start);
    if (last && !jfr_trace_stays(thread_capture.jfr, last->trace))
        last = NULL;
    if (likely(last) && likely(!own_stack_checks()))
        return last->trace;
    uint64_t trace = walk(jni, &words);
    if (last)
        own_stack_checked(trace == last->trace);
    keep(w->last, &words, trace);
    return trace;
}

uint64_t stack_of_wait(JNIEnv *jni, struct waiter *w)
{
    return w->was_short && !budget_keeps(&budget_stacks_of) ? 0 : stack_here(jni, w);
}
