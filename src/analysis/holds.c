/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/holds.h"

#include "analysis/graph.h"
#include "analysis/hold_memory.h"
#include "analysis/stack_tops.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

enum { PREFETCH = 24, NEXT = 4, OBJECTS_MAX = 1 << 27 };

/* The time of a wake-up that did not happen. */
#define NEVER UINT64_MAX

/* What is known about a thread during the pass. */
struct holder {
    uint32_t waiting; /* the object that it waits for, or TL_NONE */
    uint32_t gave_up; /* the lock for which it last stopped waiting without having got it, + 1 */
    uint32_t current; /* slot of the most recently acquired hold, + 1 */
    uint32_t object;  /* that hold's object */
    uint32_t stack;   /* that hold's stack */
    uint32_t first;   /* the first stack seen in the method that acquired it, or TL_NONE */
    bool within;      /* whether the thread's state began in that method */
    bool queued;      /* it waits for a lock, and is one of the lock's waiters */
    uint64_t seen;    /* the time until which its stacks show it in that method */
    uint8_t kind;     /* of its last node */
    uint32_t context; /* of its last node */
    bool blocked;     /* its last node belongs to a wait */
    uint64_t since;   /* if so: when the wait began */
    /* the chunks of its holds that are not packed; n: how many holds it has in all */
    uint32_t first_chunk, chunk;
    size_t n;
};

/* An object: the slot of its open hold + 1, or 0, and the owner. */
struct held {
    uint32_t hold, thread;
    uint32_t waiters; /* how many threads wait for it */
    bool uncertain;   /* the owner has left it since, but may have taken it again */
    uint64_t proven;  /* the time from which a waiter proves the open hold */
};

/* A chunk of slots that is in use. There are none if holds have links. */
struct live_chunk {
    uint32_t next; /* the thread's next one; for an unused chunk, the next unused one */
    /* how many of its holds are open, plus how many are the most recent one of their thread */
    uint32_t changes;
};

/* A chunk that no longer changes. */
struct done_chunk {
    uint32_t thread;
    const uint8_t *packed; /* NULL: holds have links, and the chunk lies in the vector unpacked */
};

struct collector {
    const struct timeline *t;
    struct holds *holds;
    struct held *open;
    struct holder *threads;
    uint8_t *wanted;
    struct stack_tops tops;
    bool medians; /* some ends depend on the median of their kind */
    struct hold_order order;
    VEC(struct live_chunk) live;
    uint32_t unused; /* the first unused chunk, or TL_NONE */
    VEC(struct done_chunk) done;
};

/* Called when the hold of a slot is closed, or is no longer its thread's most recent one. */
static void changes_less(struct collector *c, uint32_t slot)
{
    if (c->live.len)
        c->live.data[slot >> HOLD_CHUNK_BITS].changes--;
}

/*
 * Called when another hold, or none, becomes the thread's most recent one. The time until which the
 * previous hold was seen is final from now on.
 */
static void leave(struct collector *c, struct holder *p)
{
    if (!p->current)
        return;
    struct tl_hold *h = &c->holds->slots[p->current - 1];
    if (c->open[p->object].hold == p->current) {
        h->end = p->seen; /* used if the hold's owner changes without a recorded release */
    } else if (h->flags & HOLD_END_INFERRED && p->seen > h->start) {
        h->end = MIN((uint64_t)h->end, p->seen);
        h->flags &= (HOLD_MEDIAN - 1);
    }
    changes_less(c, p->current - 1);
    p->current = 0;
}

/* Records that the thread certainly no longer holds a lock at a time. */
static void not_after(const struct collector *c, uint32_t slot, uint64_t at)
{
    uint64_t start = c->holds->slots[slot].start,
             us = (at - MIN(start, at) + 999) / 1000; /* rounded up: this is a bound */
    uint32_t *most = &c->holds->side[slot].unsure_us;
    *most = (uint32_t)MIN((uint64_t)*most, us);
}

/*
 * A thread begins to wait for an object, or for none (TL_NONE). Returns whether another thread has
 * been waiting for the same lock already.
 */
