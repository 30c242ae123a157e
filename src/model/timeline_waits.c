/* SPDX-License-Identifier: Apache-2.0 */
/* Waits and what ended them: the binding rules of the TPTP thread profiler, and its maps. */
#include "model/timeline_private.h"

#include <errno.h>
#include <string.h>

/*
 * A notification may be recorded this long before the wait that it ends, because the clocks of two
 * threads differ by that much.
 */
#define LATE_NOTIFY_NS 100000
/* The carrier of a virtual thread wakes threads that joined it within this time after its end. */
#define AFTER_END_NS 1000000
/* A wait that ends this much after its timeout was not waiting for the timer alone. */
#define LATE_TIMEOUT_NS 2000000

struct monitor *timeline_monitor_of(struct timeline_builder *b, uint32_t object)
{
    return object == TL_NONE ? NULL : &b->monitors.data[object];
}

void timeline_owned_by(struct monitor *m, uint32_t thread, bool exact)
{
    if (!m)
        return;
    if (m->owner != thread || exact)
        m->release = TL_NONE;
    if (m->owner != thread)
        m->got = TL_NONE;
    m->owner = thread;
    m->owner_exact = exact;
}

/*
 * Returns the node at which a thread may have released the monitor for a receiver that runs now. A
 * waiting thread releases nothing (except in wait itself, at its beginning), so it is where its
 * wait began; for a dead thread it is its last node; otherwise the current time.
 */
static int64_t release_node(struct timeline_builder *b, uint32_t owner, uint32_t object,
                            uint32_t receiver)
{
    const struct doing *d = &b->doing.data[owner];
    if (d->blocked_since != TL_NONE)
        return d->blocked_since;
    if (d->ended)
        return b->threads.data[owner].last;
    return timeline_node_with(b, owner, TL_HANDOFF, object, TL_NONE, receiver);
}

/* Begins a wait of any kind. A wait within a wait of the same kind is part of it. */
int64_t timeline_block(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind)
{
    struct doing *d = &b->doing.data[e->thread];
    if (d->depth == NESTING) {
        d->hidden++;
        return TL_NONE;
    }
    uint8_t outer = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
    if ((outer == kind && kind == TL_PARK) ||
        (d->depth && (kind == TL_UNMOUNTED || kind == TL_CLASS_INIT))) {
        d->states[d->depth++].kind = TL_KINDS; /* the inner record of the same park */
        return TL_NONE;
    }
    int64_t n = timeline_node_of(b, e, kind);
    if (n < 0)
        return n;
    d = &b->doing.data[e->thread];
    d->states[d->depth].kind = kind;
    d->states[d->depth].context = timeline_node(b, (uint32_t)n).context;
    d->depth++;
    d->handed = TL_NONE;
    if (d->blocked_since == TL_NONE)
        d->blocked_since = (uint32_t)n;
    return n;
}

/*
 * Ends the innermost wait if it is of this kind. Returns the node after it, or TL_NONE when there
 * is nothing to end.
 */
int64_t timeline_unblock(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                         enum tl_kind or_kind)
{
    struct doing *d = &b->doing.data[thread];
    if (d->hidden) {
        d->hidden--;
        return TL_NONE;
    }
    if (d->depth == 0)
        return TL_NONE;
    uint8_t state = d->states[d->depth - 1].kind;
    if (state == TL_KINDS) {
        d->depth--;
        return TL_NONE;
    }
    if (state != kind && state != or_kind)
        return TL_NONE;
    d->depth--;
    if (d->depth)
        return timeline_node_add(b, thread, d->states[d->depth - 1].kind,
                                 d->states[d->depth - 1].context);
    d->blocked_since = TL_NONE;
    return timeline_node_with(b, thread, TL_RUN, TL_NONE, TL_NONE, TL_NONE);
}

static void wait_set_add(struct timeline_builder *b, struct monitor *m, uint32_t thread,
                         uint32_t object)
{
    struct doing *d = &b->doing.data[thread];
    d->wait_object = object;
    d->wait_next = TL_NONE;
    if (m->wait_head == TL_NONE)
        m->wait_head = thread;
    else
        b->doing.data[m->wait_tail].wait_next = thread;
    m->wait_tail = thread;
}

