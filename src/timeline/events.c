/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles events in chronological order: how threads begin and end, and which thread calls which.
 */
#include "timeline/private.h"

#include <errno.h>
#include <string.h>

/* A carrier that takes its next virtual thread within this time had one in its queue. */
#define AT_ONCE_NS 1000000

/*
 * Returns the node that made a virtual thread begin on a carrier. This is the node of the thread
 * that submitted it and woke or started the carrier for it. If the carrier ran another virtual
 * thread before, it is the carrier's own node, because this thread was in the queue for a carrier:
 * if the previous one had taken less time, even if it was pinned in a wait, this one would have
 * begun earlier.
 */
static uint32_t starter_of_virtual(const struct timeline_builder *b, const struct activity *carrier,
                                   uint32_t woken)
{
    uint32_t freed = carrier->freed;
    bool queued = freed != TL_NONE && b->now - timeline_node(b, freed).time <= AT_ONCE_NS &&
                  (woken == TL_NONE || woken < freed);
    return queued ? freed : woken;
}

/*
 * Finds the node in which a parent called start(). Plain JFR records the parent but not the call,
 * so this assumes that it made the call at this time, or when it blocked.
 */
static int infer_starter(struct timeline_builder *b, const struct tl_event *e, bool *ret_inferred)
{
    struct activity *parent = e->other == TL_NONE ? NULL : &b->activity.data[e->other];
    if (parent && e->flags & TLE_VIRTUAL) {
        uint32_t woken = parent->last_unparked != TL_NONE ? parent->last_unparked : parent->starter;
        uint32_t starter = starter_of_virtual(b, parent, woken);
        struct tl_thread *t = &b->threads.data[e->thread];
        b->activity.data[e->thread].starter = starter;
        if (woken != TL_NONE && t->parent == TL_NONE)
            t->parent = timeline_node(b, woken).thread;
        *ret_inferred = starter != TL_NONE;
        return 0;
    }
    if (!parent || b->activity.data[e->thread].starter != TL_NONE || e->other == e->thread)
        return 0;
    int r = timeline_thread_seen(b, e->other);
    parent = &b->activity.data[e->other];
    int64_t n = r < 0                              ? r
                : parent->blocked_since != TL_NONE ? parent->blocked_since
                : parent->ended
                    ? b->threads.data[e->other].last
                    : timeline_node_with(b, e->other, TL_STARTS, TL_NONE, TL_NONE, e->thread);
    if (n < 0)
        return (int)n;
    b->activity.data[e->thread].starter = (uint32_t)n;
    *ret_inferred = true;
    return 0;
}

/*
 * Adds the wait of DestroyJavaVM, which is the name of main's native thread after main has ended.
 * It continues when the last non-daemon thread has ended. The VM does not record this wait, so it
 * is assumed to last until the thread does something else.
 */
static int destroyer_waits(struct timeline_builder *b, const struct tl_event *e)
{
    int64_t n = timeline_node_of(b, e, TL_WAIT_JOIN);
    if (n < 0)
        return (int)n;
    if (b->last_user != TL_NONE)
        timeline_bind(b, (uint32_t)n, TL_BY_JOIN, b->threads.data[b->last_user].last, false);
    struct activity *d = &b->activity.data[e->thread];
    d->states[0].kind = TL_WAIT_JOIN;
    d->states[0].context = timeline_node(b, (uint32_t)n).context;
    d->depth = 1;
    d->blocked_since = (uint32_t)n;
    b->destroyer = e->thread;
    return 0;
}

static int destroyer_continues(struct timeline_builder *b)
{
    uint32_t destroyer = b->destroyer, first = b->threads.data[destroyer].first,
             user = b->last_user;
    b->destroyer = TL_NONE;
    if (user == TL_NONE || b->threads.data[user].last < first) { /* main was the last one */
        struct tl_node *runs = timeline_node_edit(b, first);
        runs->kind = TL_RUN;
        runs->flags &= (uint8_t)~TL_BLOCKED;
        b->activity.data[destroyer].depth = 0;
        b->activity.data[destroyer].blocked_since = TL_NONE;
        return 0;
    }
    int64_t n = timeline_unblock(b, destroyer, TL_WAIT_JOIN, TL_WAIT_JOIN);
    if (n >= 0 && n != TL_NONE)
        timeline_bind(b, (uint32_t)n, TL_BY_JOIN, b->threads.data[user].last, false);
    return n < 0 ? (int)n : 0;
}

