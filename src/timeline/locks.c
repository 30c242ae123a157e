/* SPDX-License-Identifier: Apache-2.0 */
/* Handles threads that wait for a monitor, and the thread that released it to each of them. */
#include "timeline/private.h"

#include <errno.h>
#include <string.h>

/*
 * Called when a thread is seen as the owner of the monitor for which, according to its own records,
 * it still waits: it has acquired the monitor but has not reported that yet. This shows which
 * thread released the monitor, for instance the observer itself.
 */
static int handed_over(struct timeline_builder *b, uint32_t receiver, uint32_t object)
{
    struct activity *d = &b->activity.data[receiver];
    const struct monitor *m = timeline_monitor_of(b, object);
    if (d->depth == 0 || d->handed != TL_NONE || m->owner == TL_NONE || m->owner == receiver ||
        b->contexts.data[d->states[d->depth - 1].context].object != object)
        return 0;
    int r = timeline_thread_seen(b, m->owner);
    int64_t release = r < 0 ? r
                      : m->release != TL_NONE
                          ? m->release
                          : timeline_release_node(b, m->owner, object, receiver);
    if (release >= 0)
        b->activity.data[receiver].handed = (uint32_t)release;
    return release < 0 ? (int)release : 0;
}

/*
 * Called for a thread that enters the monitor from within Object.wait (JDK 27 and later): it was
 * awake when the VM reported the end of its wait, but did not have the monitor. Threads that seemed
 * to get the monitor from this thread since then got it from the previous owner.
 */
static void restore_owner(struct timeline_builder *b, const struct tl_event *e)
{
    if (e->stack == TL_NONE || !b->stacks_in_wait.data[e->stack])
        return;
    uint32_t last = b->threads.data[e->thread].last, n = last;
    for (; n != TL_NONE; n = timeline_node(b, n).prev) {
        const struct tl_node at = timeline_node(b, n);
        bool mounted = at.kind == TL_RUN && at.prev != TL_NONE &&
                       timeline_node(b, at.prev).kind == TL_UNMOUNTED;
        if (at.kind != TL_HANDOFF && at.kind != TL_UNMOUNTED && !mounted)
            break;
    }
    if (n == TL_NONE || timeline_node(b, n).kind != TL_RUN)
        return;
    const struct tl_node awake = timeline_node(b, n);
    for (uint32_t h = last; h != n; h = timeline_node(b, h).prev) {
        if (timeline_node(b, h).kind != TL_HANDOFF)
            continue;
        uint32_t receives = timeline_node(b, h).waker;
        if (receives != TL_NONE && timeline_node(b, receives).waker == h) {
            struct tl_node *receiver = timeline_node_edit(b, receives);
            receiver->edge = awake.edge;
            receiver->waker = awake.waker;
        }
        struct tl_node *handoff = timeline_node_edit(b, h);
        handoff->kind = TL_RUN;
        handoff->waker = TL_NONE;
        handoff->context = awake.context;
    }
}

static bool has_method(const struct timeline_builder *b, uint32_t stack, uint32_t method)
{
    const struct tl_stack *s = &b->stacks.data[stack];
    for (uint32_t k = 0; k < s->len; k++)
        if (b->frames.data[s->first + k].method == method)
            return true;
    return false;
}

static uint32_t root_of(const struct timeline_builder *b, uint32_t stack)
{
    const struct tl_stack *s = &b->stacks.data[stack];
    return s->len ? b->frames.data[s->first + s->len - 1].method : TL_NONE;
}

/*
 * Returns whether the last thread that is known to have got a monitor can still have it. Releases
 * without contention are not recorded, but a dead thread holds no monitor, and a thread that has
 * since waited, or affected another one, outside of the method in which it got the monitor has
 * released it.
 */
static bool can_have(const struct timeline_builder *b, const struct monitor *m)
{
    enum { BACK = 16 };

    if (m->owner == TL_NONE || b->activity.data[m->owner].ended)
        return false;
    if (m->got == TL_NONE || timeline_node(b, m->got).prev == TL_NONE)
        return true;
    uint32_t in = b->contexts.data[timeline_node(b, timeline_node(b, m->got).prev).context].stack;
    if (in == TL_NONE || b->stacks.data[in].len == 0)
        return true;
    uint32_t method = b->frames.data[b->stacks.data[in].first].method;
    uint32_t n = b->threads.data[m->owner].last;
    for (int i = 0; i < BACK && n != TL_NONE && n > m->got; i++, n = timeline_node(b, n).prev) {
        uint32_t stack = b->contexts.data[timeline_node(b, n).context].stack;
        /* A truncated stack has another root and does not show the outermost methods. */
        if (stack != TL_NONE && root_of(b, stack) == root_of(b, in) &&
            !has_method(b, stack, method))
            return false;
    }
    return true;
}

