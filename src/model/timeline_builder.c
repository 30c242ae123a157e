/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline_builder.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

enum { NESTING = 6 };

/* A wait that waits for a notification which came just after its record was made: clocks of two threads differ that little. */
#define LATE_NOTIFY_NS 100000
/* A virtual thread's carrier wakes who joined it that soon after its end. */
#define AFTER_END_NS 1000000
/* A wait that ends so much after its timeout did not wait for the timer alone. */
#define LATE_TIMEOUT_NS 2000000

/* What a thread is doing, between events. */
struct doing {
    uint32_t blocked_since;     /* first node of the wait that goes on, or TL_NONE */
    uint32_t pending_unpark;    /* unpark whose permit was not used yet */
    uint32_t pending_interrupt; /* interrupt that no wait has answered yet */
    uint32_t notified;          /* the notification that chose this waiter */
    uint32_t starter;           /* the call of start() */
    uint32_t last_unparked;     /* of a carrier: the unpark that woke it last */
    uint32_t carried;           /* of a carrier: the last node of the virtual thread that ended on it last */
    uint32_t wait_next;         /* next in the wait set */
    uint32_t wait_object;
    uint8_t depth;  /* of nested waits, such as Unsafe.park inside LockSupport.park */
    uint8_t hidden; /* of these, how many were deeper than NESTING */
    bool ended;

    struct {
        uint8_t kind;
        uint32_t context;
    } states[NESTING];
};

/* What is known of a monitor: the design's maps 1, 4 and 5. */
struct monitor {
    uint32_t owner;     /* thread, or TL_NONE */
    uint32_t release;   /* node at which the last owner let it go, when that is known exactly */
    uint32_t wait_head; /* wait set in order of arrival: threads */
    uint32_t wait_tail;
    uint32_t unbound; /* a running node that was woken by nobody known */
    bool owner_exact; /* recorded, not concluded */
};

struct timeline_builder {
    VEC(struct tl_node) nodes;
    VEC(struct tl_context) contexts;
    VEC(struct tl_thread) threads;
    VEC(struct tl_object) objects;
    VEC(struct tl_stack) stacks;
    VEC(struct tl_frame) frames;
    VEC(struct tl_pause) pauses;
    VEC(struct doing) doing;
    VEC(struct monitor) monitors;
    struct strpool strings;
    struct map thread_ids, object_ids, stack_ids;
    uint32_t *context_index; /* open addressing, number + 1 */
    size_t context_cap;
    uint64_t origin, epoch, now;
    uint32_t last_ended; /* thread, or TL_NONE */
    uint32_t last_user;  /* the same, of threads that the VM waits for at its end */
    uint32_t destroyer;  /* the thread that waits for them, or TL_NONE */
    uint64_t unbound;
    bool started;
};

int timeline_builder_new(struct timeline_builder **ret)
{
    struct timeline_builder *b = calloc(1, sizeof(*b));
    if (!b)
        return -ENOMEM;
    b->last_ended = b->last_user = b->destroyer = TL_NONE;
    *ret = b;
    return 0;
}

void timeline_builder_free(struct timeline_builder *b)
{
    if (!b)
        return;
    vec_release(&b->nodes);
    vec_release(&b->contexts);
    vec_release(&b->threads);
    vec_release(&b->objects);
    vec_release(&b->stacks);
    vec_release(&b->frames);
    vec_release(&b->pauses);
    vec_release(&b->doing);
    vec_release(&b->monitors);
    strpool_release(&b->strings);
    map_release(&b->thread_ids);
    map_release(&b->object_ids);
    map_release(&b->stack_ids);
    free(b->context_index);
    free(b);
}

int64_t timeline_string(struct timeline_builder *b, const char *text, size_t len)
{
    return strpool_add(&b->strings, text, len);
}

int64_t timeline_thread(struct timeline_builder *b, uint64_t id)
{
    bool added;
    uint64_t *slot = map_at(&b->thread_ids, id, b->threads.len, &added);
    if (!slot)
        return -ENOMEM;
    if (!added)
        return (int64_t)*slot;
    int r = vec_extend(&b->doing, 1);
    if (r == 0)
        r = vec_extend(&b->threads, 1);
    if (r < 0)
        return r;
    struct tl_thread *t = &b->threads.data[b->threads.len - 1];
    *t = (struct tl_thread){.id = id,
                            .name = TL_NONE,
                            .group = TL_NONE,
                            .parent_group = TL_NONE,
                            .parent = TL_NONE,
                            .object = TL_NONE,
                            .first = TL_NONE,
                            .last = TL_NONE};
    b->doing.data[b->threads.len - 1] = (struct doing){.blocked_since = TL_NONE,
                                                       .pending_unpark = TL_NONE,
                                                       .pending_interrupt = TL_NONE,
                                                       .notified = TL_NONE,
                                                       .starter = TL_NONE,
                                                       .wait_next = TL_NONE,
                                                       .wait_object = TL_NONE};
    return (int64_t)b->threads.len - 1;
}

struct tl_thread *timeline_thread_at(struct timeline_builder *b, uint32_t thread)
{
    return &b->threads.data[thread];
}

void timeline_thread_object(struct timeline_builder *b, uint32_t thread, uint32_t object)
{
    b->threads.data[thread].object = object;
    b->objects.data[object].thread = thread;
}

uint32_t timeline_object_thread(const struct timeline_builder *b, uint32_t object)
{
    return b->objects.data[object].thread;
}

static bool ends_with(const char *s, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len >= n && memcmp(s + len - n, end, n) == 0;
}