static bool is_destroyer(const struct timeline_builder *b, uint32_t thread)
{
    uint32_t name = b->threads.data[thread].name;
    return name != TL_NONE && strcmp(timeline_text(b, name), "DestroyJavaVM") == 0;
}

static int on_thread_start(struct timeline_builder *b, const struct tl_event *e)
{
    if (e->object != TL_NONE)
        timeline_thread_object(b, e->thread, e->object);
    if (b->threads.data[e->thread].first != TL_NONE)
        return 0;
    if (is_destroyer(b, e->thread) && !(e->flags & TLE_EXISTING))
        return destroyer_waits(b, e);
    bool inferred = false;
    int64_t n = infer_starter(b, e, &inferred);
    if (n == 0)
        n = timeline_node_of(b, e, TL_RUN);
    if (n < 0)
        return (int)n;
    struct activity *d = &b->activity.data[e->thread];
    if (e->flags & TLE_EXISTING)
        timeline_node_edit(b, (uint32_t)n)->flags |= TL_FIRST;
    if (d->starter != TL_NONE && e->flags & TLE_VIRTUAL && inferred)
        timeline_bind(b, (uint32_t)n, TL_BY_START, d->starter, true);
    else if (d->starter != TL_NONE)
        timeline_started_by(b, (uint32_t)n, d->starter, inferred);
    return 0;
}

static int on_thread_end(struct timeline_builder *b, const struct tl_event *e)
{
    struct activity *d = &b->activity.data[e->thread];
    if (d->ended)
        return 0;
    timeline_wait_set_remove(b, e->thread);
    d->depth = d->hidden = 0;
    d->blocked_since = TL_NONE;
    int64_t n = timeline_node_of(b, e, TL_DEAD);
    if (n < 0)
        return (int)n;
    d->ended = true;
    if (e->other != TL_NONE) {
        /*
         * Everything that the carrier does from here on happens because the virtual thread has
         * ended.
         */
        b->activity.data[e->other].carried = (uint32_t)n;
        bool unseen = timeline_thread_seen(b, e->other) < 0;
        enum tl_kind carrier = b->activity.data[e->other].left_out ? TL_UNKNOWN : TL_RUN;
        int64_t ongoing = b->activity.data[e->other].depth || unseen
                              ? 0
                              : timeline_node_with(b, e->other, carrier, TL_NONE, TL_NONE, TL_NONE);
        if (ongoing < 0)
            return (int)ongoing;
        if (ongoing > 0)
            b->activity.data[e->other].freed = (uint32_t)ongoing;
        if (ongoing > 0)
            timeline_bind(b, (uint32_t)ongoing, TL_BY_JOIN, (uint32_t)n, false);
    }
    if (e->other == TL_NONE)
        b->last_ended = e->thread;
    if (!(b->threads.data[e->thread].flags & (TL_THREAD_DAEMON | TL_THREAD_SYSTEM)))
        b->last_user = e->thread;
    b->threads.data[e->thread].end_ns = b->now;
    return 0;
}

