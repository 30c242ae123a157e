/* SPDX-License-Identifier: Apache-2.0 */
/* Handles parks and what ended them, and virtual threads, whose waits are a kind of park. */
#include "timeline/private.h"

#include <errno.h>
#include <string.h>

/* After the end of a virtual thread, its carrier wakes threads that joined it within this time. */
#define AFTER_END_NS 1000000

/*
 * Returns the node of the unpark that ends a park now. If unpark was called before the park but had
 * not returned when the park began, it takes effect late: the parked thread continues when the call
 * returns, or at the latest when the calling thread does something else.
 */
static int64_t unpark_node(struct timeline_builder *b, uint32_t thread)
{
    const struct activity *d = &b->activity.data[thread];
    const struct tl_node n = timeline_node(b, d->pending_unpark);
    const struct activity *waker = &b->activity.data[n.thread];
    uint64_t since = timeline_node(b, d->blocked_since).time;
    if (n.time >= since || d->unpark_until < since || waker->ended)
        return d->pending_unpark;
    if (waker->blocked_since != TL_NONE)
        return waker->blocked_since;
    return timeline_node_with(b, n.thread, TL_UNPARK, TL_NONE, b->contexts.data[n.context].stack,
                              thread);
}

/* Returns the lock for which a thread is parked, or TL_NONE. */
static uint32_t parked_for(const struct timeline_builder *b, uint32_t thread)
{
    const struct activity *d = &b->activity.data[thread];
    uint32_t object = d->depth && d->states[d->depth - 1].kind == TL_PARK
                          ? b->contexts.data[d->states[d->depth - 1].context].object
                          : TL_NONE;
    return object != TL_NONE && b->objects.data[object].flags & TL_OBJECT_LOCK ? object : TL_NONE;
}

