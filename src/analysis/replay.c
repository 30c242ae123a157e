/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a recording and decides anew who gets each lock: a discrete-event simulation of the
 * threads. Between events a thread takes its own recorded time, and it waits for the recorded
 * wakers; but a contended lock goes to the thread that asks first after its release. When the
 * simulation cannot go on (inferred relations contradict it, or an owner is unknown), the recorded
 * order is kept.
 */
#include "analysis/replay.h"

#include "analysis/graph.h"
#include "base/do_both.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* beyond this size the recorded order is kept, because the simulation takes some 500 ns per node */
enum { ARBITRATE_NODES = 20000000 };

#define NOT_YET UINT64_MAX

/* The index is damaged: a thread waits twice, or a node happens twice. */
#define CONTRADICTION -EPROTO

struct pending {
    uint64_t time;
    uint32_t node;
    /* the hold released at that moment, after the node, + 1; 0: the event is the node itself */
    uint32_t hold;
};

/* What is known of the recording before a simulation begins. */
struct recorded {
    const struct timeline *t;
    const struct holds *holds; /* of all locks */
    uint32_t *next;            /* per node: the next node of its thread */
    /* per object: whether its holds are exact and no two threads ever held it at once */
    uint8_t *exclusive;
    /* per node: its hold + 1; the first hold released there + 1 */
    uint32_t *acquires, *releases;
    /* per hold: the next one released at the same node, + 1 */
    uint32_t *release_next;
    uint32_t *by_thread; /* the nodes grouped by thread, in chronological order */
    /* per thread: where its nodes begin in by_thread; n_threads + 1 elements */
    size_t *thread_at;
};

struct simulation {
    struct replay *r;
    const struct recorded *recorded;
    const struct timeline *t;
    const struct holds *holds;
    uint64_t *times;
    uint32_t *last; /* per thread: its last node that has already happened, or TL_NONE */
    /* per thread: the next thread that waits for the same node or lock */
    uint32_t *waiting;
    uint64_t *arrived; /* per thread: when it arrived at the lock it waits for */
    uint32_t *owner;   /* per object: its current hold + 1 */
    uint32_t *queue;   /* per object: the first thread in its queue, or TL_NONE */
    uint32_t *wakers;  /* per node: the first thread that waits for it + 1 */
    uint8_t *over;     /* per hold: whether it has been released */
    VEC(struct pending) heap;
    uint32_t releaser; /* the thread of the current event, which may release locks */
    size_t done;
    int result;
};

static int heap_push(struct simulation *s, uint64_t time, uint32_t node, uint32_t hold)
{
    int r = vec_push(&s->heap, ((struct pending){time, node, hold}));
    size_t i = s->heap.len - 1;
    while (r == 0 && i > 0) {
        struct pending *a = &s->heap.data[i], *b = &s->heap.data[(i - 1) / 2];
        if (b->time < a->time || (b->time == a->time && b->node < a->node))
            break;
        struct pending swap = *a;
        *a = *b;
        *b = swap;
        i = (i - 1) / 2;
    }
    return r;
}

static struct pending heap_pop(struct simulation *s)
{
    struct pending *h = s->heap.data, top = h[0];
    h[0] = h[--s->heap.len];
    for (size_t i = 0, child; (child = 2 * i + 1) < s->heap.len; i = child) {
        if (child + 1 < s->heap.len &&
            (h[child + 1].time < h[child].time ||
             (h[child + 1].time == h[child].time && h[child + 1].node < h[child].node)))
            child++;
        if (h[i].time < h[child].time || (h[i].time == h[child].time && h[i].node < h[child].node))
            break;
        struct pending swap = h[i];
        h[i] = h[child];
        h[child] = swap;
    }
    return top;
}

/* Returns the hold that node n begins after waiting for a lock, or NULL. */
static const struct tl_hold *lock_taken(const struct simulation *s, uint32_t n)
{
    const struct tl_node at = tl_node(s->t, n);
    if (at.edge != TL_BY_HANDOFF || at.waker == TL_NONE || at.prev == TL_NONE ||
        tl_node(s->t, at.prev).kind != TL_WAIT_LOCK)
        return NULL;
    return s->recorded->acquires[n] ? &s->holds->slots[s->recorded->acquires[n] - 1] : NULL;
}

