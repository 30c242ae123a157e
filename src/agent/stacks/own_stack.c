/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stacks/own_stack.h"

#include "agent/stacks/names.h"
#include "agent/stacks/stack.h"
#include "agent/vm/self.h"
#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_LOG2 = 11, PAIRS = 4, PASSES = 256, PASS_STACKS = 15, COSTS_MAX = 1 << 14 };

/*
 * A walker's id of a method and its jmethodID. Written without a lock; `mixed` shows whether the
 * two words belong together.
 */
struct pair {
    _Atomic uint64_t mixed, method; /* mixed: id ^ method */
};

static struct {
    bool walks, checks;
    struct pair pairs[1 << LINES_LOG2][PAIRS] __attribute__((aligned(64)));
    _Atomic uint8_t passes[PASSES]; /* by thread: how many of its next stacks are not walked */
    /* id of Continuation.enterSpecial, below which are the carrier's frames; 0: not seen yet */
    _Atomic uint64_t enter;
    _Atomic uint64_t walked, learnt, unlike, lost[WALK_STATUSES];
    _Atomic uint32_t known, mistaken;     /* stacks=check: stacks that were recognized */
    _Atomic uint32_t compared, different; /* stacks that were walked in both ways */
    uint32_t walk_ns[COSTS_MAX], ask_ns[COSTS_MAX];
} own;

_Static_assert(sizeof(struct walk_frame) == sizeof(jvmtiFrameInfo), "walked where the answer goes");

void own_stack_start(JNIEnv *jni, const struct options *o)
{
    own.checks = option_is(o, OPT_STACKS, "check");
    own.walks = vm.hotspot && !option_is(o, OPT_WALKER, "jvmti") && stack_vm_prepare(jni) == 0;
}

static struct pair *pairs_of(uint64_t id)
{
    return own.pairs[(id * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - LINES_LOG2)];
}

static jmethodID method_in(const struct pair *p, uint64_t id)
{
    uint64_t value = atomic_load_explicit(&p->method, memory_order_relaxed);
    uint64_t mixed = atomic_load_explicit(&p->mixed, memory_order_relaxed);
    return (mixed ^ value) == id ? (jmethodID)(uintptr_t)value : NULL;
}

static jmethodID known_method(uint64_t id)
{
    jmethodID found = NULL;
    for (int i = 0; i < PAIRS && !found; i++)
        found = method_in(&pairs_of(id)[i], id);
    return found;
}

static void note(uint64_t id, jmethodID method)
{
    struct pair *line = pairs_of(id), *p = &line[(uintptr_t)method >> 4 & (PAIRS - 1)];
    uint64_t value = (uint64_t)(uintptr_t)method;
    for (int i = 0; i < PAIRS; i++)
        if (!line[i].method || method_in(&line[i], id)) {
            p = &line[i];
            break;
        }
    atomic_store_explicit(&p->mixed, id ^ value, memory_order_relaxed);
    atomic_store_explicit(&p->method, value, memory_order_relaxed);
}

static jint ask(jvmtiFrameInfo *frames, jint max)
{
    jint n = 0;
    return self_frames(0, max, frames, &n) == JVMTI_ERROR_NONE ? n : 0;
}

static jlocation location(const struct walk_frame *f)
{
    return f->kind == WALK_NATIVE_METHOD ? -1 : f->bci;
}

static bool same_name(JNIEnv *jni, uint64_t id, jmethodID reported)
{
    unsigned hold = names_hold();
    const struct method *m = names_method(jni, reported);
    struct method_description d;
    bool same = m && stack_vm_describe(id, &d) == 0;
    if (same) {
        same = strcmp(buf_str(&d.name), m->name) == 0 &&
               strcmp(buf_str(&d.signature), m->descriptor) == 0;
        method_description_release(&d);
    }
    names_unhold(hold);
    return same;
}

/*
 * A virtual thread's own stack ends where its carrier entered it; GetStackTrace returns no frames
 * below.
 */
static bool is_enter(uint64_t id)
{
    struct method_description d;
    if (vm.version < 21 || stack_vm_describe(id, &d) < 0)
        return false;
    bool enter = strcmp(buf_str(&d.class_name), "jdk/internal/vm/Continuation") == 0 &&
                 strcmp(buf_str(&d.name), "enterSpecial") == 0;
    method_description_release(&d);
    if (enter)
        atomic_store(&own.enter, id);
    return enter;
}