int timeline_on_enter(struct timeline_builder *b, const struct tl_event *e)
{
    struct monitor *m = timeline_monitor_of(b, e->object);
    struct tl_event enter = *e;
    restore_owner(b, e);
    if (m && e->other != TL_NONE) {
        int r = handed_over(b, e->other, e->object);
        if (r < 0)
            return r;
        if (m->owner != e->other)
            timeline_owned_by(m, e->other, true);
        m->owner_exact = true;
    } else if (m) {
        if (!can_have(b, m))
            timeline_owned_by(m, TL_NONE, false);
        enter.other = m->owner != e->thread && m->release == TL_NONE ? m->owner : TL_NONE;
    }
    if (enter.other != TL_NONE && timeline_thread_seen(b, enter.other) < 0)
        return -ENOMEM;
    int64_t n = timeline_block(b, &enter, TL_WAIT_LOCK);
    return n < 0 ? (int)n : 0;
}

static uint32_t block_context(const struct timeline_builder *b, uint32_t thread)
{
    const struct activity *d = &b->activity.data[thread];
    return d->states[d->depth - 1].context;
}

/*
 * Finds which thread released a contended monitor: the recorded one, or the owner according to the
 * map.
 */
static int entered_cause(struct timeline_builder *b, const struct tl_event *e,
                         struct timeline_cause *ret)
{
    struct monitor *m = timeline_monitor_of(b, e->object);
    bool recorded = e->other != TL_NONE && e->other != e->thread;
    uint32_t from = recorded ? e->other : m ? m->owner : TL_NONE;
    uint32_t dead = e->object != TL_NONE ? b->objects.data[e->object].thread : TL_NONE;
    if (dead != TL_NONE && dead != e->thread && b->activity.data[dead].ended) {
        /* A dying thread holds its own monitor while it wakes the threads that join it. */
        int64_t death = timeline_death_node(b, dead, e->thread);
        if (death >= 0)
            *ret = (struct timeline_cause){TL_BY_JOIN, (uint32_t)death, false};
        return death < 0 ? (int)death : 0;
    }
    uint32_t handed = b->activity.data[e->thread].handed;
    if (handed != TL_NONE) {
        b->activity.data[e->thread].handed = TL_NONE;
        *ret = (struct timeline_cause){TL_BY_HANDOFF, handed, false};
        return 0;
    }
    if (from == TL_NONE || from == e->thread)
        return 0;
    int64_t release = m && m->owner == from && m->release != TL_NONE ? m->release : TL_NONE;
    int r = timeline_thread_seen(b, from);
    /*
     * The owner had called wait() but had not released the monitor yet when this thread saw it as
     * the owner, and it has released the monitor since.
     */
    bool late = release != TL_NONE && m->owner_exact &&
                b->contexts.data[block_context(b, e->thread)].other == from &&
                timeline_node(b, (uint32_t)release).kind == TL_WAIT_OBJECT &&
                timeline_node(b, (uint32_t)release).time <
                    timeline_node(b, b->activity.data[e->thread].blocked_since).time;
    if (r == 0 && late)
        release = timeline_node_with(b, from, TL_HANDOFF, e->object, TL_NONE, e->thread);
    if (r == 0 && release == TL_NONE)
        release = timeline_release_node(b, from, e->object, e->thread);
    if (r < 0 || release < 0)
        return r < 0 ? r : (int)release;
    *ret = (struct timeline_cause){TL_BY_HANDOFF, (uint32_t)release,
                                   !recorded && m->release == TL_NONE && !m->owner_exact};
    return 0;
}

int timeline_on_entered(struct timeline_builder *b, const struct tl_event *e)
{
    struct activity *d = &b->activity.data[e->thread];
    struct timeline_cause cause = {TL_NO_EDGE, TL_NONE, false};
    bool waits = d->depth && d->states[d->depth - 1].kind == TL_WAIT_LOCK;
    int r = waits ? entered_cause(b, e, &cause) : 0;
    int64_t n = r < 0 ? r : timeline_unblock(b, e->thread, TL_WAIT_LOCK, TL_WAIT_LOCK);
    if (n < 0)
        return (int)n;
    if (n != TL_NONE && cause.waker != TL_NONE)
        timeline_bind_release(b, (uint32_t)n, cause.edge, cause.waker, cause.inferred);
    else if (n != TL_NONE)
        b->unbound++;
    struct monitor *m = timeline_monitor_of(b, e->object);
    timeline_owned_by(m, e->thread, true);
    if (m && n != TL_NONE)
        m->got = (uint32_t)n;
    return 0;
}
