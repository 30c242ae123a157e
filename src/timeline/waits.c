/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles Object.wait and what ended it, by the binding rules of the TPTP thread profiler and with
 * its maps.
 */
#include "timeline/private.h"

#include <errno.h>
#include <string.h>

/*
 * A notification may be recorded up to this long after the end of the wait that it ended, because
 * the woken thread can record its end first.
 */
#define LATE_NOTIFY_NS 100000
/* A wait that ends this much after its timeout waited for something besides the timer. */
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

int64_t timeline_release_node(struct timeline_builder *b, uint32_t owner, uint32_t object,
                              uint32_t receiver)
{
    const struct activity *d = &b->activity.data[owner];
    if (d->blocked_since != TL_NONE)
        return d->blocked_since;
    if (d->ended)
        return b->threads.data[owner].last;
    return timeline_node_with(b, owner, TL_HANDOFF, object, TL_NONE, receiver);
}

/* A wait within a wait of the same kind is part of it. */
int64_t timeline_block(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind)
{
    struct activity *d = &b->activity.data[e->thread];
    if (d->depth == NESTING) {
        d->hidden++;
        return TL_NONE;
    }
    uint8_t outer = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
    if ((outer == kind && kind == TL_PARK) ||
        (d->depth && (kind == TL_UNMOUNTED || kind == TL_CLASS_INIT))) {
        d->states[d->depth++].kind = TL_KINDS; /* this is the inner record of the same park */
        return TL_NONE;
    }
    int64_t n = timeline_node_of(b, e, kind);
    if (n < 0)
        return n;
    d = &b->activity.data[e->thread];
    d->states[d->depth].kind = kind;
    d->states[d->depth].context = timeline_node(b, (uint32_t)n).context;
    d->depth++;
    d->handed = TL_NONE;
    if (d->blocked_since == TL_NONE)
        d->blocked_since = (uint32_t)n;
    return n;
}

int64_t timeline_unblock(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                         enum tl_kind or_kind)
{
    struct activity *d = &b->activity.data[thread];
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
    struct activity *d = &b->activity.data[thread];
    d->wait_object = object;
    d->wait_next = TL_NONE;
    if (m->wait_head == TL_NONE)
        m->wait_head = thread;
    else
        b->activity.data[m->wait_tail].wait_next = thread;
    m->wait_tail = thread;
}

void timeline_wait_set_remove(struct timeline_builder *b, uint32_t thread)
{
    struct activity *d = &b->activity.data[thread];
    if (d->wait_object == TL_NONE)
        return;
    struct monitor *m = &b->monitors.data[d->wait_object];
    uint32_t before = TL_NONE;
    for (uint32_t w = m->wait_head; w != TL_NONE; before = w, w = b->activity.data[w].wait_next) {
        if (w != thread)
            continue;
        if (before == TL_NONE)
            m->wait_head = d->wait_next;
        else
            b->activity.data[before].wait_next = d->wait_next;
        if (m->wait_tail == thread)
            m->wait_tail = before;
        break;
    }
    d->wait_object = d->wait_next = TL_NONE;
}

/*
 * Lets node n notify the head of the wait set, which waits for the monitor from now on. HotSpot's
 * wait set is a queue.
 */
static int notify_first(struct timeline_builder *b, uint32_t object, uint32_t n, enum tl_edge edge)
{
    uint32_t waiter = b->monitors.data[object].wait_head;
    struct activity *d = &b->activity.data[waiter];
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
         * The waiter was woken before the notification was recorded. The interaction is known, but
         * it cannot be recorded as the waker, because a waker must come first.
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
    b->activity.data[e->thread].notified = TL_NONE;
    struct monitor *m = timeline_monitor_of(b, e->object);
    m->owner = e->thread;
    m->owner_exact = true;
    m->release = (uint32_t)n;
    wait_set_add(b, m, e->thread, e->object);
    return 0;
}

/*
 * Finds which thread released the monitor for a thread that node `notified` has notified and that
 * runs now.
 */
static int reacquired(struct timeline_builder *b, uint32_t thread, uint32_t notified,
                      uint32_t object, struct timeline_cause *ret)
{
    uint32_t notifier = timeline_node(b, notified).thread, handed = b->activity.data[thread].handed;
    struct monitor *m = timeline_monitor_of(b, object);
    b->activity.data[thread].handed = TL_NONE;
    if (handed != TL_NONE && timeline_node(b, handed).thread != notifier) {
        *ret = (struct timeline_cause){TL_BY_HANDOFF, handed, false};
        return 0;
    }
    uint32_t owner = m && m->owner != TL_NONE && m->owner != thread ? m->owner : notifier;
    int64_t release = m && m->owner == owner && m->release != TL_NONE ? m->release : TL_NONE;
    bool inferred = release == TL_NONE && owner != notifier && !(m && m->owner_exact);
    if (release == TL_NONE)
        release = timeline_release_node(b, owner, object, thread);
    if (release < 0)
        return (int)release;
    enum tl_edge edge = owner != notifier                                  ? TL_BY_HANDOFF
                        : timeline_node(b, notified).kind == TL_NOTIFY_ALL ? TL_BY_NOTIFY_ALL
                                                                           : TL_BY_NOTIFY;
    *ret = (struct timeline_cause){edge, (uint32_t)release, inferred};
    return 0;
}