int timeline_on_park(struct timeline_builder *b, const struct tl_event *e)
{
    int64_t n = timeline_block(b, e, TL_PARK);
    uint32_t object = n < 0 || n == TL_NONE ? TL_NONE : parked_for(b, e->thread);
    if (object == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct monitor *m = timeline_monitor_of(b, object);
    if (m->owner == e->thread)
        m->owner = TL_NONE;
    m->n_parked++;
    if (m->parked == TL_NONE)
        m->parked = (uint32_t)n;
    return 0;
}

/*
 * Handles a thread that unparks the thread `to`, which is parked for a lock, by releasing the lock.
 * It has had the lock since the first of the waiting threads parked, because each release unparks
 * the first thread in the queue. This shows which thread owned a lock that was free when it was
 * taken, for which there is no event. A thread that gives up waiting also unparks the next one in
 * the queue, but it never had the lock. Returns 0 or -ENOMEM.
 */
static int released(struct timeline_builder *b, uint32_t thread, uint32_t object, uint32_t to)
{
    struct monitor *m = timeline_monitor_of(b, object);
    struct activity *d = &b->activity.data[thread];
    bool left = d->gave_up_on == object && m->parked != TL_NONE && d->gave_up > m->parked;
    d->gave_up_on = TL_NONE;
    if (left)
        return 0;
    uint32_t parked = m->parked, owner = m->owner;
    m->parked = m->owner = TL_NONE;
    if (parked == TL_NONE || owner == thread)
        return 0;
    /* the receiver may have been unparked and parked again since the first park */
    uint32_t since = b->activity.data[to].blocked_since;
    int r = timeline_node_other(b, parked, thread);
    return r == 0 && since > parked && timeline_node(b, since).kind == TL_PARK
               ? timeline_node_other(b, since, thread)
               : r;
}

/* Handles node n, which ends a thread's park for a lock. */
static void lock_waited(struct timeline_builder *b, uint32_t thread, uint32_t n, uint32_t object,
                        bool got)
{
    struct monitor *m = timeline_monitor_of(b, object);
    m->n_parked -= m->n_parked > 0;
    if (got ? m->parked == timeline_node(b, n).prev : m->n_parked == 0)
        m->parked = TL_NONE;
    if (got)
        timeline_owned_by(m, thread, false);
    struct activity *d = &b->activity.data[thread];
    d->gave_up_on = got ? TL_NONE : object;
    d->gave_up = n;
}

/* Finds what woke a thread whose park ended at node n. */
static void parked_cause(struct timeline_builder *b, const struct tl_event *e, uint32_t n,
                         uint32_t unpark, const struct tl_context *c, uint64_t waited)
{
    uint32_t thread = e->thread;
    struct activity *d = &b->activity.data[thread];
    if (unpark != TL_NONE) {
        bool join = timeline_node(b, unpark).kind == TL_DEAD;
        timeline_bind(b, n, join ? TL_BY_JOIN : TL_BY_UNPARK, unpark, false);
        d->last_unparked = unpark;
        d->pending_unpark = TL_NONE;
    } else if (d->pending_interrupt != TL_NONE &&
               !(c->timeout_ms && waited >= c->timeout_ms * UINT64_C(1000000))) {
        timeline_interrupted(b, thread, n);
    } else if (e->flags & TLE_TIMED_OUT ||
               (c->timeout_ms && waited + 1000000 >= c->timeout_ms * UINT64_C(1000000))) {
        timeline_bind(b, n, TL_BY_TIMER, TL_NONE, false);
    } else {
        b->unbound++;
    }
}

int timeline_on_parked(struct timeline_builder *b, const struct tl_event *e)
{
    const struct activity *d = &b->activity.data[e->thread];
    uint32_t since = d->blocked_since, context = 0;
    int64_t unpark = TL_NONE;
    uint32_t object = parked_for(b, e->thread);
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
    if (object != TL_NONE)
        lock_waited(b, e->thread, (uint32_t)n, object, unpark != TL_NONE);
    return 0;
}

/*
 * Returns the last node of the virtual thread whose end woke a joining thread, or TL_NONE. A
 * virtual thread is joined through a latch that its carrier opens after the thread's end.
 */
static uint32_t end_of_virtual(const struct timeline_builder *b, const struct tl_event *e)
{
    uint32_t end = b->activity.data[e->thread].carried;
    const struct activity *target = &b->activity.data[e->other];
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
    struct activity *d = &b->activity.data[e->other];
    uint32_t end = end_of_virtual(b, e);
    d->unpark_until = MAX(d->unpark_until, b->now + e->took_ns);
    if (d->pending_unpark == TL_NONE)
        d->pending_unpark =
            end != TL_NONE ? end
                           : (uint32_t)
                /* there is only one permit: later unparks change nothing until it is used */
                n;
    uint32_t object = parked_for(b, e->other);
    return object == TL_NONE ? 0 : released(b, e->thread, object, e->other);
}

int timeline_on_sleep_end(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind,
                          enum tl_edge edge)
{
    int64_t n = timeline_unblock(b, e->thread, kind, kind);
    if (n < 0 || n == TL_NONE)
        return n < 0 ? (int)n : 0;
    if (kind != TL_SLEEP || !timeline_interrupted(b, e->thread, (uint32_t)n))
        timeline_bind(b, (uint32_t)n, edge, TL_NONE, false);
    return 0;
}

/*
 * Returns the object on which a running thread last waited, if nothing else has stopped it since.
 * Returns TL_NONE if it has not just waited.
 */
static uint32_t waited_on(const struct timeline_builder *b, uint32_t thread)
{
    uint32_t n = b->threads.data[thread].last;
    bool woken = false;
    for (; n != TL_NONE; n = timeline_node(b, n).prev) {
        uint8_t kind = timeline_node(b, n).kind;
        if (kind == TL_WAIT_OBJECT)
            return b->contexts.data[timeline_node(b, n).context].object;
        if (kind == TL_UNMOUNTED) {
            woken = false; /* the thread had no carrier, so it has done nothing since */
            continue;
        }
        if (kind == TL_RUN ? woken
                           : kind != TL_HANDOFF && kind != TL_TIMEOUT && kind != TL_REACQUIRE)
            return TL_NONE;
        woken |= kind == TL_RUN;
    }
    return TL_NONE;
}

/*
 * Handles a virtual thread that leaves its carrier. If it does so in Object.wait, after the VM has
 * reported the end of its wait, it waits for the monitor (JDK 24 and later), for which there is no
 * separate event.
 */
int timeline_on_unmount(struct timeline_builder *b, const struct tl_event *e)
{
    struct tl_event enter = *e;
    if (e->stack != TL_NONE && b->stacks_in_wait.data[e->stack] &&
        b->activity.data[e->thread].depth == 0) {
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
    const struct activity *d = &b->activity.data[e->thread];
    uint8_t state = d->depth && !d->hidden ? d->states[d->depth - 1].kind : TL_RUN;
    if (state != TL_WAIT_LOCK)
        return timeline_on_sleep_end(b, e, state == TL_CLASS_INIT ? TL_CLASS_INIT : TL_UNMOUNTED,
                                     TL_NO_EDGE);
    struct tl_event entered = *e;
    entered.object = b->contexts.data[d->states[d->depth - 1].context].object;
    return timeline_on_entered(b, &entered);
}

/*
 * Handles a virtual thread that was given to the scheduler and waits for a carrier. The wait before
 * that has ended; if the recording ends before the thread is mounted, that end is not recorded.
 */
int timeline_on_ready(struct timeline_builder *b, const struct tl_event *e)
{
    const struct activity *d = &b->activity.data[e->thread];
    uint8_t state = d->depth && !d->hidden ? d->states[d->depth - 1].kind : TL_RUN;
    struct tl_event end = *e;
    end.other = end.object = TL_NONE;
    int r = state == TL_PARK    ? timeline_on_parked(b, &end)
            : state == TL_SLEEP ? timeline_on_sleep_end(b, &end, TL_SLEEP, TL_BY_TIMER)
            : state == TL_RUN   ? 0
                                : timeline_on_mount(b, &end);
    int64_t n = r < 0 ? r : timeline_block(b, e, TL_UNMOUNTED);
    return n < 0 ? (int)n : 0;
}