/* The synchronizers of java.util.concurrent that one thread owns at a time and hands over by unpark. */
static bool is_exclusive_lock(struct str class)
{
    return strstr(class.data, "ReentrantLock$") && ends_with(class.data, class.len, "Sync");
}

int64_t timeline_object(struct timeline_builder *b, uint64_t id, uint32_t class)
{
    bool added;
    uint64_t *slot = map_at(&b->object_ids, hash_u64(id) ^ class, b->objects.len, &added);
    if (!slot)
        return -ENOMEM;
    if (!added)
        return (int64_t)*slot;
    int r = vec_extend(&b->monitors, 1);
    if (r == 0)
        r = vec_extend(&b->objects, 1);
    if (r < 0)
        return r;
    bool lock = is_exclusive_lock(strpool_get(&b->strings, class));
    b->objects.data[b->objects.len - 1] =
        (struct tl_object){.id = id, .class = class, .thread = TL_NONE, .flags = lock ? TL_OBJECT_LOCK : 0, .label = TL_NONE};
    b->monitors.data[b->objects.len - 1] =
        (struct monitor){.owner = TL_NONE, .release = TL_NONE, .wait_head = TL_NONE, .wait_tail = TL_NONE, .unbound = TL_NONE};
    return (int64_t)b->objects.len - 1;
}

int64_t timeline_stack(struct timeline_builder *b, const struct tl_frame *frames, size_t n)
{
    /* A collision of 64-bit hashes would show a wrong stack; at a million stacks that is one chance in 10^7. */
    uint64_t hash = hash_bytes(frames, n * sizeof(*frames));
    bool added;
    uint64_t *slot = map_at(&b->stack_ids, hash, b->stacks.len, &added);
    if (!slot)
        return -ENOMEM;
    if (!added)
        return (int64_t)*slot;
    int r = vec_reserve(&b->frames, b->frames.len + n);
    if (r == 0)
        r = vec_push(&b->stacks, ((struct tl_stack){(uint32_t)b->frames.len, (uint32_t)n}));
    if (r < 0)
        return r;
    if (n)
        memcpy(b->frames.data + b->frames.len, frames, n * sizeof(*frames));
    b->frames.len += n;
    return (int64_t)b->stacks.len - 1;
}

int timeline_pause(struct timeline_builder *b, uint64_t start_ns, uint64_t end_ns, uint32_t name)
{
    return vec_push(&b->pauses, ((struct tl_pause){start_ns, end_ns, name, 0}));
}

void timeline_origin(struct timeline_builder *b, uint64_t clock_ns, uint64_t epoch_ns)
{
    b->origin = clock_ns;
    b->epoch = epoch_ns;
    b->started = true;
}

static int contexts_grow(struct timeline_builder *b)
{
    size_t cap = b->context_cap ? b->context_cap * 2 : 1024;
    uint32_t *index = calloc(cap, sizeof(*index));
    if (!index)
        return -ENOMEM;
    for (size_t i = 0; i < b->contexts.len; i++) {
        size_t at = hash_bytes(&b->contexts.data[i], sizeof(struct tl_context)) & (cap - 1);
        while (index[at])
            at = (at + 1) & (cap - 1);
        index[at] = (uint32_t)i + 1;
    }
    free(b->context_index);
    b->context_index = index;
    b->context_cap = cap;
    return 0;
}

static int64_t context_of(struct timeline_builder *b, uint32_t object, uint32_t stack, uint32_t other, uint32_t timeout_ms)
{
    struct tl_context c = {object, stack, other, timeout_ms};
    if (b->contexts.len * 2 >= b->context_cap && contexts_grow(b) < 0)
        return -ENOMEM;
    size_t at = hash_bytes(&c, sizeof(c)) & (b->context_cap - 1);
    for (; b->context_index[at]; at = (at + 1) & (b->context_cap - 1)) {
        if (memcmp(&b->contexts.data[b->context_index[at] - 1], &c, sizeof(c)) == 0)
            return b->context_index[at] - 1;
    }
    if (vec_push(&b->contexts, c) < 0)
        return -ENOMEM;
    b->context_index[at] = (uint32_t)b->contexts.len;
    return (int64_t)b->contexts.len - 1;
}

/* Appends a node to a thread, now. Answers its number. */
static int64_t node_add(struct timeline_builder *b, uint32_t thread, enum tl_kind kind, uint32_t context)
{
    if (b->nodes.len >= TL_NONE)
        return -E2BIG;
    struct tl_thread *t = &b->threads.data[thread];
    uint32_t flags = tl_is_state(kind) && kind != TL_RUN && kind != TL_DEAD ? TL_BLOCKED : 0;
    if (!tl_is_state(kind) && t->last != TL_NONE)
        flags = b->nodes.data[t->last].flags & TL_BLOCKED;
    struct tl_node n = {.time = b->now,
                        .kind = kind,
                        .edge = TL_NO_EDGE,
                        .flags = flags,
                        .prev = t->last,
                        .waker = TL_NONE,
                        .thread = thread,
                        .context = context};
    if (vec_push(&b->nodes, n) < 0)
        return -ENOMEM;
    uint32_t number = (uint32_t)b->nodes.len - 1;
    if (t->first == TL_NONE) {
        t->first = number;
        t->start_ns = b->now;
    }
    t->last = number;
    t->nodes++;
    return number;
}

/* node_add with the context spelt out. */
static int64_t node_with(struct timeline_builder *b, uint32_t thread, enum tl_kind kind, uint32_t object, uint32_t stack,
                         uint32_t other)
{
    int64_t context = context_of(b, object, stack, other, 0);
    return context < 0 ? context : node_add(b, thread, kind, (uint32_t)context);
}