static bool set_waiting(struct collector *c, uint32_t thread, uint32_t object, bool lock)
{
    struct holder *p = &c->threads[thread];
    if (p->queued)
        c->open[p->waiting].waiters--;
    p->waiting = object;
    p->queued = lock && object != TL_NONE;
    return p->queued && c->open[object].waiters++ > 0;
}

/* Packs a thread's first chunk, which has n holds, so that its slots can be used again. */
static int pack_first(struct collector *c, uint32_t thread, size_t n)
{
    struct holder *p = &c->threads[thread];
    uint32_t chunk = p->first_chunk;
    const uint8_t *packed = holds_pack(c->holds, chunk, n);
    if (!packed || vec_push(&c->done, ((struct done_chunk){thread, packed})) < 0)
        return -ENOMEM;
    p->first_chunk = c->live.data[chunk].next;
    c->live.data[chunk].next = c->unused;
    c->unused = chunk;
    return 0;
}

/* Returns a chunk of slots for a thread's next holds, or a negative errno. */
static int64_t chunk_new(struct collector *c, uint32_t thread)
{
    struct holder *p = &c->threads[thread];
    size_t used = c->holds->links ? c->done.len : c->live.len;
    if (used + 1 >= TL_NONE >> HOLD_CHUNK_BITS)
        return -ENOMEM;
    if (c->holds->links) {
        holds_filled(c->holds, (used + 1) << HOLD_CHUNK_BITS);
        int r = vec_push(&c->done, ((struct done_chunk){thread, NULL}));
        return r < 0 ? r : (int64_t)used;
    }
    while (p->n && p->first_chunk != TL_NONE && c->live.data[p->first_chunk].changes == 0)
        if (pack_first(c, thread, HOLD_CHUNK) < 0)
            return -ENOMEM;
    if (c->unused == TL_NONE) {
        if (vec_push(&c->live, ((struct live_chunk){.next = TL_NONE})) < 0)
            return -ENOMEM;
        c->unused = (uint32_t)used;
    }
    uint32_t chunk = c->unused;
    c->unused = c->live.data[chunk].next;
    c->live.data[chunk] = (struct live_chunk){.next = TL_NONE};
    if (p->n && p->first_chunk != TL_NONE)
        c->live.data[p->chunk].next = chunk;
    else
        p->first_chunk = chunk;
    return chunk;
}

/* Returns a slot for a thread's next hold, or a negative errno. */
static int64_t slot_new(struct collector *c, uint32_t thread)
{
    struct holder *p = &c->threads[thread];
    if (p->n % HOLD_CHUNK == 0) {
        int64_t chunk = chunk_new(c, thread);
        if (chunk < 0)
            return chunk;
        p->chunk = (uint32_t)chunk;
    }
    int r = hold_order_add(&c->order, thread);
    return r < 0 ? r : (int64_t)p->chunk << HOLD_CHUNK_BITS | (int64_t)(p->n++ % HOLD_CHUNK);
}

/* Records how long before a hold's start the wake-up began that led to it. */
static int note_wake(struct collector *c, uint32_t thread, uint32_t slot, uint64_t at,
                     uint64_t wake)
{
    uint64_t ns = at - MIN(wake, at);
    c->holds->side[slot].wake_ns = (uint32_t)MIN(ns, (uint64_t)UINT32_MAX);
    return ns < UINT32_MAX ? 0
                           : map_put(&c->holds->long_wakes,
                                     hold_number(thread, c->threads[thread].n - 1), MIN(wake, at));
}

/*
 * Returns what graph_woken_at returns for the node that is being visited, computed from what is
 * known of its thread: the time of the cause, or NEVER.
 */
static uint64_t wake_of(const struct collector *c, uint32_t i, const struct tl_node *n)
{
    const struct holder *p = &c->threads[n->thread];
    if (!graph_caused(n, i))
        return NEVER;
    uint64_t cause = tl_node(c->t, n->waker).time;
    return n->prev >= i || cause >= (p->blocked ? p->since : n->time) ? cause : NEVER;
}