/*
 * Gives the notification of a waiter that timed out before it received it to the next thread in
 * the queue. Returns 0 or a negative error.
 */
static int notification_passes_on(struct timeline_builder *b, uint32_t thread, uint32_t object)
{
    struct activity *d = &b->activity.data[thread];
    uint32_t notified = d->notified;
    if (notified == TL_NONE || timeline_node(b, notified).kind != TL_NOTIFY || object == TL_NONE)
        return 0;
    d->notified = TL_NONE;
    timeline_node_edit(b, notified)->waker = TL_NONE;
    return b->monitors.data[object].wait_head == TL_NONE
               ? 0
               : notify_first(b, object, notified, TL_BY_NOTIFY);
}

bool timeline_interrupted(struct timeline_builder *b, uint32_t thread, uint32_t n)
{
    struct activity *d = &b->activity.data[thread];
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
    uint64_t began = timeline_node(b, b->activity.data[e->thread].blocked_since).time;
    return b->threads.data[b->last_ended].end_ns >= began ? b->last_ended : TL_NONE;
}

int64_t timeline_death_node(struct timeline_builder *b, uint32_t dead, uint32_t waiter)
{
    uint32_t last = b->threads.data[dead].last, since = b->activity.data[waiter].blocked_since;
    if (since == TL_NONE || timeline_node(b, last).time >= timeline_node(b, since).time)
        return last;
    return timeline_node_with(b, dead, TL_DEAD_JOIN, TL_NONE, TL_NONE, waiter);
}

/* Finds why a wait ended that did not time out. */
static int waited_cause(struct timeline_builder *b, const struct tl_event *e,
                        struct timeline_cause *ret)
{
    struct activity *d = &b->activity.data[e->thread];
    uint32_t notified = d->notified;
    uint32_t joined = e->object != TL_NONE ? b->objects.data[e->object].thread : TL_NONE;
    d->notified = TL_NONE;
    if (joined != TL_NONE && joined != e->thread && b->activity.data[joined].ended) {
        int64_t death = timeline_death_node(b, joined, e->thread);
        if (death < 0)
            return (int)death;
        *ret = (struct timeline_cause){TL_BY_JOIN, (uint32_t)death, false};
    } else if (notified != TL_NONE) {
        return reacquired(b, e->thread, notified, e->object, ret);
    } else if (d->pending_interrupt != TL_NONE) {
        *ret = (struct timeline_cause){TL_BY_INTERRUPT, d->pending_interrupt, false};
        d->pending_interrupt = TL_NONE;
    } else if (e->other == TL_NONE && joined_by_class(b, e) != TL_NONE) {
        *ret = (struct timeline_cause){TL_BY_JOIN, b->threads.data[b->last_ended].last, true};
    } else if (e->other != TL_NONE && e->other != e->thread) {
        /*
         * The notifier is recorded, but not the time of its call (plain JFR): it called at the
         * latest when it blocked.
         */
        int r = timeline_thread_seen(b, e->other);
        int64_t at = r < 0 ? r : timeline_release_node(b, e->other, e->object, e->thread);
        if (at < 0)
            return (int)at;
        *ret = (struct timeline_cause){TL_BY_NOTIFY, (uint32_t)at, true};
    }
    return 0;
}

/*
 * Handles a wait that ended by its timeout, so what seemed to be its notification was meant for
 * another thread.
 */
static int waited_in_vain(struct timeline_builder *b, const struct tl_event *e,
                          struct timeline_cause *ret)
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
    b->activity.data[e->thread].notified = TL_NONE;
    /*
     * The wait ended much later than its timeout, so the thread waited for the monitor, which the
     * owner then released.
     */
    uint64_t waited = b->now - timeline_node(b, b->activity.data[e->thread].blocked_since).time;
    struct monitor *m = timeline_monitor_of(b, e->object);
    uint32_t timeout_ms = b->contexts.data[context].timeout_ms;
    if (r == 0 && m && m->owner != TL_NONE && m->owner != e->thread && timeout_ms &&
        waited > timeout_ms * UINT64_C(1000000) + LATE_TIMEOUT_NS) {
        int64_t release = m->release != TL_NONE
                              ? m->release
                              : timeline_release_node(b, m->owner, e->object, e->thread);
        r = release < 0 ? (int)release : 0;
        *ret = (struct timeline_cause){TL_BY_HANDOFF, (uint32_t)release, m->release == TL_NONE};
    }
    int64_t instant = r < 0 ? r : timeline_node_add(b, e->thread, TL_TIMEOUT, context);
    return instant < 0 ? (int)instant : 0;
}

int timeline_on_waited(struct timeline_builder *b, const struct tl_event *e)
{
    struct activity *d = &b->activity.data[e->thread];
    uint8_t state = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
    timeline_wait_set_remove(b, e->thread);
    if (state != TL_WAIT_OBJECT && state != TL_WAIT_JOIN)
        return 0;
    bool timed_out = e->flags & TLE_TIMED_OUT;
    struct timeline_cause cause = {TL_NO_EDGE, TL_NONE, false};
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