static int64_t node_of(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind)
{
    int64_t context = context_of(b, e->object, e->stack, e->other, e->timeout_ms);
    return context < 0 ? context : node_add(b, e->thread, kind, (uint32_t)context);
}

/* Says what caused node n. An interaction points back at the first node that it caused. */
static void bind(struct timeline_builder *b, uint32_t n, enum tl_edge edge, uint32_t waker, bool inferred)
{
    struct tl_node *node = &b->nodes.data[n];
    node->edge = edge;
    node->waker = waker;
    if (inferred)
        node->flags |= TL_INFERRED;
    if (waker != TL_NONE) {
        struct tl_node *w = &b->nodes.data[waker];
        if (!tl_is_state(w->kind) && w->waker == TL_NONE)
            w->waker = n;
    }
}

/*
 * The same for a monitor that was handed over: a thread that let it go before the receiver began to wait was not the owner, so
 * the record of owners was stale and the cause is unknown.
 */
static void bind_release(struct timeline_builder *b, uint32_t n, enum tl_edge edge, uint32_t release, bool inferred)
{
    uint32_t p = b->nodes.data[n].prev;
    while (p != TL_NONE && b->nodes.data[p].flags & TL_BLOCKED && b->nodes.data[p].prev != TL_NONE &&
           b->nodes.data[b->nodes.data[p].prev].flags & TL_BLOCKED)
        p = b->nodes.data[p].prev;
    if (p != TL_NONE && b->nodes.data[release].time < b->nodes.data[p].time)
        b->unbound++;
    else
        bind(b, n, edge, release, inferred);
}

/* A thread that is not known to run gets its first node here. */
static int thread_seen(struct timeline_builder *b, uint32_t thread)
{
    if (b->threads.data[thread].first != TL_NONE)
        return 0;
    int64_t n = node_with(b, thread, TL_RUN, TL_NONE, TL_NONE, TL_NONE);
    if (n < 0)
        return (int)n;
    b->nodes.data[n].flags |= TL_FIRST;
    return 0;
}

static struct monitor *monitor_of(struct timeline_builder *b, uint32_t object)
{
    return object == TL_NONE ? NULL : &b->monitors.data[object];
}

static void owned_by(struct monitor *m, uint32_t thread, bool exact)
{
    if (!m)
        return;
    if (m->owner != thread || exact)
        m->release = TL_NONE;
    m->owner = thread;
    m->owner_exact = exact;
}

/*
 * The node at which a thread can have let the monitor go for a receiver that runs now. A thread that waits does not release
 * (but for wait itself, at its beginning), so it is where its wait began; the last node of a dead thread; else here and now.
 */
static int64_t release_node(struct timeline_builder *b, uint32_t owner, uint32_t object, uint32_t receiver)
{
    const struct doing *d = &b->doing.data[owner];
    if (d->blocked_since != TL_NONE)
        return d->blocked_since;
    if (d->ended)
        return b->threads.data[owner].last;
    return node_with(b, owner, TL_HANDOFF, object, TL_NONE, receiver);
}

/* Begins a wait of any kind. A wait within a wait of the same kind is the same wait. */
static int64_t block(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind)
{
    struct doing *d = &b->doing.data[e->thread];
    if (d->depth == NESTING) {
        d->hidden++;
        return TL_NONE;
    }
    uint8_t outer = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
    if ((outer == kind && kind == TL_PARK) || (d->depth && kind == TL_UNMOUNTED)) {
        d->states[d->depth++].kind = TL_KINDS; /* the inner record of one park */
        return TL_NONE;
    }
    int64_t n = node_of(b, e, kind);
    if (n < 0)
        return n;
    d = &b->doing.data[e->thread];
    d->states[d->depth].kind = kind;
    d->states[d->depth].context = b->nodes.data[n].context;
    d->depth++;
    if (d->blocked_since == TL_NONE)
        d->blocked_since = (uint32_t)n;
    return n;
}

/* Ends the innermost wait when it is of this kind. Answers the node after it, or TL_NONE when there is nothing to end. */
static int64_t unblock(struct timeline_builder *b, uint32_t thread, enum tl_kind kind, enum tl_kind or_kind)
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
        return node_add(b, thread, d->states[d->depth - 1].kind, d->states[d->depth - 1].context);
    d->blocked_since = TL_NONE;
    return node_with(b, thread, TL_RUN, TL_NONE, TL_NONE, TL_NONE);
}

static void wait_set_add(struct timeline_builder *b, struct monitor *m, uint32_t thread, uint32_t object)
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

static void wait_set_remove(struct timeline_builder *b, uint32_t thread)
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

/* The head of the wait set is notified by node n: from now on it waits for the monitor. HotSpot's wait set is a queue. */
static int notify_first(struct timeline_builder *b, uint32_t object, uint32_t n, enum tl_edge edge)
{
    uint32_t waiter = b->monitors.data[object].wait_head;
    struct doing *d = &b->doing.data[waiter];
    wait_set_remove(b, waiter);
    d->notified = n;
    const struct tl_node *from = &b->nodes.data[b->threads.data[waiter].last];
    int64_t again = node_with(b, waiter, TL_REACQUIRE, object, b->contexts.data[from->context].stack, b->nodes.data[n].thread);
    if (again < 0)
        return (int)again;
    bind(b, (uint32_t)again, edge, n, false);
    return 0;
}