/*
 * Returns the hold that node n begins without having waited for the lock in the recording, or NULL.
 */
static const struct tl_hold *lock_found_free(const struct simulation *s, uint32_t n)
{
    const struct tl_hold *h =
        s->recorded->acquires[n] ? &s->holds->slots[s->recorded->acquires[n] - 1] : NULL;
    return h && tl_node(s->t, n).kind == TL_ACQUIRE && h->flags & HOLD_EXACT &&
                   s->recorded->exclusive[tl_hold_object(h)]
               ? h
               : NULL;
}

/* Returns the hold that node n begins if its thread waits for the lock. */
static const struct tl_hold *lock_waited_for(const struct simulation *s, uint32_t n)
{
    const struct tl_hold *taken = lock_taken(s, n);
    return taken ? taken : lock_found_free(s, n);
}

/* Returns whether the thread that arrives at node n must wait for its lock in the new schedule. */
static bool must_wait(const struct simulation *s, uint32_t n)
{
    const struct tl_hold *h = lock_found_free(s, n);
    uint32_t owner = h ? s->owner[tl_hold_object(h)] : 0;
    uint32_t by = owner ? s->holds->links[owner - 1].acquire : TL_NONE;
    return by != TL_NONE && s->holds->slots[owner - 1].flags & HOLD_EXACT &&
           tl_node(s->t, by).thread != tl_node(s->t, n).thread;
}

/*
 * Gives a lock to a thread that waited for it, or to a thread that arrives when the lock is free
 * but had to wait in the recording.
 */
static int grant(struct simulation *s, uint32_t n, const struct tl_hold *h, uint64_t at,
                 bool contended)
{
    const struct tl_node node = tl_node(s->t, n);
    int64_t now = contended ? (int64_t)at - (int64_t)s->arrived[node.thread] : -1;
    uint64_t wake_up;
    if (lock_taken(s, n)) {
        const struct tl_node waker = tl_node(s->t, node.waker);
        int64_t then = (int64_t)waker.time - (int64_t)tl_node(s->t, node.prev).time;
        wake_up = replay_wake_up(s->r, &node, waker.time, &s->r->saved[waker.thread], then, now);
    } else {
        double sleeps = replay_sleeps(s->r, now);
        s->r->saved[s->releaser] -= (int64_t)(sleeps * (double)s->r->t->wake_ns);
        wake_up = (uint64_t)(sleeps * (double)s->r->usual);
    }
    s->owner[tl_hold_object(h)] = (uint32_t)(h - s->holds->slots) + 1;
    return heap_push(s, at + (contended ? wake_up : 0), n, 0);
}

static int wait_for(struct simulation *s, uint32_t thread, uint32_t object, uint64_t arrived)
{
    uint32_t *at = &s->queue[object];
    s->waiting[thread] = TL_NONE;
    s->arrived[thread] = arrived;
    for (size_t before = 0; *at != TL_NONE; at = &s->waiting[*at])
        if (before++ == s->t->n_threads)
            return CONTRADICTION;
    *at = thread;
    return 0;
}

/* The thread has finished node p: schedules its next node. */
static int advance(struct simulation *s, uint32_t p)
{
    uint32_t n = s->recorded->next[p], thread = tl_node(s->t, p).thread;
    if (n == TL_NONE)
        return 0;
    const struct tl_hold *h = lock_taken(s, n);
    if (h && s->owner[tl_hold_object(h)] == 0)
        return grant(s, n, h, s->times[p], false);
    if (h)
        return wait_for(s, thread, tl_hold_object(h), s->times[p]);
    const struct tl_node node = tl_node(s->t, n);
    if (!graph_caused(&node, n) || s->times[node.waker] != NOT_YET)
        return heap_push(s, replay_node(s->r, s->times, n), n, 0);
    s->waiting[thread] = s->wakers[node.waker] - 1; /* 0 becomes TL_NONE */
    s->wakers[node.waker] = thread + 1;
    return 0;
}

