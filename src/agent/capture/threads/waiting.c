/* SPDX-License-Identifier: Apache-2.0 */
/* Writes waits that have not ended as jvmscope.Waiting. */

#include "agent/capture/threads/waiting.h"

#include "agent/capture/threads/mounts.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "base/clock.h"

static const char *const kind_names[WAIT_KINDS] = {"monitor", "wait", "park",
                                                   "sleep",   "io",   "unmounted"};
static uint64_t kind_strings[WAIT_KINDS], ready_string;

void waiting_init(struct jfr_writer *jfr)
{
    for (int i = 0; i < WAIT_KINDS; i++)
        kind_strings[i] = jfr_define_string(jfr, kind_names[i]);
    ready_string = jfr_define_string(jfr, "ready");
}

static bool put_kind(uint64_t thread, enum wait_kind kind, uint64_t name, const struct wait *how)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_WAITING], 0, &e))
        return false;
    jfr_put_time(&e, atomic_load(&how->start));
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)how->trace);
    jfr_put_string_id(&e, name);
    jfr_put_long(&e, (int64_t)how->class);
    jfr_put_long(&e, how->object);
    jfr_put_long(&e, (int64_t)how->owner);
    jfr_put_long(&e, kind == WAIT_PARK ? how->timeout : how->timeout * (int64_t)NS_PER_MS);
    jfr_commit(&e);
    return true;
}

bool threads_put_waiting(uint64_t thread, enum wait_kind kind, const struct wait *how)
{
    return put_kind(thread, kind, kind_strings[kind], how);
}

/*
 * Reports a virtual thread that has been ready for so long that an event will follow when it gets a
 * carrier.
 */
static void report_ready(const struct waiter *w)
{
    const struct wait *at = &w->waits[WAIT_UNMOUNTED];
    uint64_t since = mounts_ready_since(w), start = seqlock_stamp(&at->start);
    struct wait ready = {.start = since + 1, .trace = at->trace};
    if (start && since > start && seqlock_stamp_holds(&at->start, start))
        put_kind(w->id, WAIT_UNMOUNTED, ready_string, &ready);
}

/* The number of waits that are repeated in a new chunk of a ring. */
enum { AGAIN_MAX = 10000 };

struct waits_report {
    uint64_t before; /* waits that began then or earlier */
    bool again;      /* waits that were already reported are included, but at most so many: */
    uint32_t most, reported;
    uint64_t left; /* not reported because there were too many */
};

static void report_waiting(struct waiter *w, jthread thread, void *arg)
{
    struct waits_report *t = arg;
    if (t->before == UINT64_MAX)
        report_ready(w);
    for (int k = 0; k < WAIT_KINDS; k++) {
        struct wait *at = &w->waits[k];
        uint64_t start = seqlock_stamp(&at->start);
        if (!start || start > t->before ||
            (__atomic_load_n(&at->reported, __ATOMIC_RELAXED) && !t->again))
            continue;
        if (t->again && t->reported >= t->most) {
            t->left++;
            continue;
        }
        struct wait copy = {.start = start,
                            .trace = at->trace,
                            .class = at->class,
                            .owner = at->owner,
                            .timeout = at->timeout,
                            .object = at->object};
        /* Set first, so that a wait which ends meanwhile is not left out: either its thread sees
         * this, or the stamp has changed already. */
        __atomic_store_n(&at->reported, true, __ATOMIC_RELAXED);
        atomic_thread_fence(memory_order_seq_cst);
        if (seqlock_stamp_holds(&at->start, start) &&
            threads_put_waiting(w->id, (enum wait_kind)k, &copy))
            t->reported++;
        else
            __atomic_store_n(&at->reported, false, __ATOMIC_RELAXED);
    }
}

void waiting_report_all(uint64_t before)
{
    struct waits_report t = {.before = before};
    waiters_visit(NULL, report_waiting, &t);
}

void waiting_report_again(uint32_t most)
{
    struct waits_report t = {
        .before = UINT64_MAX, .again = true, .most = MIN(most, (uint32_t)AGAIN_MAX)};
    waiters_visit(NULL, report_waiting, &t);
    jfr_lose(thread_capture.jfr, LOSS_WAITS_AGAIN, t.left);
}

void waiting_keep_stack(struct wait *at)
{
    uint64_t trace = __atomic_load_n(&at->trace, __ATOMIC_RELAXED),
             kept = jfr_trace_keep(thread_capture.jfr, trace);
    /* The thread may have begun another wait meanwhile, with a stack of its own. */
    if (kept != trace)
        __atomic_compare_exchange_n(&at->trace, &trace, kept, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
}

static void keep_stacks_of(struct waiter *w, jthread thread, void *arg)
{
    for (int k = 0; k < WAIT_KINDS; k++)
        if (atomic_load_explicit(&w->waits[k].start, memory_order_acquire))
            waiting_keep_stack(&w->waits[k]);
}

void waiting_keep_stacks(void)
{
    waiters_visit(NULL, keep_stacks_of, NULL);
}