static int on_notify(struct timeline_builder *b, const struct tl_event *e)
{
    bool all = e->kind == TLE_NOTIFY_ALL;
    int64_t n = node_of(b, e, all ? TL_NOTIFY_ALL : TL_NOTIFY);
    if (n < 0 || e->object == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct monitor *m = monitor_of(b, e->object);
    if (m->owner != e->thread)
        owned_by(m, e->thread, true);
    enum tl_edge edge = all ? TL_BY_NOTIFY_ALL : TL_BY_NOTIFY;
    if (m->wait_head == TL_NONE && m->unbound != TL_NONE && b->now - b->nodes.data[m->unbound].time <= LATE_NOTIFY_NS) {
        /* Woken before the record of the notification: the interaction is known, but as a waker it would lie behind. */
        b->nodes.data[n].waker = m->unbound;
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

static int on_wait(struct timeline_builder *b, const struct tl_event *e)
{
    struct tl_event wait = *e;
    bool join = false;
    if (e->object != TL_NONE) {
        uint32_t joined = b->objects.data[e->object].thread;
        join = joined != TL_NONE;
        if (join && wait.other == TL_NONE)
            wait.other = joined;
    }
    int64_t n = block(b, &wait, join ? TL_WAIT_JOIN : TL_WAIT_OBJECT);
    if (n < 0 || n == TL_NONE || e->object == TL_NONE)
        return n < 0 ? (int)n : 0;
    b->doing.data[e->thread].notified = TL_NONE;
    struct monitor *m = monitor_of(b, e->object);
    m->owner = e->thread;
    m->owner_exact = true;
    m->release = (uint32_t)n;
    wait_set_add(b, m, e->thread, e->object);
    return 0;
}

/* How a wait ended that is about to be followed by a running node. */
struct cause {
    enum tl_edge edge;
    uint32_t waker;
    bool inferred;
};

/* Who let the monitor go for a thread that has been notified by node `notified` and runs now. */
static int reacquired(struct timeline_builder *b, uint32_t thread, uint32_t notified, uint32_t object, struct cause *ret)
{
    uint32_t notifier = b->nodes.data[notified].thread;
    struct monitor *m = monitor_of(b, object);
    uint32_t owner = m && m->owner != TL_NONE && m->owner != thread ? m->owner : notifier;
    int64_t release = m && m->owner == owner && m->release != TL_NONE ? m->release : TL_NONE;
    bool inferred = release == TL_NONE && owner != notifier && !(m && m->owner_exact);
    if (release == TL_NONE)
        release = release_node(b, owner, object, thread);
    if (release < 0)
        return (int)release;
    enum tl_edge edge = owner != notifier                               ? TL_BY_HANDOFF
                        : b->nodes.data[notified].kind == TL_NOTIFY_ALL ? TL_BY_NOTIFY_ALL
                                                                        : TL_BY_NOTIFY;
    *ret = (struct cause){edge, (uint32_t)release, inferred};
    return 0;
}

/* Gives a notification back that a waiter did not get after all (its time was out first): the next in the queue had it. */
static int notification_passes_on(struct timeline_builder *b, uint32_t thread, uint32_t object)
{
    struct doing *d = &b->doing.data[thread];
    uint32_t notified = d->notified;
    if (notified == TL_NONE || b->nodes.data[notified].kind != TL_NOTIFY || object == TL_NONE)
        return 0;
    d->notified = TL_NONE;
    b->nodes.data[notified].waker = TL_NONE;
    return b->monitors.data[object].wait_head == TL_NONE ? 0 : notify_first(b, object, notified, TL_BY_NOTIFY);
}

static bool interrupted(struct timeline_builder *b, uint32_t thread, uint32_t n)
{
    struct doing *d = &b->doing.data[thread];
    if (d->pending_interrupt == TL_NONE)
        return false;
    bind(b, n, TL_BY_INTERRUPT, d->pending_interrupt, false);
    d->pending_interrupt = TL_NONE;
    return true;
}

/*
 * A join of which only the class of the object is known (plain JFR): the thread that ended last, if that was during the wait.
 */
static uint32_t joined_by_class(const struct timeline_builder *b, const struct tl_event *e)
{
    if (e->object == TL_NONE || b->last_ended == TL_NONE || b->last_ended == e->thread ||
        strcmp(strpool_get(&b->strings, b->objects.data[e->object].class).data, "java.lang.Thread") != 0)
        return TL_NONE;
    uint64_t began = b->nodes.data[b->doing.data[e->thread].blocked_since].time;
    return b->threads.data[b->last_ended].end_ns >= began ? b->last_ended : TL_NONE;
}

/* Why a wait ended that was not timed out. */
static int waited_cause(struct timeline_builder *b, const struct tl_event *e, struct cause *ret)
{
    struct doing *d = &b->doing.data[e->thread];
    uint32_t notified = d->notified;
    uint32_t joined = e->object != TL_NONE ? b->objects.data[e->object].thread : TL_NONE;
    d->notified = TL_NONE;
    if (joined != TL_NONE && joined != e->thread && b->doing.data[joined].ended) {
        *ret = (struct cause){TL_BY_JOIN, b->threads.data[joined].last, false};
    } else if (notified != TL_NONE) {
        return reacquired(b, e->thread, notified, e->object, ret);
    } else if (d->pending_interrupt != TL_NONE) {
        *ret = (struct cause){TL_BY_INTERRUPT, d->pending_interrupt, false};
        d->pending_interrupt = TL_NONE;
    } else if (e->other == TL_NONE && joined_by_class(b, e) != TL_NONE) {
        *ret = (struct cause){TL_BY_JOIN, b->threads.data[b->last_ended].last, true};
    } else if (e->other != TL_NONE && e->other != e->thread) {
        /* The notifier is recorded but not when it notified (plain JFR): not later than it blocked. */
        int r = thread_seen(b, e->other);
        int64_t at = r < 0 ? r : release_node(b, e->other, e->object, e->thread);
        if (at < 0)
            return (int)at;
        *ret = (struct cause){TL_BY_NOTIFY, (uint32_t)at, true};
    }
    return 0;
}

/* The wait ended by its timeout: what looked like a notification was not for it. */
static int waited_in_vain(struct timeline_builder *b, const struct tl_event *e, struct cause *ret)
{
    uint32_t last = b->threads.data[e->thread].last, context = b->nodes.data[last].context;
    struct tl_node *again = &b->nodes.data[last];
    if (again->kind == TL_REACQUIRE && again->prev != TL_NONE) {
        again->kind = b->nodes.data[again->prev].kind;
        again->edge = TL_NO_EDGE;
        again->waker = TL_NONE;
        again->context = context = b->nodes.data[again->prev].context;
    }
    int r = notification_passes_on(b, e->thread, e->object);
    b->doing.data[e->thread].notified = TL_NONE;
    /* Much later than the timeout: it waited for the monitor, which the owner of then let go. */
    uint64_t waited = b->now - b->nodes.data[b->doing.data[e->thread].blocked_since].time;
    struct monitor *m = monitor_of(b, e->object);
    uint32_t timeout_ms = b->contexts.data[context].timeout_ms;
    if (r == 0 && m && m->owner != TL_NONE && m->owner != e->thread && timeout_ms &&
        waited > timeout_ms * UINT64_C(1000000) + LATE_TIMEOUT_NS) {
        int64_t release = m->release != TL_NONE ? m->release : release_node(b, m->owner, e->object, e->thread);
        r = release < 0 ? (int)release : 0;
        *ret = (struct cause){TL_BY_HANDOFF, (uint32_t)release, m->release == TL_NONE};
    }
    int64_t instant = r < 0 ? r : node_add(b, e->thread, TL_TIMEOUT, context);
    return instant < 0 ? (int)instant : 0;
}

static int on_waited(struct timeline_builder *b, const struct tl_event *e)
{
    struct doing *d = &b->doing.data[e->thread];
    uint8_t state = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
    wait_set_remove(b, e->thread);
    if (state != TL_WAIT_OBJECT && state != TL_WAIT_JOIN)
        return 0;
    bool timed_out = e->flags & TLE_TIMED_OUT;
    struct cause cause = {TL_NO_EDGE, TL_NONE, false};
    int r = timed_out ? waited_in_vain(b, e, &cause) : waited_cause(b, e, &cause);
    int64_t n = r < 0 ? r : unblock(b, e->thread, TL_WAIT_OBJECT, TL_WAIT_JOIN);
    if (n < 0 || n == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct monitor *m = monitor_of(b, e->object);
    if (cause.waker != TL_NONE) {
        bind_release(b, (uint32_t)n, cause.edge, cause.waker, cause.inferred);
    } else if (timed_out) {
        bind(b, (uint32_t)n, TL_BY_TIMER, TL_NONE, false);
    } else {
        b->unbound++;
        if (m)
            m->unbound = (uint32_t)n;
    }
    owned_by(m, e->thread, true);
    return 0;
}

static int on_enter(struct timeline_builder *b, const struct tl_event *e)
{
    struct monitor *m = monitor_of(b, e->object);
    struct tl_event enter = *e;
    if (m && e->other != TL_NONE) {
        if (m->owner != e->other)
            owned_by(m, e->other, true);
        m->owner_exact = true;
    } else if (m) {
        enter.other = m->owner != e->thread ? m->owner : TL_NONE;
    }
    if (enter.other != TL_NONE && thread_seen(b, enter.other) < 0)
        return -ENOMEM;
    int64_t n = block(b, &enter, TL_WAIT_LOCK);
    return n < 0 ? (int)n : 0;
}

/* Who let a contended monitor go: recorded, or the owner by the map. */
static int entered_cause(struct timeline_builder *b, const struct tl_event *e, struct cause *ret)
{
    struct monitor *m = monitor_of(b, e->object);
    bool recorded = e->other != TL_NONE && e->other != e->thread;
    uint32_t from = recorded ? e->other : m ? m->owner : TL_NONE;
    if (from == TL_NONE || from == e->thread)
        return 0;
    int64_t release = m && m->owner == from && m->release != TL_NONE ? m->release : TL_NONE;
    int r = thread_seen(b, from);
    if (r == 0 && release == TL_NONE)
        release = release_node(b, from, e->object, e->thread);
    if (r < 0 || release < 0)
        return r < 0 ? r : (int)release;
    *ret = (struct cause){TL_BY_HANDOFF, (uint32_t)release, !recorded && m->release == TL_NONE && !m->owner_exact};
    return 0;
}

static int on_entered(struct timeline_builder *b, const struct tl_event *e)
{
    struct doing *d = &b->doing.data[e->thread];
    struct cause cause = {TL_NO_EDGE, TL_NONE, false};
    bool waits = d->depth && d->states[d->depth - 1].kind == TL_WAIT_LOCK;
    int r = waits ? entered_cause(b, e, &cause) : 0;
    int64_t n = r < 0 ? r : unblock(b, e->thread, TL_WAIT_LOCK, TL_WAIT_LOCK);
    if (n < 0)
        return (int)n;
    if (n != TL_NONE && cause.waker != TL_NONE)
        bind_release(b, (uint32_t)n, cause.edge, cause.waker, cause.inferred);
    else if (n != TL_NONE)
        b->unbound++;
    owned_by(monitor_of(b, e->object), e->thread, true);
    return 0;
}

static int on_parked(struct timeline_builder *b, const struct tl_event *e)
{
    struct doing *d = &b->doing.data[e->thread];
    uint32_t since = d->blocked_since;
    bool was_parked = d->depth && d->states[d->depth - 1].kind == TL_PARK;
    uint32_t context = was_parked ? d->states[d->depth - 1].context : 0;
    int64_t n = unblock(b, e->thread, TL_PARK, TL_PARK);
    if (n < 0 || n == TL_NONE)
        return n < 0 ? (int)n : 0;
    d = &b->doing.data[e->thread];
    struct tl_context c = b->contexts.data[context];
    uint64_t waited = b->now - b->nodes.data[since].time;
    if (d->pending_unpark != TL_NONE) {
        bool join = b->nodes.data[d->pending_unpark].kind == TL_DEAD;
        bind(b, (uint32_t)n, join ? TL_BY_JOIN : TL_BY_UNPARK, d->pending_unpark, false);
        d->last_unparked = d->pending_unpark;
        d->pending_unpark = TL_NONE;
        if (c.object != TL_NONE && b->objects.data[c.object].flags & TL_OBJECT_LOCK)
            owned_by(monitor_of(b, c.object), e->thread, false);
    } else if (d->pending_interrupt != TL_NONE && !(c.timeout_ms && waited >= c.timeout_ms * UINT64_C(1000000))) {
        interrupted(b, e->thread, (uint32_t)n);
    } else if (c.timeout_ms && waited + 1000000 >= c.timeout_ms * UINT64_C(1000000)) {
        bind(b, (uint32_t)n, TL_BY_TIMER, TL_NONE, false);
    } else {
        b->unbound++;
    }
    return 0;
}

/*
 * Virtual threads are joined through a latch that the carrier opens, after the end: then it is the end that woke the joiner.
 * Answers the virtual thread's last node, or TL_NONE.
 */
static uint32_t end_of_virtual(const struct timeline_builder *b, const struct tl_event *e)
{
    uint32_t end = b->doing.data[e->thread].carried;
    const struct doing *target = &b->doing.data[e->other];
    if (end == TL_NONE || b->now - b->nodes.data[end].time > AFTER_END_NS || target->depth == 0 ||
        target->states[target->depth - 1].kind != TL_PARK)
        return TL_NONE;
    uint32_t object = b->contexts.data[target->states[target->depth - 1].context].object;
    bool latch = object != TL_NONE && strcmp(strpool_get(&b->strings, b->objects.data[object].class).data,
                                             "java.util.concurrent.CountDownLatch$Sync") == 0;
    return latch ? end : TL_NONE;
}

static int on_unpark(struct timeline_builder *b, const struct tl_event *e)
{
    int64_t n = node_of(b, e, TL_UNPARK);
    if (n < 0 || e->other == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct doing *d = &b->doing.data[e->other];
    uint32_t end = end_of_virtual(b, e);
    if (d->pending_unpark == TL_NONE)
        d->pending_unpark =
            end != TL_NONE ? end : (uint32_t)n; /* there is one permit: later unparks before its use change nothing */
    if (d->depth && d->states[d->depth - 1].kind == TL_PARK) {
        struct monitor *m = monitor_of(b, b->contexts.data[d->states[d->depth - 1].context].object);
        if (m && m->owner == e->thread)
            m->owner = TL_NONE;
    }
    return 0;
}

static int on_sleep_end(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind, enum tl_edge edge)
{
    int64_t n = unblock(b, e->thread, kind, kind);
    if (n < 0 || n == TL_NONE)
        return n < 0 ? (int)n : 0;
    if (kind != TL_SLEEP || !interrupted(b, e->thread, (uint32_t)n))
        bind(b, (uint32_t)n, edge, TL_NONE, false);
    return 0;
}

/* The parent is recorded but not its call of start() (plain JFR): here and now, or where it blocked. */
static int infer_starter(struct timeline_builder *b, const struct tl_event *e, bool *ret_inferred)
{
    struct doing *parent = e->other == TL_NONE ? NULL : &b->doing.data[e->other];
    if (parent && e->flags & TLE_VIRTUAL) {
        /* Who submitted it woke its carrier, unless that was awake already. */
        b->doing.data[e->thread].starter = parent->last_unparked;
        *ret_inferred = parent->last_unparked != TL_NONE;
        return 0;
    }
    if (!parent || b->doing.data[e->thread].starter != TL_NONE || e->other == e->thread)
        return 0;
    int r = thread_seen(b, e->other);
    parent = &b->doing.data[e->other];
    int64_t n = r < 0                              ? r
                : parent->blocked_since != TL_NONE ? parent->blocked_since
                : parent->ended                    ? b->threads.data[e->other].last
                                                   : node_with(b, e->other, TL_STARTS, TL_NONE, TL_NONE, e->thread);
    if (n < 0)
        return (int)n;
    b->doing.data[e->thread].starter = (uint32_t)n;
    *ret_inferred = true;
    return 0;
}

/*
 * DestroyJavaVM is what main's native thread becomes when main has ended: it goes on where the last thread has ended that is
 * no daemon. It records nothing of that wait, so it is taken to last to the next thing that the thread does.
 */
static int destroyer_waits(struct timeline_builder *b, const struct tl_event *e)
{
    int64_t n = node_of(b, e, TL_WAIT_JOIN);
    if (n < 0)
        return (int)n;
    if (b->last_user != TL_NONE)
        bind(b, (uint32_t)n, TL_BY_JOIN, b->threads.data[b->last_user].last, false);
    struct doing *d = &b->doing.data[e->thread];
    d->states[0].kind = TL_WAIT_JOIN;
    d->states[0].context = b->nodes.data[n].context;
    d->depth = 1;
    d->blocked_since = (uint32_t)n;
    b->destroyer = e->thread;
    return 0;
}

static int destroyer_goes_on(struct timeline_builder *b)
{
    uint32_t destroyer = b->destroyer, first = b->threads.data[destroyer].first, user = b->last_user;
    b->destroyer = TL_NONE;
    if (user == TL_NONE || b->threads.data[user].last < first) { /* main was the last one */
        b->nodes.data[first].kind = TL_RUN;
        b->nodes.data[first].flags &= ~(uint64_t)TL_BLOCKED & 0xf;
        b->doing.data[destroyer].depth = 0;
        b->doing.data[destroyer].blocked_since = TL_NONE;
        return 0;
    }
    int64_t n = unblock(b, destroyer, TL_WAIT_JOIN, TL_WAIT_JOIN);
    if (n >= 0 && n != TL_NONE)
        bind(b, (uint32_t)n, TL_BY_JOIN, b->threads.data[user].last, false);
    return n < 0 ? (int)n : 0;
}

static bool is_destroyer(const struct timeline_builder *b, uint32_t thread)
{
    uint32_t name = b->threads.data[thread].name;
    return name != TL_NONE && strcmp(strpool_get(&b->strings, name).data, "DestroyJavaVM") == 0;
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
        n = node_of(b, e, TL_RUN);
    if (n < 0)
        return (int)n;
    struct doing *d = &b->doing.data[e->thread];
    if (e->flags & TLE_EXISTING)
        b->nodes.data[n].flags |= TL_FIRST;
    if (d->starter != TL_NONE) {
        bind(b, (uint32_t)n, TL_BY_START, d->starter, inferred);
        if (b->threads.data[e->thread].parent == TL_NONE)
            b->threads.data[e->thread].parent = b->nodes.data[d->starter].thread;
    }
    return 0;
}

static int on_thread_end(struct timeline_builder *b, const struct tl_event *e)
{
    struct doing *d = &b->doing.data[e->thread];
    if (d->ended)
        return 0;
    wait_set_remove(b, e->thread);
    d->depth = d->hidden = 0;
    d->blocked_since = TL_NONE;
    int64_t n = node_of(b, e, TL_DEAD);
    if (n < 0)
        return (int)n;
    d->ended = true;
    if (e->other != TL_NONE) {
        /* What the carrier does from here on, it does because the virtual thread has ended. */
        b->doing.data[e->other].carried = (uint32_t)n;
        int64_t goes_on = b->doing.data[e->other].depth || thread_seen(b, e->other) < 0
                              ? 0
                              : node_with(b, e->other, TL_RUN, TL_NONE, TL_NONE, TL_NONE);
        if (goes_on < 0)
            return (int)goes_on;
        if (goes_on > 0)
            bind(b, (uint32_t)goes_on, TL_BY_JOIN, (uint32_t)n, false);
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
    int64_t n = node_of(b, &call, e->kind == TLE_CALL_START ? TL_STARTS : TL_INTERRUPTS);
    if (n < 0 || call.other == TL_NONE)
        return n < 0 ? (int)n : 0;
    struct doing *d = &b->doing.data[call.other];
    if (e->kind == TLE_CALL_START)
        d->starter = (uint32_t)n;
    else
        d->pending_interrupt = (uint32_t)n;
    return 0;
}

static int on_hold(struct timeline_builder *b, const struct tl_event *e)
{
    bool release = e->kind == TLE_RELEASE;
    int64_t n = node_of(b, e, release ? TL_RELEASE : TL_ACQUIRE);
    struct monitor *m = monitor_of(b, e->object);
    if (n < 0 || !m)
        return n < 0 ? (int)n : 0;
    owned_by(m, e->thread, true);
    if (release)
        m->release = (uint32_t)n;
    return 0;
}

int timeline_add(struct timeline_builder *b, const struct tl_event *e)
{
    if (!b->started)
        timeline_origin(b, e->time, 0);
    uint64_t time = e->time > b->origin ? e->time - b->origin : 0;
    b->now = MAX(b->now, time);
    if (b->doing.data[e->thread].ended && e->kind != TLE_THREAD_END)
        return 0; /* the VM's own work after the end of the thread */
    int r = e->kind == TLE_THREAD_START ? 0 : thread_seen(b, e->thread);
    int64_t n = 0;
    if (r == 0 && e->thread == b->destroyer)
        r = destroyer_goes_on(b);
    if (r < 0)
        return r;
    switch ((enum tl_event_kind)e->kind) {
    case TLE_THREAD_START:
        return on_thread_start(b, e);
    case TLE_THREAD_END:
        return on_thread_end(b, e);
    case TLE_CONTENDED_ENTER:
        return on_enter(b, e);
    case TLE_CONTENDED_ENTERED:
        return on_entered(b, e);
    case TLE_WAIT:
        return on_wait(b, e);
    case TLE_WAITED:
        return on_waited(b, e);
    case TLE_SLEEP:
        n = block(b, e, TL_SLEEP);
        break;
    case TLE_SLEPT:
        return on_sleep_end(b, e, TL_SLEEP, TL_BY_TIMER);
    case TLE_PARK:
        n = block(b, e, TL_PARK);
        break;
    case TLE_PARKED:
        return on_parked(b, e);
    case TLE_IO:
        n = block(b, e, TL_IO);
        break;
    case TLE_IO_DONE:
        return on_sleep_end(b, e, TL_IO, TL_BY_IO);
    case TLE_CALL_START:
    case TLE_CALL_INTERRUPT:
        return on_call(b, e);
    case TLE_NOTIFY:
    case TLE_NOTIFY_ALL:
        return on_notify(b, e);
    case TLE_UNPARK:
        return on_unpark(b, e);
    case TLE_ACQUIRE:
    case TLE_RELEASE:
        return on_hold(b, e);
    case TLE_PREEMPT:
        n = block(b, e, TL_PREEMPTED);
        break;
    case TLE_RESUME:
        return on_sleep_end(b, e, TL_PREEMPTED, TL_NO_EDGE);
    case TLE_UNMOUNT:
        n = block(b, e, TL_UNMOUNTED);
        break;
    case TLE_MOUNT:
        return on_sleep_end(b, e, TL_UNMOUNTED, TL_NO_EDGE);
    case TLE_OWNER:
        owned_by(monitor_of(b, e->object), e->other, true);
        break;
    case TLE_INTERRUPTED:
    case TLE_KINDS:
        break;
    }
    return n < 0 ? (int)n : 0;
}

/*
 * Cycles among the threads that wait at the end: such a thread waits for a lock whose owner waits for a lock ... The owners are
 * what was recorded last; a cycle that was not one would have dissolved before the end.
 */
static int find_deadlocks(struct timeline_builder *b, uint32_t *ret_cycles)
{
    size_t n = b->threads.len;
    uint32_t *next = malloc((n + 1) * sizeof(*next)), *seen = calloc(n + 1, sizeof(*seen));
    int r = next && seen ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct doing *d = &b->doing.data[i];
        next[i] = TL_NONE;
        uint8_t state = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
        if (state != TL_WAIT_LOCK && state != TL_PARK)
            continue;
        struct tl_context c = b->contexts.data[d->states[d->depth - 1].context];
        const struct monitor *m = monitor_of(b, c.object);
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
        uint32_t first = t;
        do {
            const struct doing *d = &b->doing.data[t];
            struct tl_context c = b->contexts.data[d->states[d->depth - 1].context];
            int64_t node = node_with(b, t, TL_DEADLOCK, c.object, c.stack, next[t]);
            r = node < 0 ? (int)node : 0;
            t = next[t];
        } while (r == 0 && t != first);
    }
    free(next);
    free(seen);
    return r;
}

static int by_start(const void *a, const void *b)
{
    const struct tl_pause *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Pauses on the timeline's clock, in order and without overlap. */
static void pauses_settle(struct timeline_builder *b)
{
    struct tl_pause *p = b->pauses.data;
    size_t n = 0;
    if (b->pauses.len)
        qsort(p, b->pauses.len, sizeof(*p), by_start);
    for (size_t i = 0; i < b->pauses.len; i++) {
        struct tl_pause one = p[i];
        one.start_ns = one.start_ns > b->origin ? one.start_ns - b->origin : 0;
        one.end_ns = one.end_ns > b->origin ? one.end_ns - b->origin : 0;
        if (n && one.start_ns < p[n - 1].end_ns)
            one.start_ns = p[n - 1].end_ns;
        if (one.end_ns > one.start_ns)
            p[n++] = one;
    }
    b->pauses.len = n;
}

static int strings_settle(struct timeline_builder *b, struct timeline *t)
{
    size_t bytes = 0;
    for (size_t i = 0; i < b->strings.strings.len; i++)
        bytes += b->strings.strings.data[i].len + 1;
    uint32_t *offsets = malloc((b->strings.strings.len + 1) * sizeof(*offsets));
    char *text = malloc(bytes + 1);
    if (!offsets || !text || bytes >= TL_NONE) {
        free(offsets);
        free(text);
        return -ENOMEM;
    }
    size_t at = 0;
    for (size_t i = 0; i < b->strings.strings.len; i++) {
        struct str s = b->strings.strings.data[i];
        offsets[i] = (uint32_t)at;
        memcpy(text + at, s.data, s.len);
        text[at + s.len] = 0;
        at += s.len + 1;
    }
    t->strings = offsets;
    t->n_strings = b->strings.strings.len;
    t->text = text;
    t->n_text = at;
    return 0;
}

int timeline_finish(struct timeline_builder *b, uint64_t end_clock_ns, struct timeline **ret)
{
    uint32_t cycles = 0;
    uint64_t end = end_clock_ns > b->origin ? end_clock_ns - b->origin : 0;
    b->now = MAX(b->now, end);
    int r = find_deadlocks(b, &cycles);
    if (r < 0)
        return r;
    pauses_settle(b);
    _cleanup_(timeline_freep) struct timeline *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    r = strings_settle(b, t);
    if (r < 0)
        return r;
    for (size_t i = 0; i < b->threads.len; i++) {
        if (!b->doing.data[i].ended)
            b->threads.data[i].end_ns = b->now;
    }
    t->origin_ns = b->origin;
    t->start_epoch = b->epoch;
    t->end_ns = b->now;
    t->unbound = b->unbound;
    t->instrumented = TL_NONE;
    t->deadlocks = cycles;
#define GIVE_(name)            \
    t->name = b->name.data;    \
    t->n_##name = b->name.len; \
    b->name.data = NULL;       \
    b->name.len = b->name.cap = 0;
    GIVE_(nodes)
    GIVE_(contexts)
    GIVE_(threads)
    GIVE_(objects)
    GIVE_(stacks)
    GIVE_(frames)
    GIVE_(pauses)
#undef GIVE_
    *ret = TAKE(t);
    return 0;
}