static bool same_frames(JNIEnv *jni, const struct walk_frame *walked, int n,
                        const jvmtiFrameInfo *reported, jint reported_n)
{
    if (n < reported_n || (n > reported_n && !is_enter(walked[reported_n].id)))
        return false;
    for (jint i = 0; i < reported_n; i++)
        if (location(&walked[i]) != reported[i].location ||
            !same_name(jni, walked[i].id, reported[i].method))
            return false;
    return true;
}

/*
 * Gets a stack with unknown methods from GetStackTrace as well as from the walker. Both return the
 * same frames, which shows the jmethodIDs of these methods.
 */
static jint learn(JNIEnv *jni, jvmtiFrameInfo *frames, jint max)
{
    struct walk_frame *walked = malloc((size_t)max * sizeof(*walked));
    jint reported = ask(frames, max);
    int n = walked ? stack_vm_own(jni, walked, (uint32_t)max, NULL) : -1;
    bool same = walked && same_frames(jni, walked, n, frames, reported);
    atomic_fetch_add_explicit(same ? &own.learnt : &own.unlike, 1, memory_order_relaxed);
    for (jint i = 0; same && i < reported; i++)
        note(walked[i].id, frames[i].method);
    free(walked);
    return reported;
}

/*
 * Converts the walker's frames to those of GetStackTrace, down to the end of a virtual thread's
 * stack. Returns their number, or -1 if the jmethodID of a frame is unknown.
 */
static jint translate(jvmtiFrameInfo *frames, jint n)
{
    uint64_t enter = atomic_load_explicit(&own.enter, memory_order_relaxed);
    for (jint i = 0; i < n; i++) {
        struct walk_frame walked;
        memcpy(&walked, &frames[i], sizeof(walked));
        if (walked.id == enter)
            return i;
        frames[i] = (jvmtiFrameInfo){known_method(walked.id), location(&walked)};
        if (!frames[i].method || (walked.bci < 0 && walked.kind != WALK_NATIVE_METHOD))
            return -1;
    }
    return n;
}

/*
 * A carrier whose virtual threads have frames in the heap will usually have such stacks again, so
 * most of its next stacks are requested from the VM right away.
 */
static int walk_unless_heap(JNIEnv *jni, struct walk_frame *frames, jint max,
                            struct walk_words *words)
{
    _Atomic uint8_t *passes = &own.passes[((uintptr_t)jni >> 7) % PASSES];
    uint8_t left = atomic_load_explicit(passes, memory_order_relaxed);
    int n = left ? -1 - WALK_HEAP : stack_vm_own(jni, frames, (uint32_t)max, words);
    if (n == -1 - WALK_HEAP)
        atomic_store_explicit(passes, left ? left - 1 : PASS_STACKS, memory_order_relaxed);
    return n;
}

static jint walk(JNIEnv *jni, jvmtiFrameInfo *frames, jint max, struct walk_words *words)
{
    int walked = walk_unless_heap(jni, (struct walk_frame *)(void *)frames, max, words);
    jint n = walked < 0 ? -1 : translate(frames, walked);
    if (n >= 0) {
        atomic_fetch_add_explicit(&own.walked, 1, memory_order_relaxed);
        return n;
    }
    if (words)
        words->n = 0;
    if (walked >= 0)
        return learn(jni, frames, max);
    atomic_fetch_add_explicit(&own.lost[-1 - walked], 1, memory_order_relaxed);
    return ask(frames, max);
}

static bool same_method(JNIEnv *jni, jmethodID a, jmethodID b)
{
    unsigned hold = names_hold();
    const struct method *x = a == b ? NULL : names_method(jni, a);
    const struct method *y = x ? names_method(jni, b) : NULL;
    /* For a method that was redefined while it ran, GetStackTrace returns another id. */
    bool same =
        a == b || (x && y && strcmp(x->class_name, y->class_name) == 0 &&
                   strcmp(x->name, y->name) == 0 && strcmp(x->descriptor, y->descriptor) == 0);
    names_unhold(hold);
    return same;
}