/* Returns the next node of a thread. `last` has the last node of each thread that has happened. */
static uint32_t upcoming(const struct simulation *s, uint32_t thread)
{
    return s->last[thread] == TL_NONE ? s->t->threads[thread].first
                                      : s->recorded->next[s->last[thread]];
}

static int release_hold(struct simulation *s, uint32_t hold, uint64_t at)
{
    uint32_t object = tl_hold_object(&s->holds->slots[hold]);
    s->over[hold] = true;
    if (s->owner[object] != hold + 1)
        return 0;
    s->owner[object] = 0;
    uint32_t thread = s->queue[object];
    if (thread == TL_NONE)
        return 0;
    s->queue[object] = s->waiting[thread];
    uint32_t n = upcoming(s, thread);
    const struct tl_hold *h = n == TL_NONE ? NULL : lock_waited_for(s, n);
    return h ? grant(s, n, h, at, true) : 0; /* an index that contradicts itself may have none */
}

/* Node n happens: releases its locks and wakes the threads that wait for it. */
static int happen(struct simulation *s, uint32_t n)
{
    const struct tl_node node = tl_node(s->t, n);
    s->last[node.thread] = n;
    s->releaser = node.thread;
    int r = 0;
    for (uint32_t k = s->recorded->releases[n]; r == 0 && k; k = s->recorded->release_next[k - 1]) {
        uint64_t end = s->holds->slots[k - 1].end;
        if (end > node.time && !(node.flags & TL_BLOCKED))
            r = heap_push(s, s->times[n] + replay_part(s->r, n, end), n, k);
        else
            r = release_hold(s, k - 1, s->times[n]);
    }
    uint32_t hold = s->recorded->acquires[n];
    if (hold && s->owner[tl_hold_object(&s->holds->slots[hold - 1])] == 0) {
        /*
         * A monitor that was reacquired after wait(), or that another thread was seen to hold: its
         * owner has not released it yet.
         */
        const struct tl_hold *h = &s->holds->slots[hold - 1];
        if (s->holds->links[hold - 1].release != TL_NONE && !s->over[hold - 1])
            s->owner[tl_hold_object(h)] = hold;
    }
    size_t threads = 0;
    for (uint32_t w = s->wakers[n] - 1, after; r == 0 && w != TL_NONE; w = after) {
        after = s->waiting[w];
        uint32_t woken = upcoming(s, w);
        if (woken == TL_NONE || threads++ == s->t->n_threads)
            return CONTRADICTION;
        r = heap_push(s, replay_node(s->r, s->times, woken), woken, 0);
    }
    return r;
}

static int simulate(struct simulation *s)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->t->n_threads; i++) {
        uint32_t first = s->t->threads[i].first;
        s->last[i] = TL_NONE;
        if (first == TL_NONE)
            continue;
        const struct tl_node n = tl_node(s->t, first);
        if (!graph_caused(&n, first)) {
            r = heap_push(s, n.time, first, 0);
        } else {
            s->waiting[i] = s->wakers[n.waker] - 1;
            s->wakers[n.waker] = (uint32_t)i + 1;
        }
    }
    while (r == 0 && s->heap.len) {
        struct pending p = heap_pop(s);
        if (p.hold) {
            s->releaser = tl_node(s->t, p.node).thread;
            r = release_hold(s, p.hold - 1, p.time);
            continue;
        }
        if (must_wait(s, p.node)) {
            r = wait_for(s, tl_node(s->t, p.node).thread,
                         tl_hold_object(lock_found_free(s, p.node)), p.time);
            continue;
        }
        if (s->done++ == s->t->n_nodes)
            return CONTRADICTION;
        s->times[p.node] = p.time;
        r = happen(s, p.node);
        if (r == 0)
            r = advance(s, p.node);
    }
    return r;
}