/* Opens a hold that was acquired at a node; wake: the time of the node's cause, or NEVER. */
static int hold_open(struct collector *c, uint32_t thread, uint32_t object, uint32_t stack,
                     uint64_t at, uint32_t node, uint64_t wake, uint32_t flags)
{
    int64_t slot = slot_new(c, thread);
    if (slot < 0)
        return (int)slot;
    bool woken = wake != NEVER;
    struct holder *p = &c->threads[thread];
    leave(c, p);
    if (c->live.len)
        c->live.data[p->chunk].changes += 2; /* it is open, and the most recent one */
    /* for the thread's next holds, which are not in the cache yet */
    __builtin_prefetch(&c->holds->slots[slot + NEXT], 1);
    __builtin_prefetch(&c->holds->side[slot + NEXT], 1);
    c->holds->slots[slot] = (struct tl_hold){.start = at,
                                             .end = at,
                                             .object_low = object & 0xffff,
                                             .object_high = object >> 16 & 0x7ff,
                                             .flags = (flags | (woken ? HOLD_WOKEN : 0)) & 31};
    c->holds->side[slot].stack = stack;
    c->holds->side[slot].unsure_us = UINT32_MAX;
    if (c->holds->links)
        c->holds->links[slot] = (struct hold_link){.acquire = node, .release = TL_NONE};
    c->open[object] = (struct held){.hold = (uint32_t)slot + 1,
                                    .thread = thread,
                                    .waiters = c->open[object].waiters,
                                    .proven = at};
    c->holds->of_object[object]++;
    p->current = (uint32_t)slot + 1;
    p->object = object;
    p->stack = stack;
    p->seen = at;
    p->within = false;
    p->first = TL_NONE;
    return note_wake(c, thread, (uint32_t)slot, at, woken ? wake : at);
}

static void hold_close(struct collector *c, uint32_t object, uint64_t at, uint32_t node)
{
    if (!c->open[object].hold)
        return;
    struct tl_hold *h = &c->holds->slots[c->open[object].hold - 1];
    h->end = at & TL_TIME_LAST;
    uint64_t us = (MIN(c->open[object].proven, at) - MIN((uint64_t)h->start, at) + 999) / 1000;
    c->holds->side[c->open[object].hold - 1].unsure_us = (uint32_t)MIN(us, (uint64_t)UINT32_MAX);
    if (c->holds->links)
        c->holds->links[c->open[object].hold - 1].release = node;
    changes_less(c, c->open[object].hold - 1);
    c->open[object].hold = 0;
}

/*
 * Called when the owner has changed without a recorded release. The hold is closed later, with the
 * length that sections of its kind usually have.
 */
static void hold_forget(struct collector *c, uint32_t object, uint64_t latest)
{
    struct held open = c->open[object];
    if (!open.hold)
        return;
    struct tl_hold *h = &c->holds->slots[open.hold - 1];
    c->open[object].hold = 0;
    changes_less(c, open.hold - 1);
    /* The time until which the thread's most recent hold was seen is not final yet. */
    bool seen = c->threads[open.thread].current != open.hold && h->end > h->start;
    h->end = (seen ? MIN((uint64_t)h->end, latest) : latest) & TL_TIME_LAST;
    not_after(c, open.hold - 1, latest);
    h->flags = (h->flags | HOLD_END_INFERRED | (seen ? 0 : HOLD_MEDIAN)) & 31;
    c->medians |= !seen;
}

static bool is_owner(const struct collector *c, uint32_t object, uint32_t thread)
{
    return c->open[object].hold && c->open[object].thread == thread;
}

static bool is_exact(const struct collector *c, uint32_t object)
{
    return c->t->objects[object].flags & TL_OBJECT_EXACT;
}

static int acquired(struct collector *c, uint32_t i, const struct tl_node *n, uint32_t object,
                    uint32_t stack)
{
    if (is_owner(c, object, n->thread))
        return 0;
    /* The hand-over node gives the time. Without one, the open hold ended somewhere before. */
    if (n->edge != TL_NO_EDGE && n->waker != TL_NONE &&
        is_owner(c, object, tl_node(c->t, n->waker).thread))
        hold_close(c, object, tl_node(c->t, n->waker).time, n->waker);
    else
        hold_forget(c, object, n->time);
    return hold_open(c, n->thread, object, stack, n->time, i, wake_of(c, i, n), 0);
}