void timeline_wait_set_remove(struct timeline_builder *b, uint32_t thread)
{
    struct doing *d = &b->doing.data[thread];
    if (d->wait_object == TL_NONE)
        return;
    struct monitor *m = &b->monitors.data[d->wait_object];
    uint32_t before = TL_NONE;
    for (uint32_t w = m->wait_head; w != TL_NONE; before = w, w = b->doing.data[w].wait_next) {
        if (w != thread)
            continue;
        if (before == TL_NONE)
            m->wait_head = d->wait_next;
        else
            b->doing.data[before].wait_next = d->wait_next;
        if (m->wait_tail == thread)
            m->wait_tail = before;
        break;
    }
    d->wait_object = d->wait_next = TL_NONE;
}

/*
 * Node n notifies the head of the wait set, which waits for the monitor from now on. HotSpot's wait
 * set is a queue.
 */
static int notify_first(struct timeline_builder *b, uint32_t object, uint32_t n, enum tl_edge edge)
{
    uint32_t waiter = b->monitors.data[object].wait_head;
    struct doing *d = &b->doing.data[waiter];
    timeline_wait_set_remove(b, waiter);
    d->notified = n;
    const struct tl_node from = timeline_node(b, b->threads.data[waiter].last);
    int64_t again =
        timeline_node_with(b, waiter, TL_REACQUIRE, object, b->contexts.data[from.context].stack,
                           timeline_node(b, n).thread);
    if (again < 0)
        return (int)again;
    timeline_bind(b, (uint32_t)again, edge, n, false);
    return 0;
}