/*
 * Returns the node at which a thread releases its hold. If the end of the hold is only inferred,
 * this is the last node before that end, because the thread's next node may be seconds away.
 */
static uint32_t release_of(const struct recorded *s, uint32_t thread, uint32_t slot)
{
    const struct tl_hold *h = &s->holds->slots[slot];
    struct hold_link link = s->holds->links[slot];
    if (link.release != TL_NONE && tl_node(s->t, link.release).thread == thread)
        return link.release;
    uint32_t n = h->flags & HOLD_START_INFERRED ? s->t->threads[thread].first : link.acquire;
    size_t from = s->thread_at[thread], low = from, high = s->thread_at[thread + 1];
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->by_thread[mid] < n || tl_node(s->t, s->by_thread[mid]).time < h->end)
            low = mid + 1;
        else
            high = mid;
    }
    return low > from && s->by_thread[low - 1] >= n ? s->by_thread[low - 1] : n;
}

/* Sorts nodes by thread and finds the successor of each. */
static int find_order(struct recorded *s)
{
    const struct timeline *t = s->t;
    size_t *at = calloc(t->n_threads + 2, sizeof(*at));
    if (!at)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_threads; i++)
        s->thread_at[i + 1] = s->thread_at[i] + t->threads[i].nodes;
    memcpy(at, s->thread_at, (t->n_threads + 1) * sizeof(*at));
    for (size_t i = 0; i < t->n_nodes; i++) {
        size_t place = at[tl_node(t, i).thread]++;
        s->by_thread[place] = (uint32_t)i;
        if (place > s->thread_at[tl_node(t, i).thread])
            s->next[s->by_thread[place - 1]] = (uint32_t)i;
        s->next[i] = TL_NONE;
    }
    free(at);
    return 0;
}

static void hold_fill(struct recorded *s, uint32_t thread, uint32_t slot)
{
    struct hold_link *h = &s->holds->links[slot];
    h->release = release_of(s, thread, slot);
    if (h->acquire != TL_NONE)
        s->acquires[h->acquire] = slot + 1;
    s->release_next[slot] = 0;
    if (h->release != TL_NONE) {
        s->release_next[slot] = s->releases[h->release];
        s->releases[h->release] = slot + 1;
    }
}

/*
 * Finds the exclusive locks: exact holds that overlap belong to readers, which do not wait for each
 * other.
 */
static int find_exclusive(struct recorded *s)
{
    const struct timeline *t = s->t;
    uint32_t *holder = calloc(t->n_objects + 1, sizeof(*holder)); /* thread + 1 */
    if (!holder)
        return -ENOMEM;
    memset(s->exclusive, 1, t->n_objects);
    for (uint32_t n = 0; n < t->n_nodes; n++) {
        const struct tl_node at = tl_node(t, n);
        uint32_t object =
            at.kind == TL_ACQUIRE || at.kind == TL_RELEASE ? tl_context_of(t, n)->object : TL_NONE;
        if (object == TL_NONE)
            continue;
        if (at.kind == TL_ACQUIRE && holder[object] && holder[object] != at.thread + 1)
            s->exclusive[object] = 0;
        holder[object] = at.kind == TL_ACQUIRE ? at.thread + 1 : 0;
    }
    free(holder);
    return 0;
}

/*
 * Returns whether a thread received a scaled lock from an owner that the recording does not know,
 * so that the order of acquisition cannot be determined.
 */
static bool has_strangers(const struct recorded *s, const uint8_t *objects)
{
    const struct timeline *t = s->t;
    for (uint32_t n = 0; objects && n < t->n_nodes; n++) {
        const struct tl_node at = tl_node(t, n);
        uint32_t hold =
            at.prev < n && tl_node(t, at.prev).kind == TL_WAIT_LOCK && !graph_caused(&at, n)
                ? s->acquires[n]
                : 0;
        if (hold && objects[tl_hold_object(&s->holds->slots[hold - 1])])
            return true;
    }
    return false;
}