/*
 * Called when a thread's park for a lock ends at node n. Returns whether the thread now has the
 * lock. It does not if no other thread unparked it, or if the lock has an owner and the thread that
 * unparked it had itself given up waiting.
 */
static bool got_lock(struct collector *c, uint32_t i, const struct tl_node *n, uint32_t object)
{
    bool unparked = n->edge == TL_BY_UNPARK && graph_caused(n, i);
    c->threads[n->thread].gave_up = unparked ? 0 : object + 1;
    return unparked && !(c->open[object].hold &&
                         c->threads[tl_node(c->t, n->waker).thread].gave_up == object + 1);
}

/* A node ends a wait: checks whether the thread waited for a lock, which it holds now. */
static int wait_ended(struct collector *c, uint32_t i, const struct tl_node *n)
{
    uint32_t object = c->threads[n->thread].waiting;
    set_waiting(c, n->thread, TL_NONE, false);
    if (object == TL_NONE || n->prev == TL_NONE || !c->wanted[object] || is_exact(c, object))
        return 0;
    const struct holder *p = &c->threads[n->thread]; /* at the node before this one */
    bool parked = p->kind == TL_PARK;
    if (parked && !(c->t->objects[object].flags & TL_OBJECT_LOCK && got_lock(c, i, n, object)))
        return 0;
    if (!parked && p->kind != TL_WAIT_LOCK && p->kind != TL_WAIT_OBJECT &&
        p->kind != TL_REACQUIRE && p->kind != TL_TIMEOUT)
        return 0;
    return acquired(c, i, n, object, c->t->contexts[p->context].stack);
}

/*
 * A thread that waits or makes a call while the method that took the lock is on its stack has not
 * left that method, and will not have left it when the wait ends. But a thread that waits for this
 * very lock has left the method and entered it again. The same is assumed of a thread with other
 * callers, and of one that shows the first of these stacks again while nobody waits for the lock.
 */
static int scan_stack(struct collector *c, uint32_t i, const struct tl_node *n)
{
    struct holder *p = &c->threads[n->thread];
    if (!p->current)
        return 0;
    struct tl_context x = c->t->contexts[n->context];
    if (p->within)
        p->seen = n->time;
    bool once_more = (n->kind == TL_WAIT_LOCK || n->kind == TL_PARK) && x.object == p->object;
    if (once_more)
        not_after(c, p->current - 1, n->time);
    if (once_more || x.stack == TL_NONE || p->stack == TL_NONE || c->t->stacks[p->stack].len == 0) {
        p->within = false;
        return 0;
    }
    bool again = x.stack == p->first && !c->open[p->object].waiters && !is_exact(c, p->object);
    bool in = x.stack == p->first || (stack_tops_has(&c->tops, x.stack, p->stack) &&
                                      stack_tops_may_continue(c->t, x.stack, p->stack));
    if (again && c->open[p->object].hold == p->current) {
        uint32_t object = p->object, stack = p->stack;
        leave(c, p);
        hold_forget(c, object, n->time);
        int r = hold_open(c, n->thread, object, stack, n->time, i, wake_of(c, i, n),
                          HOLD_START_INFERRED);
        if (r < 0)
            return r;
    }
    p->within = in && n->flags & TL_BLOCKED;
    if (in) {
        p->first = p->first == TL_NONE ? x.stack : p->first;
        p->seen = n->time;
        return 0;
    }
    not_after(c, p->current - 1, n->time);
    c->open[p->object].uncertain |= c->open[p->object].hold == p->current;
    leave(c, p);
    return 0;
}

/*
 * Returns the node at which the monitor of an exact hold was acquired: the end of the wait for it,
 * if there was one.
 */
static uint32_t acquisition(const struct collector *c, uint32_t i, uint32_t object)
{
    uint32_t had = tl_node(c->t, i).prev;
    uint32_t waited = had == TL_NONE ? TL_NONE : tl_node(c->t, had).prev;
    if (waited == TL_NONE || tl_node(c->t, had).kind != TL_RUN ||
        !(tl_node(c->t, waited).flags & TL_BLOCKED))
        return i;
    return c->t->contexts[tl_node(c->t, waited).context].object == object ? had : i;
}