int timeline_on_notify(struct timeline_builder *b, const struct tl_event *e)
{
    bool all = e->kind == TLE_NOTIFY_ALL;
    int64_t n = timeline_node_of(b, e, all ? TL_NOTIFY_ALL : TL_NOTIFY);
    if (n < 0 || e->object == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct monitor *m = timeline_monitor_of(b, e->object);
    if (m->owner != e->thread)
        timeline_owned_by(m, e->thread, true);
    enum tl_edge edge = all ? TL_BY_NOTIFY_ALL : TL_BY_NOTIFY;
    if (m->wait_head == TL_NONE && m->unbound != TL_NONE &&
        b->now - timeline_node(b, m->unbound).time <= LATE_NOTIFY_NS) {
        /*
         * It was woken before the notification was recorded. The interaction is known, but it
         * cannot be the waker, because a waker must come first.
         */
        timeline_node_edit(b, (uint32_t)n)->waker = m->unbound;
        m->unbound = TL_NONE;
    }
    int r = 0;
    while (r == 0 && b->monitors.data[e->object].wait_head != TL_NONE) {
        r = notify_first(b, e->object, (uint32_t)n, edge);
        if (!all)
            break;
    }
    return r;
}

int timeline_on_wait(struct timeline_builder *b, const struct tl_event *e)
{
    struct tl_event wait = *e;
    bool join = false;
    if (e->object != TL_NONE) {
        uint32_t joined = b->objects.data[e->object].thread;
        join = joined != TL_NONE;
        if (join && wait.other == TL_NONE)
            wait.other = joined;
    }
    int64_t n = timeline_block(b, &wait, join ? TL_WAIT_JOIN : TL_WAIT_OBJECT);
    if (n < 0 || n == TL_NONE || e->object == TL_NONE)
        return n < 0 ? (int)n : 0;
    b->doing.data[e->thread].notified = TL_NONE;
    struct monitor *m = timeline_monitor_of(b, e->object);
    m->owner = e->thread;
    m->owner_exact = true;
    m->release = (uint32_t)n;
    wait_set_add(b, m, e->thread, e->object);
    return 0;
}

/* How a wait ended that a running node is about to follow. */
struct cause {
    enum tl_edge edge;
    uint32_t waker;
    bool inferred;
};

/*
 * Finds who released the monitor for a thread that node `notified` had notified and that runs now.
 */
static int reacquired(struct timeline_builder *b, uint32_t thread, uint32_t notified,
                      uint32_t object, struct cause *ret)
{
    uint32_t notifier = timeline_node(b, notified).thread, handed = b->doing.data[thread].handed;
    struct monitor *m = timeline_monitor_of(b, object);
    b->doing.data[thread].handed = TL_NONE;
    if (handed != TL_NONE && timeline_node(b, handed).thread != notifier) {
        *ret = (struct cause){TL_BY_HANDOFF, handed, false};
        return 0;
    }
    uint32_t owner = m && m->owner != TL_NONE && m->owner != thread ? m->owner : notifier;
    int64_t release = m && m->owner == owner && m->release != TL_NONE ? m->release : TL_NONE;
    bool inferred = release == TL_NONE && owner != notifier && !(m && m->owner_exact);
    if (release == TL_NONE)
        release = release_node(b, owner, object, thread);
    if (release < 0)
        return (int)release;
    enum tl_edge edge = owner != notifier                                  ? TL_BY_HANDOFF
                        : timeline_node(b, notified).kind == TL_NOTIFY_ALL ? TL_BY_NOTIFY_ALL
                                                                           : TL_BY_NOTIFY;
    *ret = (struct cause){edge, (uint32_t)release, inferred};
    return 0;
}

/*
 * Returns a notification that a waiter did not receive after all, because it timed out first: the
 * next thread in the queue received it.
 */
static int notification_passes_on(struct timeline_builder *b, uint32_t thread, uint32_t object)
{
    struct doing *d = &b->doing.data[thread];
    uint32_t notified = d->notified;
    if (notified == TL_NONE || timeline_node(b, notified).kind != TL_NOTIFY || object == TL_NONE)
        return 0;
    d->notified = TL_NONE;
    timeline_node_edit(b, notified)->waker = TL_NONE;
    return b->monitors.data[object].wait_head == TL_NONE
               ? 0
               : notify_first(b, object, notified, TL_BY_NOTIFY);
}

static bool interrupted(struct timeline_builder *b, uint32_t thread, uint32_t n)
{
    struct doing *d = &b->doing.data[thread];
    if (d->pending_interrupt == TL_NONE)
        return false;
    timeline_bind(b, n, TL_BY_INTERRUPT, d->pending_interrupt, false);
    d->pending_interrupt = TL_NONE;
    return true;
}

/*
 * For a join of which only the object's class is known (plain JFR): returns the thread that ended
 * last, if it ended during the wait.
 */
static uint32_t joined_by_class(const struct timeline_builder *b, const struct tl_event *e)
{
    if (e->object == TL_NONE || b->last_ended == TL_NONE || b->last_ended == e->thread ||
        strcmp(timeline_text(b, b->objects.data[e->object].class), "java.lang.Thread") != 0)
        return TL_NONE;
    uint64_t began = timeline_node(b, b->doing.data[e->thread].blocked_since).time;
    return b->threads.data[b->last_ended].end_ns >= began ? b->last_ended : TL_NONE;
}

/*
 * Returns the node by which the end of a thread wakes a thread that joins it. When ThreadEnd is
 * posted the thread is not dead yet; a wait that began after that waits for what the VM does until
 * the thread is dead, which ends at the current time.
 */
static int64_t death_node(struct timeline_builder *b, uint32_t dead, uint32_t waiter)
{
    uint32_t last = b->threads.data[dead].last, since = b->doing.data[waiter].blocked_since;
    if (since == TL_NONE || timeline_node(b, last).time >= timeline_node(b, since).time)
        return last;
    return timeline_node_with(b, dead, TL_DEAD_JOIN, TL_NONE, TL_NONE, waiter);
}

/* Finds why a wait ended that did not time out. */
static int waited_cause(struct timeline_builder *b, const struct tl_event *e, struct cause *ret)
{
    struct doing *d = &b->doing.data[e->thread];
    uint32_t notified = d->notified;
    uint32_t joined = e->object != TL_NONE ? b->objects.data[e->object].thread : TL_NONE;
    d->notified = TL_NONE;
    if (joined != TL_NONE && joined != e->thread && b->doing.data[joined].ended) {
        int64_t death = death_node(b, joined, e->thread);
        if (death < 0)
            return (int)death;
        *ret = (struct cause){TL_BY_JOIN, (uint32_t)death, false};
    } else if (notified != TL_NONE) {
        return reacquired(b, e->thread, notified, e->object, ret);
    } else if (d->pending_interrupt != TL_NONE) {
        *ret = (struct cause){TL_BY_INTERRUPT, d->pending_interrupt, false};
        d->pending_interrupt = TL_NONE;
    } else if (e->other == TL_NONE && joined_by_class(b, e) != TL_NONE) {
        *ret = (struct cause){TL_BY_JOIN, b->threads.data[b->last_ended].last, true};
    } else if (e->other != TL_NONE && e->other != e->thread) {
        /*
         * The notifier is recorded, but not when it notified (plain JFR): at the latest when it
         * blocked.
         */
        int r = timeline_thread_seen(b, e->other);
        int64_t at = r < 0 ? r : release_node(b, e->other, e->object, e->thread);
        if (at < 0)
            return (int)at;
        *ret = (struct cause){TL_BY_NOTIFY, (uint32_t)at, true};
    }
    return 0;
}

/* The wait ended by its timeout: what looked like a notification for it was not. */
static int waited_in_vain(struct timeline_builder *b, const struct tl_event *e, struct cause *ret)
{
    uint32_t last = b->threads.data[e->thread].last, context = timeline_node(b, last).context;
    const struct tl_node seen = timeline_node(b, last);
    if (seen.kind == TL_REACQUIRE && seen.prev != TL_NONE) {
        const struct tl_node before = timeline_node(b, seen.prev);
        struct tl_node *again = timeline_node_edit(b, last);
        again->kind = before.kind;
        again->edge = TL_NO_EDGE;
        again->waker = TL_NONE;
        again->context = context = before.context;
    }
    int r = notification_passes_on(b, e->thread, e->object);
    b->doing.data[e->thread].notified = TL_NONE;
    /*
     * It ended much later than the timeout: it waited for the monitor, which the owner then
     * released.
     */
    uint64_t waited = b->now - timeline_node(b, b->doing.data[e->thread].blocked_since).time;
    struct monitor *m = timeline_monitor_of(b, e->object);
    uint32_t timeout_ms = b->contexts.data[context].timeout_ms;
    if (r == 0 && m && m->owner != TL_NONE && m->owner != e->thread && timeout_ms &&
        waited > timeout_ms * UINT64_C(1000000) + LATE_TIMEOUT_NS) {
        int64_t release =
            m->release != TL_NONE ? m->release : release_node(b, m->owner, e->object, e->thread);
        r = release < 0 ? (int)release : 0;
        *ret = (struct cause){TL_BY_HANDOFF, (uint32_t)release, m->release == TL_NONE};
    }
    int64_t instant = r < 0 ? r : timeline_node_add(b, e->thread, TL_TIMEOUT, context);
    return instant < 0 ? (int)instant : 0;
}

int timeline_on_waited(struct timeline_builder *b, const struct tl_event *e)
{
    struct doing *d = &b->doing.data[e->thread];
    uint8_t state = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
    timeline_wait_set_remove(b, e->thread);
    if (state != TL_WAIT_OBJECT && state != TL_WAIT_JOIN)
        return 0;
    bool timed_out = e->flags & TLE_TIMED_OUT;
    struct cause cause = {TL_NO_EDGE, TL_NONE, false};
    int r = timed_out ? waited_in_vain(b, e, &cause) : waited_cause(b, e, &cause);
    int64_t n = r < 0 ? r : timeline_unblock(b, e->thread, TL_WAIT_OBJECT, TL_WAIT_JOIN);
    if (n < 0 || n == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct monitor *m = timeline_monitor_of(b, e->object);
    if (cause.waker != TL_NONE) {
        timeline_bind_release(b, (uint32_t)n, cause.edge, cause.waker, cause.inferred);
    } else if (timed_out) {
        timeline_bind(b, (uint32_t)n, TL_BY_TIMER, TL_NONE, false);
    } else {
        b->unbound++;
        if (m)
            m->unbound = (uint32_t)n;
    }
    timeline_owned_by(m, e->thread, true);
    return 0;
}

/*
 * A thread is seen to own the monitor for which, by its own records, it waits: it has acquired the
 * monitor but not reported it yet. Who released it is known now, for instance when the observer is
 * that very thread.
 */
static int handed_over(struct timeline_builder *b, uint32_t receiver, uint32_t object)
{
    struct doing *d = &b->doing.data[receiver];
    const struct monitor *m = timeline_monitor_of(b, object);
    if (d->depth == 0 || d->handed != TL_NONE || m->owner == TL_NONE || m->owner == receiver ||
        b->contexts.data[d->states[d->depth - 1].context].object != object)
        return 0;
    int r = timeline_thread_seen(b, m->owner);
    int64_t release = r < 0                   ? r
                      : m->release != TL_NONE ? m->release
                                              : release_node(b, m->owner, object, receiver);
    if (release >= 0)
        b->doing.data[receiver].handed = (uint32_t)release;
    return release < 0 ? (int)release : 0;
}

/*
 * A thread that enters the monitor from within Object.wait (JDK 27 and later) was awake when the VM
 * reported the end of its wait, but did not have the monitor. Threads that were taken to have got
 * the monitor from it since then got it from its previous owner.
 */
static void never_had(struct timeline_builder *b, const struct tl_event *e)
{
    if (e->stack == TL_NONE || !b->stacks_in_wait.data[e->stack])
        return;
    uint32_t last = b->threads.data[e->thread].last, n = last;
    while (n != TL_NONE && timeline_node(b, n).kind == TL_HANDOFF)
        n = timeline_node(b, n).prev;
    if (n == TL_NONE || timeline_node(b, n).kind != TL_RUN)
        return;
    const struct tl_node awake = timeline_node(b, n);
    for (uint32_t h = last; h != n; h = timeline_node(b, h).prev) {
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
 * Whether the thread that was the last one known to get a monitor can still have it. Releases
 * without contention are not recorded, but a dead thread has nothing, and a thread that waited or
 * called another one since, outside of the method in which it got the monitor, has left it.
 */
static bool can_have(const struct timeline_builder *b, const struct monitor *m)
{
    enum { BACK = 16 };

    if (m->owner == TL_NONE || b->doing.data[m->owner].ended)
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
        /* A stack that was cut has another root, and says nothing of the methods below. */
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
    never_had(b, e);
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
    const struct doing *d = &b->doing.data[thread];
    return d->states[d->depth - 1].context;
}

/*
 * Finds who released a contended monitor: the recorded thread, or the owner according to the map.
 */
static int entered_cause(struct timeline_builder *b, const struct tl_event *e, struct cause *ret)
{
    struct monitor *m = timeline_monitor_of(b, e->object);
    bool recorded = e->other != TL_NONE && e->other != e->thread;
    uint32_t from = recorded ? e->other : m ? m->owner : TL_NONE;
    uint32_t dead = e->object != TL_NONE ? b->objects.data[e->object].thread : TL_NONE;
    if (dead != TL_NONE && dead != e->thread && b->doing.data[dead].ended) {
        /* A dying thread holds its own monitor while it wakes the threads that join it. */
        int64_t death = death_node(b, dead, e->thread);
        if (death >= 0)
            *ret = (struct cause){TL_BY_JOIN, (uint32_t)death, false};
        return death < 0 ? (int)death : 0;
    }
    uint32_t handed = b->doing.data[e->thread].handed;
    if (handed != TL_NONE) {
        b->doing.data[e->thread].handed = TL_NONE;
        *ret = (struct cause){TL_BY_HANDOFF, handed, false};
        return 0;
    }
    if (from == TL_NONE || from == e->thread)
        return 0;
    int64_t release = m && m->owner == from && m->release != TL_NONE ? m->release : TL_NONE;
    int r = timeline_thread_seen(b, from);
    /*
     * It had called wait() but not yet released the monitor when this thread saw it as the owner;
     * it has released it since.
     */
    bool late = release != TL_NONE && m->owner_exact &&
                b->contexts.data[block_context(b, e->thread)].other == from &&
                timeline_node(b, (uint32_t)release).kind == TL_WAIT_OBJECT &&
                timeline_node(b, (uint32_t)release).time <
                    timeline_node(b, b->doing.data[e->thread].blocked_since).time;
    if (r == 0 && late)
        release = timeline_node_with(b, from, TL_HANDOFF, e->object, TL_NONE, e->thread);
    if (r == 0 && release == TL_NONE)
        release = release_node(b, from, e->object, e->thread);
    if (r < 0 || release < 0)
        return r < 0 ? r : (int)release;
    *ret = (struct cause){TL_BY_HANDOFF, (uint32_t)release,
                          !recorded && m->release == TL_NONE && !m->owner_exact};
    return 0;
}

int timeline_on_entered(struct timeline_builder *b, const struct tl_event *e)
{
    struct doing *d = &b->doing.data[e->thread];
    struct cause cause = {TL_NO_EDGE, TL_NONE, false};
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

/*
 * Returns the node of the unpark that ends a park now. If the unpark was called before the park but
 * had not returned when the park began, it came late: the parked thread continues when the call
 * returns, or at the latest when the calling thread does something else.
 */
static int64_t unpark_node(struct timeline_builder *b, uint32_t thread)
{
    const struct doing *d = &b->doing.data[thread];
    const struct tl_node n = timeline_node(b, d->pending_unpark);
    const struct doing *waker = &b->doing.data[n.thread];
    uint64_t since = timeline_node(b, d->blocked_since).time;
    if (n.time >= since || d->unpark_until < since || waker->ended)
        return d->pending_unpark;
    if (waker->blocked_since != TL_NONE)
        return waker->blocked_since;
    return timeline_node_with(b, n.thread, TL_UNPARK, TL_NONE, b->contexts.data[n.context].stack,
                              thread);
}

/* Finds what woke a thread whose park ended at node n. */
static void parked_cause(struct timeline_builder *b, const struct tl_event *e, uint32_t n,
                         uint32_t unpark, const struct tl_context *c, uint64_t waited)
{
    uint32_t thread = e->thread;
    struct doing *d = &b->doing.data[thread];
    if (unpark != TL_NONE) {
        bool join = timeline_node(b, unpark).kind == TL_DEAD;
        timeline_bind(b, n, join ? TL_BY_JOIN : TL_BY_UNPARK, unpark, false);
        d->last_unparked = unpark;
        d->pending_unpark = TL_NONE;
        if (c->object != TL_NONE && b->objects.data[c->object].flags & TL_OBJECT_LOCK)
            timeline_owned_by(timeline_monitor_of(b, c->object), thread, false);
    } else if (d->pending_interrupt != TL_NONE &&
               !(c->timeout_ms && waited >= c->timeout_ms * UINT64_C(1000000))) {
        interrupted(b, thread, n);
    } else if (e->flags & TLE_TIMED_OUT ||
               (c->timeout_ms && waited + 1000000 >= c->timeout_ms * UINT64_C(1000000))) {
        timeline_bind(b, n, TL_BY_TIMER, TL_NONE, false);
    } else {
        b->unbound++;
    }
}

int timeline_on_parked(struct timeline_builder *b, const struct tl_event *e)
{
    const struct doing *d = &b->doing.data[e->thread];
    uint32_t since = d->blocked_since, context = 0;
    int64_t unpark = TL_NONE;
    if (d->depth && d->states[d->depth - 1].kind == TL_PARK) {
        context = d->states[d->depth - 1].context;
        if (d->pending_unpark != TL_NONE && !d->hidden)
            unpark = unpark_node(b, e->thread);
    }
    int64_t n = unpark < 0 ? unpark : timeline_unblock(b, e->thread, TL_PARK, TL_PARK);
    if (n < 0 || n == TL_NONE)
        return n < 0 ? (int)n : 0;
    const struct tl_context c = b->contexts.data[context];
    parked_cause(b, e, (uint32_t)n, (uint32_t)unpark, &c, b->now - timeline_node(b, since).time);
    return 0;
}

/*
 * A virtual thread is joined through a latch that its carrier opens after its end; then the end is
 * what woke the joining thread. Returns the virtual thread's last node, or TL_NONE.
 */
static uint32_t end_of_virtual(const struct timeline_builder *b, const struct tl_event *e)
{
    uint32_t end = b->doing.data[e->thread].carried;
    const struct doing *target = &b->doing.data[e->other];
    if (end == TL_NONE || b->now - timeline_node(b, end).time > AFTER_END_NS ||
        target->depth == 0 || target->states[target->depth - 1].kind != TL_PARK ||
        timeline_node(b, end).time < timeline_node(b, target->blocked_since).time)
        return TL_NONE;
    uint32_t object = b->contexts.data[target->states[target->depth - 1].context].object;
    bool latch = object != TL_NONE && strcmp(timeline_text(b, b->objects.data[object].class),
                                             "java.util.concurrent.CountDownLatch$Sync") == 0;
    return latch ? end : TL_NONE;
}

int timeline_on_unpark(struct timeline_builder *b, const struct tl_event *e)
{
    int64_t n = timeline_node_with(b, e->thread, TL_UNPARK, e->object, e->stack, e->other);
    if (n < 0 || e->other == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct doing *d = &b->doing.data[e->other];
    uint32_t end = end_of_virtual(b, e);
    d->unpark_until = MAX(d->unpark_until, b->now + e->took_ns);
    if (d->pending_unpark == TL_NONE)
        d->pending_unpark =
            end != TL_NONE
                ? end
                : (uint32_t)
                      n; /* there is one permit: later unparks change nothing until it is used */
    if (d->depth && d->states[d->depth - 1].kind == TL_PARK) {
        struct monitor *m =
            timeline_monitor_of(b, b->contexts.data[d->states[d->depth - 1].context].object);
        if (m && m->owner == e->thread)
            m->owner = TL_NONE;
    }
    return 0;
}

int timeline_on_sleep_end(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind,
                          enum tl_edge edge)
{
    int64_t n = timeline_unblock(b, e->thread, kind, kind);
    if (n < 0 || n == TL_NONE)
        return n < 0 ? (int)n : 0;
    if (kind != TL_SLEEP || !interrupted(b, e->thread, (uint32_t)n))
        timeline_bind(b, (uint32_t)n, edge, TL_NONE, false);
    return 0;
}

/*
 * The object on which a running thread last waited, if nothing else stopped it since. TL_NONE: it
 * has not just waited.
 */
static uint32_t waited_on(const struct timeline_builder *b, uint32_t thread)
{
    uint32_t n = b->threads.data[thread].last;
    bool woken = false;
    for (; n != TL_NONE; n = timeline_node(b, n).prev) {
        uint8_t kind = timeline_node(b, n).kind;
        if (kind == TL_WAIT_OBJECT)
            return b->contexts.data[timeline_node(b, n).context].object;
        if (kind == TL_RUN ? woken
                           : kind != TL_HANDOFF && kind != TL_TIMEOUT && kind != TL_REACQUIRE)
            return TL_NONE;
        woken |= kind == TL_RUN;
    }
    return TL_NONE;
}

/*
 * A virtual thread that leaves its carrier in Object.wait, after the VM reported the end of its
 * wait, waits for the monitor (JDK 24 and later): that has no event of its own.
 */
int timeline_on_unmount(struct timeline_builder *b, const struct tl_event *e)
{
    struct tl_event enter = *e;
    if (e->stack != TL_NONE && b->stacks_in_wait.data[e->stack] &&
        b->doing.data[e->thread].depth == 0) {
        enter.object = waited_on(b, e->thread);
        if (enter.object != TL_NONE)
            return timeline_on_enter(b, &enter);
    }
    int64_t n = timeline_block(b, e, TL_UNMOUNTED);
    return n < 0 ? (int)n : 0;
}

/* Ends a wait that began when the thread was unmounted. */
int timeline_on_mount(struct timeline_builder *b, const struct tl_event *e)
{
    const struct doing *d = &b->doing.data[e->thread];
    uint8_t state = d->depth && !d->hidden ? d->states[d->depth - 1].kind : TL_RUN;
    if (state != TL_WAIT_LOCK)
        return timeline_on_sleep_end(b, e, state == TL_CLASS_INIT ? TL_CLASS_INIT : TL_UNMOUNTED,
                                     TL_NO_EDGE);
    struct tl_event entered = *e;
    entered.object = b->contexts.data[d->states[d->depth - 1].context].object;
    return timeline_on_entered(b, &entered);
}

static void shift(uint32_t *node, uint32_t from, uint32_t by)
{
    if (*node != TL_NONE && *node >= from)
        *node += by;
}

/* Returns a node as it is after n nodes were put in at a place. */
static struct tl_node shifted(struct tl_node node, uint32_t place, uint32_t n)
{
    shift(&node.prev, place, n);
    shift(&node.waker, place, n);
    return node;
}

/*
 * Moves the last n nodes, which were just added, after the last wait of their threads, because a
 * cycle exists from the moment when its last thread waits. The numbers of all nodes after that
 * place change. Returns 0 or -ENOMEM.
 */
static int move_back(struct timeline_builder *b, uint32_t n)
{
    uint32_t all = (uint32_t)b->n_nodes, place = 0;
    struct tl_node *moved = calloc(n, sizeof(*moved));
    if (!moved)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        moved[i] = timeline_node(b, all - n + i);
        place = MAX(place, moved[i].prev + 1);
    }
    uint64_t formed = timeline_node(b, place - 1).time;
    for (uint32_t i = 0; i < place; i++) {
        const struct tl_node now = shifted(timeline_node(b, i), place, n);
        if (now.waker != timeline_node(b, i).waker)
            timeline_node_edit(b, i)->waker = now.waker;
    }
    for (size_t i = 0; i < b->threads.len; i++) {
        if (b->threads.data[i].last != TL_NONE && b->threads.data[i].last >= all - n)
            b->threads.data[i].last = place + (b->threads.data[i].last - (all - n));
        else
            shift(&b->threads.data[i].last, place, n);
        shift(&b->threads.data[i].first, place, n);
    }
    /* each is changed when it is moved, because a node's previous one must always precede it */
    for (uint32_t i = all; i-- > place + n;) {
        const struct tl_node one = shifted(timeline_node(b, i - n), place, n);
        *timeline_node_edit(b, i) = one;
    }
    for (uint32_t i = 0; i < n; i++) {
        moved[i].time = formed;
        *timeline_node_edit(b, place + i) = moved[i];
    }
    free(moved);
    return b->error;
}

/*
 * Finds cycles among the threads that wait at the end: a thread waits for a lock whose owner waits
 * for a lock, and so on. The owners are those recorded last; a cycle that did not really exist
 * would have dissolved before the end.
 */
int timeline_find_deadlocks(struct timeline_builder *b, uint32_t *ret_cycles)
{
    size_t n = b->threads.len;
    uint32_t *next = calloc(n + 1, sizeof(*next)), *seen = calloc(n + 1, sizeof(*seen));
    int r = next && seen ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct doing *d = &b->doing.data[i];
        next[i] = TL_NONE;
        uint8_t state = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
        if (state != TL_WAIT_LOCK && state != TL_PARK)
            continue;
        struct tl_context c = b->contexts.data[d->states[d->depth - 1].context];
        const struct monitor *m = timeline_monitor_of(b, c.object);
        bool known = m && m->owner != TL_NONE && (state == TL_WAIT_LOCK || m->owner_exact);
        next[i] = known ? m->owner : c.other;
    }
    for (size_t i = 0; r == 0 && i < n; i++) {
        uint32_t t = (uint32_t)i;
        while (t != TL_NONE && seen[t] == 0) {
            seen[t] = (uint32_t)i + 1;
            t = next[t];
        }
        if (t == TL_NONE || seen[t] != (uint32_t)i + 1 || next[t] == t)
            continue;
        ++*ret_cycles;
        uint32_t first = t, added = 0;
        do {
            const struct doing *d = &b->doing.data[t];
            struct tl_context c = b->contexts.data[d->states[d->depth - 1].context];
            int64_t node = timeline_node_with(b, t, TL_DEADLOCK, c.object, c.stack, next[t]);
            r = node < 0 ? (int)node : 0;
            t = next[t];
            added++;
        } while (r == 0 && t != first);
        if (r == 0)
            r = move_back(b, added);
    }
    free(next);
    free(seen);
    return r;
}