static int on_call(struct timeline_builder *b, const struct tl_event *e)
{
    struct tl_event call = *e;
    if (call.other == TL_NONE && e->object != TL_NONE)
        call.other = b->objects.data[e->object].thread;
    int64_t n = timeline_node_of(b, &call, e->kind == TLE_CALL_START ? TL_STARTS : TL_INTERRUPTS);
    if (n < 0 || call.other == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct activity *d = &b->activity.data[call.other];
    if (e->kind == TLE_CALL_START)
        d->starter = (uint32_t)n;
    else
        d->pending_interrupt = (uint32_t)n;
    return 0;
}

/* Returns whether a thread is in a wait during which it keeps every lock that it holds. */
static bool keeps_locks(const struct timeline_builder *b, uint32_t thread)
{
    const struct activity *d = &b->activity.data[thread];
    uint8_t kind = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
    return kind == TL_WAIT_LOCK || kind == TL_PARK || kind == TL_SLEEP || kind == TL_IO;
}

static int on_hold(struct timeline_builder *b, const struct tl_event *e)
{
    bool release = e->kind == TLE_RELEASE;
    /* The end of the recording also ends the holds in it, but the thread still has the lock. */
    if (release && keeps_locks(b, e->thread))
        return 0;
    int64_t n = timeline_node_of(b, e, release ? TL_RELEASE : TL_ACQUIRE);
    struct monitor *m = timeline_monitor_of(b, e->object);
    if (n < 0 || !m)
        return n < 0 ? (int)n : 0;
    b->objects.data[e->object].flags |= TL_OBJECT_EXACT;
    timeline_owned_by(m, e->thread, true);
    if (release)
        m->release = (uint32_t)n;
    return 0;
}

/* A thread that other threads' events named has an event of its own, so it was not left out. */
static void continue_known(struct timeline_builder *b, uint32_t thread)
{
    uint32_t n = b->threads.data[thread].last;
    for (; n != TL_NONE; n = timeline_node(b, n).prev)
        if (timeline_node(b, n).kind == TL_UNKNOWN)
            timeline_node_edit(b, n)->kind = TL_RUN;
    b->activity.data[thread].left_out = false;
}

int timeline_add(struct timeline_builder *b, const struct tl_event *e)
{
    if (!b->started)
        timeline_origin(b, e->time, 0);
    uint64_t time = e->time > b->origin ? e->time - b->origin : 0;
    if (unlikely(b->error || time > TL_TIME_LAST))
        return b->error ? b->error : -EOVERFLOW;
    b->now = MAX(b->now, time);
    if (b->activity.data[e->thread].ended && e->kind != TLE_THREAD_END)
        return 0; /* the VM's own work after the end of the thread */
    b->acting = e->thread;
    if (unlikely(b->activity.data[e->thread].left_out))
        continue_known(b, e->thread);
    bool seen = e->kind == TLE_THREAD_START || b->threads.data[e->thread].first != TL_NONE;
    int r = likely(seen) ? 0 : timeline_thread_seen(b, e->thread);
    int64_t n = 0;
    if (r == 0 && e->thread == b->destroyer)
        r = destroyer_continues(b);
    if (r < 0)
        return r;
    switch ((enum tl_event_kind)e->kind) {
    case TLE_THREAD_START:
        return on_thread_start(b, e);
    case TLE_THREAD_END:
        return on_thread_end(b, e);
    case TLE_CONTENDED_ENTER:
        return timeline_on_enter(b, e);
    case TLE_CONTENDED_ENTERED:
        return timeline_on_entered(b, e);
    case TLE_WAIT:
        return timeline_on_wait(b, e);
    case TLE_WAITED:
        return timeline_on_waited(b, e);
    case TLE_SLEEP:
        n = timeline_block(b, e, TL_SLEEP);
        break;
    case TLE_SLEPT:
        return timeline_on_sleep_end(b, e, TL_SLEEP,
                                     e->flags & TLE_EARLY ? TL_BY_INTERRUPT : TL_BY_TIMER);
    case TLE_PARK:
        return timeline_on_park(b, e);
    case TLE_PARKED:
        return timeline_on_parked(b, e);
    case TLE_IO:
        n = timeline_block(b, e, TL_IO);
        break;
    case TLE_IO_DONE:
        return timeline_on_sleep_end(b, e, TL_IO, TL_BY_IO);
    case TLE_CALL_START:
    case TLE_CALL_INTERRUPT:
        return on_call(b, e);
    case TLE_NOTIFY:
    case TLE_NOTIFY_ALL:
        return timeline_on_notify(b, e);
    case TLE_UNPARK:
        return timeline_on_unpark(b, e);
    case TLE_ACQUIRE:
    case TLE_RELEASE:
        return on_hold(b, e);
    case TLE_PREEMPT:
        n = timeline_block(b, e, TL_PREEMPTED);
        break;
    case TLE_RESUME:
        return timeline_on_sleep_end(b, e, TL_PREEMPTED, TL_NO_EDGE);
    case TLE_UNMOUNT:
        return timeline_on_unmount(b, e);
    case TLE_CLASS_INIT:
        n = timeline_block(b, e, TL_CLASS_INIT);
        break;
    case TLE_MOUNT:
        return timeline_on_mount(b, e);
    case TLE_READY:
        return timeline_on_ready(b, e);
    case TLE_OWNER:
        timeline_owned_by(timeline_monitor_of(b, e->object), e->other, true);
        break;
    case TLE_INTERRUPTED:
    case TLE_KINDS:
        break;
    }
    return n < 0 ? (int)n : 0;
}