/* Opens an exact hold, which node i records. */
static int open_exact(struct collector *c, uint32_t i, const struct tl_node *n, struct tl_context x)
{
    uint32_t node = acquisition(c, i, x.object);
    const struct tl_node at = tl_node(c->t, node);
    uint64_t wake;
    bool woken = graph_woken_at(c->t, &at, node, &wake);
    return hold_open(c, n->thread, x.object, x.stack, n->time, node, woken ? wake : NEVER,
                     HOLD_EXACT);
}

/*
 * A thread begins to wait for a lock, which shows that it does not hold the lock itself and that
 * another thread does.
 */
static int wait_begins(struct collector *c, uint32_t i, const struct tl_node *n,
                       struct tl_context x)
{
    bool queue = set_waiting(c, n->thread, x.object, true);
    if (x.object == TL_NONE || !c->wanted[x.object] || is_exact(c, x.object))
        return 0;
    /* A thread that waits for a lock does not hold it, even if the owner is unknown. */
    if (is_owner(c, x.object, n->thread))
        hold_forget(c, x.object, n->time);
    /*
     * The owner is proven to have had the lock from the start only if a thread waited for it all
     * the time.
     */
    if (!queue)
        c->open[x.object].proven = n->time;
    if (x.other == TL_NONE || x.other == n->thread ||
        (is_owner(c, x.object, x.other) && (queue || !c->open[x.object].uncertain)))
        return 0;
    hold_forget(c, x.object, n->time);
    return hold_open(c, x.other, x.object, TL_NONE, n->time, i, wake_of(c, i, n),
                     HOLD_START_INFERRED);
}

static int visit(struct collector *c, uint32_t i, const struct tl_node *n)
{
    int r = scan_stack(c, i, n);
    struct tl_context x = c->t->contexts[n->context];
    bool wanted = x.object != TL_NONE && c->wanted[x.object];
    if (r < 0)
        return r;
    switch ((enum tl_kind)n->kind) {
    case TL_WAIT_OBJECT:
    case TL_WAIT_JOIN:
    case TL_REACQUIRE:
        set_waiting(c, n->thread, x.object, false);
        if (wanted && !is_exact(c, x.object) && n->kind != TL_REACQUIRE &&
            is_owner(c, x.object, n->thread)) {
            if (c->open[x.object].uncertain)
                hold_forget(c, x.object, n->time);
            else
                hold_close(c, x.object, n->time, i);
        }
        return 0;
    case TL_WAIT_LOCK:
    case TL_PARK:
        return wait_begins(c, i, n, x);
    case TL_RUN:
        return wait_ended(c, i, n);
    case TL_HANDOFF:
        if (wanted && !is_exact(c, x.object) && is_owner(c, x.object, n->thread))
            hold_close(c, x.object, n->time, i);
        return 0;
    case TL_UNPARK:
        if (x.other != TL_NONE && c->threads[x.other].waiting != TL_NONE &&
            is_owner(c, c->threads[x.other].waiting, n->thread))
            hold_close(c, c->threads[x.other].waiting, n->time, i);
        return 0;
    case TL_ACQUIRE:
        if (!wanted)
            return 0;
        if (c->open[x.object].hold)
            hold_close(c, x.object, n->time, i);
        return open_exact(c, i, n, x);
    case TL_RELEASE:
        if (wanted && is_owner(c, x.object, n->thread))
            hold_close(c, x.object, n->time, i);
        return 0;
    default:
        return 0;
    }
}

/* Packs the chunks that are still in use at the end. */
static int pack_rest(struct collector *c)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && c->live.len && i < c->t->n_threads; i++) {
        struct holder *p = &c->threads[i];
        while (r == 0 && p->n && p->first_chunk != TL_NONE)
            r = pack_first(c, i,
                           p->first_chunk == p->chunk ? (p->n - 1) % HOLD_CHUNK + 1 : HOLD_CHUNK);
    }
    return r;
}

/*
 * Builds the index of chunks by thread. The holds of a thread are already sorted by their start,
 * because a hold is recorded when it begins.
 */