/* Uses both ways, compares and times them. */
static jint check(JNIEnv *jni, jvmtiFrameInfo *frames, jint max, struct walk_words *words)
{
    jvmtiFrameInfo *reported = malloc((size_t)max * sizeof(*reported));
    uint64_t begin = now_ns();
    jint n = walk(jni, frames, max, words);
    uint64_t walked = now_ns();
    jint reported_n = reported ? ask(reported, max) : -1;
    uint64_t asked = now_ns();
    bool same = n == reported_n;
    for (jint i = 0; same && i < n; i++)
        same = frames[i].location == reported[i].location &&
               same_method(jni, frames[i].method, reported[i].method);
    uint32_t at = atomic_fetch_add(&own.compared, 1);
    if (at < COSTS_MAX) {
        own.walk_ns[at] = (uint32_t)(walked - begin);
        own.ask_ns[at] = (uint32_t)(asked - walked);
    }
    if (!same)
        atomic_fetch_add(&own.different, 1);
    free(reported);
    return n;
}

jint own_stack_words(JNIEnv *jni, jvmtiFrameInfo *frames, jint max, struct walk_words *ret_words)
{
    if (own.walks)
        return own.checks ? check(jni, frames, max, ret_words) : walk(jni, frames, max, ret_words);
    if (ret_words)
        ret_words->n = 0;
    return ask(frames, max);
}

bool own_stack_place(JNIEnv *jni, struct walk_start *ret)
{
    return own.walks && stack_vm_start(jni, ret);
}

bool own_stack_is(const struct known_stack *k, const struct walk_start *start)
{
    return stack_vm_is(k, start);
}

bool own_stack_checks(void)
{
    return own.checks;
}

void own_stack_checked(bool same)
{
    atomic_fetch_add(&own.known, 1);
    if (!same)
        atomic_fetch_add(&own.mistaken, 1);
}

jint own_stack(JNIEnv *jni, jvmtiFrameInfo *frames, jint max)
{
    return own_stack_words(jni, frames, max, NULL);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report_check(void)
{
    uint32_t n = MIN(atomic_load(&own.compared), COSTS_MAX);
    qsort(own.walk_ns, n, sizeof(*own.walk_ns), by_number);
    qsort(own.ask_ns, n, sizeof(*own.ask_ns), by_number);
    fprintf(stderr,
            "hprof: stacks=check: %u compared, %u different, median %u ns walked, %u ns by "
            "GetStackTrace\n",
            atomic_load(&own.compared), atomic_load(&own.different), n ? own.walk_ns[n / 2] : 0,
            n ? own.ask_ns[n / 2] : 0);
    fprintf(stderr, "hprof: stacks=check: %u recognized, %u of them mistaken\n",
            atomic_load(&own.known), atomic_load(&own.mistaken));
}

void own_stack_status(struct buf *out)
{
    static const char *const names[WALK_STATUSES] = {
        [WALK_HEAP] = "heap", [WALK_BROKEN] = "broken", [WALK_FAULT] = "faulted"};
    if (!own.walks)
        return;
    buf_printf(out, "stacks.walked %llu\nstacks.learnt %llu\nstacks.asked.unlike %llu\n",
               (unsigned long long)atomic_load(&own.walked),
               (unsigned long long)atomic_load(&own.learnt),
               (unsigned long long)atomic_load(&own.unlike));
    for (int i = WALK_HEAP; i < WALK_STATUSES; i++)
        buf_printf(out, "stacks.asked.%s %llu\n", names[i],
                   (unsigned long long)atomic_load(&own.lost[i]));
}

void own_stack_release(void)
{
    if (!own.walks)
        return;
    if (own.checks) {
        struct buf status = BUF(4096);
        own_stack_status(&status);
        fwrite(status.data, 1, status.len, stderr);
        buf_release(&status);
        report_check();
    }
    own.walks = false;
    if (vm.dying)
        return;
    memset(own.pairs, 0, sizeof(own.pairs));
    own.walked = own.learnt = own.unlike = 0;
    own.compared = own.different = own.known = own.mistaken = 0;
    for (int i = 0; i < WALK_STATUSES; i++)
        own.lost[i] = 0;
}