static void recorded_release(struct recorded *s)
{
    void *const all[] = {s->next,         s->exclusive, s->acquires, s->releases,
                         s->release_next, s->by_thread, s->thread_at};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        free(all[i]);
}

static int recorded_init(struct recorded *ret, const struct timeline *t, const struct holds *holds)
{
    struct recorded s = {.t = t, .holds = holds};
    s.next = malloc((t->n_nodes + 1) * sizeof(*s.next));
    s.exclusive = calloc(t->n_objects + 1, 1);
    s.acquires = calloc(t->n_nodes + 1, sizeof(*s.acquires));
    s.releases = calloc(t->n_nodes + 1, sizeof(*s.releases));
    s.release_next = malloc((holds->n_slots + 1) * sizeof(*s.release_next));
    s.by_thread = malloc((t->n_nodes + 1) * sizeof(*s.by_thread));
    s.thread_at = calloc(t->n_threads + 2, sizeof(*s.thread_at));
    bool room = s.next && s.exclusive && s.acquires && s.releases && s.release_next &&
                s.by_thread && s.thread_at;
    int r = room ? find_order(&s) : -ENOMEM;
    r = r ? r : find_exclusive(&s);
    for (uint32_t thread = 0; r == 0 && thread < t->n_threads; thread++) {
        for (size_t i = 0, n = hold_count(holds, thread); i < n; i++)
            hold_fill(&s, thread, (uint32_t)hold_slot(holds, thread, i));
    }
    *ret = s;
    return r;
}

/* Simulates to the end. The result is 1, 0 or an error, as that of replay_arbitrated. */
static void *simulate_all(void *arg)
{
    struct simulation *s = arg;
    const struct timeline *t = s->t;
    s->last = malloc((t->n_threads + 1) * sizeof(*s->last));
    s->waiting = malloc((t->n_threads + 1) * sizeof(*s->waiting));
    s->arrived = calloc(t->n_threads + 1, sizeof(*s->arrived));
    s->owner = calloc(t->n_objects + 1, sizeof(*s->owner));
    s->queue = malloc((t->n_objects + 1) * sizeof(*s->queue));
    s->wakers = calloc(t->n_nodes + 1, sizeof(*s->wakers));
    s->over = calloc(s->holds->n_slots + 1, sizeof(*s->over));
    void *const all[] = {s->last, s->waiting, s->arrived, s->owner, s->queue, s->wakers, s->over};
    s->result = 0;
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        s->result = all[i] ? s->result : -ENOMEM;
    if (s->result == 0) {
        memset(s->queue, 0xff, t->n_objects * sizeof(*s->queue)); /* TL_NONE */
        memset(s->times, 0xff, t->n_nodes * sizeof(*s->times));   /* NOT_YET */
        s->result = simulate(s);
    }
    if (s->result == 0)
        s->result = s->done == t->n_nodes;
    else if (s->result == CONTRADICTION)
        s->result = 0;
    vec_release(&s->heap);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        free(all[i]);
    return NULL;
}

bool replay_arbitrates(const struct timeline *t)
{
    return t->n_nodes <= ARBITRATE_NODES;
}

int replay_arbitrated(struct replay replays[2], const struct holds *holds, uint64_t *const times[2])
{
    const struct timeline *t = replays[0].t;
    if (!replay_arbitrates(t))
        return 0;
    struct recorded recorded;
    struct simulation s[2] = {{0}};
    int result = recorded_init(&recorded, t, holds);
    for (size_t i = 0; i < ARRAY_SIZE(s); i++)
        s[i] = (struct simulation){
            .r = &replays[i], .recorded = &recorded, .t = t, .holds = holds, .times = times[i]};
    if (result == 0 && !has_strangers(&recorded, replays[0].what->objects))
        do_both(simulate_all, &s[0], &s[1], t->n_nodes >= CONCURRENT_NODES);
    recorded_release(&recorded);
    result = result ? result : MIN(s[0].result, 0);
    result = result ? result : MIN(s[1].result, 0);
    return result ? result : s[0].result && s[1].result;
}