static int holds_index(const struct collector *c)
{
    struct holds *h = c->holds;
    size_t n = c->t->n_threads;
    h->first = calloc(n + 2, sizeof(*h->first));
    h->chunk_first = calloc(n + 2, sizeof(*h->chunk_first));
    if (h->links)
        h->chunks = calloc(c->done.len + 1, sizeof(*h->chunks));
    else
        h->packed = calloc(c->done.len + 1, sizeof(*h->packed));
    if (!h->first || !h->chunk_first || !(h->chunks || h->packed))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        h->first[i + 1] = h->first[i] + c->threads[i].n;
        h->chunk_first[i + 1] = h->chunk_first[i];
        c->threads[i].chunk = (uint32_t)h->chunk_first[i];
        h->chunk_first[i + 1] += (c->threads[i].n + HOLD_CHUNK - 1) / HOLD_CHUNK;
    }
    for (size_t i = 0; i < c->done.len; i++) {
        uint32_t at = c->threads[c->done.data[i].thread].chunk++;
        if (h->links)
            h->chunks[at] = (uint32_t)i;
        else
            h->packed[at] = c->done.data[i].packed;
    }
    return 0;
}

static int visit_all(struct collector *c, holds_want *want, void *arg)
{
    const struct timeline *t = c->t;
    struct tl_reader nodes = {.t = t};
    int r = 0;
    for (size_t i = 0; i < t->n_threads; i++)
        c->threads[i].waiting = TL_NONE;
    for (size_t i = 0; i < t->n_objects; i++)
        c->wanted[i] = !want || want(t, (uint32_t)i, arg);
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        /* contexts are scattered in memory, and waiting for them took half of the time */
        const struct tl_node *n = tl_read(&nodes, (uint32_t)i);
        if (i + PREFETCH < nodes.to)
            __builtin_prefetch(&t->contexts[n[PREFETCH].context]);
        r = visit(c, (uint32_t)i, n);
        struct holder *p = &c->threads[n->thread];
        p->since = p->blocked ? p->since : n->time;
        p->blocked = n->flags & TL_BLOCKED;
        p->kind = n->kind;
        p->context = n->context;
    }
    for (size_t i = 0; r == 0 && i < t->n_objects; i++)
        hold_forget(c, (uint32_t)i, t->end_ns);
    for (size_t i = 0; r == 0 && i < t->n_threads; i++)
        leave(c, &c->threads[i]);
    return r;
}

static int collect(const struct timeline *t, holds_want *want, void *arg, bool links,
                   struct holds *ret)
{
    struct holds h = {.t = t};
    struct collector c = {.t = t, .holds = &h, .unused = TL_NONE};
    if (t->n_objects >= OBJECTS_MAX)
        return -E2BIG;
    c.open = calloc(t->n_objects + 1, sizeof(*c.open));
    c.wanted = calloc(t->n_objects + 1, sizeof(*c.wanted));
    c.threads = calloc(t->n_threads + 1, sizeof(*c.threads));
    c.tops = stack_tops_find(t);
    c.order.width = t->n_threads <= UINT8_MAX + 1 ? 1 : t->n_threads <= UINT16_MAX + 1 ? 2 : 4;
    h.of_object = calloc(t->n_objects + 1, sizeof(*h.of_object));
    int r = c.open && c.wanted && c.threads && h.of_object ? holds_reserve(&h, t, links) : -ENOMEM;
    if (r == 0)
        r = visit_all(&c, want, arg);
    if (r == 0)
        r = pack_rest(&c);
    holds_complete(&h);
    if (r == 0)
        r = holds_index(&c);
    if (r == 0)
        r = holds_settle(&h, c.medians ? &c.order : NULL);
    stack_tops_release(&c.tops);
    free(c.open);
    free(c.wanted);
    free(c.threads);
    vec_release(&c.order.bytes);
    vec_release(&c.live);
    vec_release(&c.done);
    if (r < 0)
        holds_release(&h);
    else
        *ret = h;
    return r;
}

int holds_collect(const struct timeline *t, holds_want *want, void *arg, struct holds *ret)
{
    return collect(t, want, arg, false, ret);
}

int holds_collect_linked(const struct timeline *t, holds_want *want, void *arg, struct holds *ret)
{
    return collect(t, want, arg, true, ret);
}
