/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/private.h"

#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>

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
    timeline_nodes_release(b);
    vec_release(&b->contexts);
    vec_release(&b->threads);
    vec_release(&b->objects);
    vec_release(&b->stacks);
    vec_release(&b->stacks_in_wait);
    vec_release(&b->frames);
    vec_release(&b->pauses);
    vec_release(&b->delays);
    vec_release(&b->throttled);
    vec_release(&b->activity);
    vec_release(&b->monitors);
    strpool_release(&b->strings);
    map_release(&b->thread_ids);
    map_release(&b->object_ids);
    map_release(&b->stack_ids);
    free(b->context_index);
    if (b->shared)
        pthread_mutex_destroy(&b->moving);
    free(b);
}

void timeline_share(struct timeline_builder *b)
{
    pthread_mutex_init(&b->moving, NULL);
    b->shared = true;
}

void timeline_lock(struct timeline_builder *b)
{
    if (b->shared)
        pthread_mutex_lock(&b->moving);
}

void timeline_unlock(struct timeline_builder *b)
{
    if (b->shared)
        pthread_mutex_unlock(&b->moving);
}

/*
 * Makes room for n more elements at the end of a table. The table may move, but only while no other
 * thread reads it.
 */
#define room_for(b, v, n)                               \
    __extension__({                                     \
        int room_r_ = 0;                                \
        if ((v)->len + (n) > (v)->cap) {                \
            timeline_lock(b);                           \
            room_r_ = vec_reserve((v), (v)->len + (n)); \
            timeline_unlock(b);                         \
        }                                               \
        room_r_;                                        \
    })
#define room(b, v) room_for(b, v, 1)

const char *timeline_text(const struct timeline_builder *b, uint32_t string)
{
    return b->strings.strings.data[string].data;
}

int64_t timeline_string(struct timeline_builder *b, const char *text, size_t len)
{
    int r = room(b, &b->strings.strings);
    return r < 0 ? r : strpool_add(&b->strings, text, len);
}

int64_t timeline_thread(struct timeline_builder *b, uint64_t id)
{
    bool added;
    uint64_t *slot = map_at(&b->thread_ids, id, b->threads.len, &added);
    if (!slot)
        return -ENOMEM;
    if (!added)
        return (int64_t)*slot;
    int r = room(b, &b->activity);
    if (r == 0)
        r = room(b, &b->threads);
    if (r == 0)
        r = vec_extend(&b->activity, 1);
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
    b->activity.data[b->threads.len - 1] = (struct activity){.blocked_since = TL_NONE,
                                                             .pending_unpark = TL_NONE,
                                                             .pending_interrupt = TL_NONE,
                                                             .notified = TL_NONE,
                                                             .handed = TL_NONE,
                                                             .starter = TL_NONE,
                                                             .last_unparked = TL_NONE,
                                                             .carried = TL_NONE,
                                                             .freed = TL_NONE,
                                                             .wait_next = TL_NONE,
                                                             .wait_object = TL_NONE,
                                                             .gave_up_on = TL_NONE};
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

/*
 * Recognizes the synchronizers of java.util.concurrent that one thread owns at a time and hands
 * over by unpark.
 */
static bool is_exclusive_lock(struct str class)
{
    return strstr(class.data, "ReentrantLock$") && str_ends_in(class, "Sync");
}

int64_t timeline_object(struct timeline_builder *b, uint64_t id, uint32_t class)
{
    bool added;
    uint64_t *slot = map_at(&b->object_ids, hash_u64(id) ^ class, b->objects.len, &added);
    if (!slot)
        return -ENOMEM;
    if (!added)
        return (int64_t)*slot;
    int r = room(b, &b->monitors);
    if (r == 0)
        r = room(b, &b->objects);
    if (r == 0)
        r = vec_extend(&b->monitors, 1);
    if (r == 0)
        r = vec_extend(&b->objects, 1);
    if (r < 0)
        return r;
    bool lock = is_exclusive_lock(strpool_get(&b->strings, class));
    b->objects.data[b->objects.len - 1] = (struct tl_object){.id = id,
                                                             .class = class,
                                                             .thread = TL_NONE,
                                                             .flags = lock ? TL_OBJECT_LOCK : 0,
                                                             .label = TL_NONE};
    b->monitors.data[b->objects.len - 1] = (struct monitor){.owner = TL_NONE,
                                                            .release = TL_NONE,
                                                            .wait_head = TL_NONE,
                                                            .wait_tail = TL_NONE,
                                                            .unbound = TL_NONE,
                                                            .got = TL_NONE,
                                                            .parked = TL_NONE};
    return (int64_t)b->objects.len - 1;
}

static bool is_in_wait(const struct timeline_builder *b, const struct tl_frame *frames, size_t n)
{
    const char *top = n ? timeline_text(b, frames[0].method) : "";
    return strcmp(top, "java.lang.Object.wait0") == 0 || strcmp(top, "java.lang.Object.wait") == 0;
}

int64_t timeline_stack(struct timeline_builder *b, const struct tl_frame *frames, size_t n)
{
    /*
     * A collision of 64-bit hashes would show a wrong stack; with a million stacks the probability
     * is one in 10^7.
     */
    uint64_t hash = hash_bytes(frames, n * sizeof(*frames));
    bool added;
    uint64_t *slot = map_at(&b->stack_ids, hash, b->stacks.len, &added);
    if (!slot)
        return -ENOMEM;
    if (!added)
        return (int64_t)*slot;
    int r = room_for(b, &b->frames, n);
    if (r == 0)
        r = room(b, &b->stacks);
    if (r == 0)
        r = room(b, &b->stacks_in_wait);
    if (r == 0)
        r = vec_push(&b->stacks_in_wait, is_in_wait(b, frames, n));
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

int timeline_delay(struct timeline_builder *b, uint32_t thread, uint64_t start_ns, uint64_t end_ns,
                   uint64_t ns, bool fault)
{
    return vec_push(&b->delays, ((struct tl_delay){.start_ns = start_ns,
                                                   .end_ns = end_ns,
                                                   .ns = fault ? 0 : ns,
                                                   .fault_ns = fault ? ns : 0,
                                                   .thread = thread}));
}

int timeline_throttled(struct timeline_builder *b, uint64_t time_ns, uint64_t total_ns)
{
    return vec_push(&b->throttled, ((struct throttled){time_ns, total_ns}));
}

void timeline_part_of(struct timeline_builder *b, unsigned part_of)
{
    b->part_of = part_of;
}

void timeline_origin(struct timeline_builder *b, uint64_t clock_ns, uint64_t epoch_ns)
{
    b->origin = clock_ns;
    b->epoch = epoch_ns;
    b->started = true;
}

static uint32_t context_hash(const struct tl_context *c)
{
    uint64_t a = (uint64_t)c->object << 32 | c->stack, b = (uint64_t)c->other << 32 | c->timeout_ms;
    return (uint32_t)hash_u64(a * UINT64_C(0x9e3779b97f4a7c15) ^ b);
}

/* Returns the context that adding an event will most likely need. */
static struct tl_context likely_context(const struct tl_event *e)
{
    if (e->kind == TLE_CONTENDED_ENTERED) /* a hand-over to it */
        return (struct tl_context){e->object, TL_NONE, e->thread, 0};
    return (struct tl_context){e->object, e->stack, e->other,
                               e->kind == TLE_UNPARK ? 0 : e->timeout_ms};
}

void timeline_prefetch(struct timeline_builder *b, const struct tl_event *events, size_t i,
                       size_t n)
{
    uint32_t *now = &b->prefetched[i % PREFETCH],
             *next = &b->prefetched[(i + PREFETCH / 2) % PREFETCH];
    if (b->context_cap == 0)
        return;
    b->likely = *now;
    if (i + PREFETCH < n) {
        struct tl_context c = likely_context(&events[i + PREFETCH]);
        *now = context_hash(&c) & (uint32_t)(b->context_cap - 1);
        __builtin_prefetch(&b->context_index[*now]);
    }
    /* the first entries may come from earlier events, so this is only a guess */
    if (*next < b->context_cap) {
        *next = b->context_index[*next] - 1;
        __builtin_prefetch(&b->contexts.data[*next == TL_NONE ? 0 : *next]);
    }
}

static int contexts_grow(struct timeline_builder *b)
{
    size_t cap = b->context_cap ? b->context_cap * 2 : 1024;
    uint32_t *index = calloc(cap, sizeof(*index));
    if (!index)
        return -ENOMEM;
    for (size_t i = 0; i < b->contexts.len; i++) {
        size_t at = context_hash(&b->contexts.data[i]) & (cap - 1);
        while (index[at])
            at = (at + 1) & (cap - 1);
        index[at] = (uint32_t)i + 1;
    }
    free(b->context_index);
    b->context_index = index;
    b->context_cap = cap;
    return 0;
}

static int64_t context_of(struct timeline_builder *b, uint32_t object, uint32_t stack,
                          uint32_t other, uint32_t timeout_ms)
{
    struct tl_context c = {object, stack, other, timeout_ms};
    /* true for half of all events */
    bool none = (object & stack & other) == TL_NONE && timeout_ms == 0;
    if (none && b->no_context)
        return b->no_context - 1;
    if (b->likely < b->contexts.len && memcmp(&b->contexts.data[b->likely], &c, sizeof(c)) == 0)
        return b->likely;
    if (b->contexts.len * 4 >= b->context_cap && contexts_grow(b) < 0)
        return -ENOMEM;
    size_t at = context_hash(&c) & (b->context_cap - 1);
    for (; b->context_index[at]; at = (at + 1) & (b->context_cap - 1)) {
        if (memcmp(&b->contexts.data[b->context_index[at] - 1], &c, sizeof(c)) == 0)
            return b->context_index[at] - 1;
    }
    if (vec_push(&b->contexts, c) < 0)
        return -ENOMEM;
    b->context_index[at] = (uint32_t)b->contexts.len;
    if (none)
        b->no_context = (uint32_t)b->contexts.len;
    return (int64_t)b->contexts.len - 1;
}

int timeline_nodes_in(struct timeline_builder *b, const char *path)
{
    int r = b->window ? 0 : timeline_nodes_room(b);
    if (r == 0 && !(b->packer.path = strdup(path)))
        r = -ENOMEM;
    return r;
}

int64_t timeline_node_add(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                          uint32_t context)
{
    if (b->n_nodes >= TL_NONE)
        return -E2BIG;
    bool full = !b->window || b->n_nodes - b->packed >= WINDOW;
    if (unlikely(full) && timeline_nodes_room(b) < 0)
        return -ENOMEM;
    struct tl_thread *t = &b->threads.data[thread];
    bool blocked = tl_is_state(kind) && kind != TL_RUN && kind != TL_DEAD && kind != TL_UNKNOWN;
    uint32_t flags = blocked ? TL_BLOCKED : 0;
    if (!tl_is_state(kind) && t->last != TL_NONE)
        flags = timeline_node(b, t->last).flags & TL_BLOCKED;
    uint32_t number = (uint32_t)b->n_nodes++;
    b->window[number % WINDOW] = (struct tl_node){.time = b->now,
                                                  .kind = (uint8_t)kind,
                                                  .edge = TL_NO_EDGE,
                                                  .flags = (uint8_t)flags,
                                                  .prev = t->last,
                                                  .waker = TL_NONE,
                                                  .thread = thread,
                                                  .context = context};
    if (t->first == TL_NONE) {
        t->first = number;
        t->start_ns = b->now;
    }
    t->last = number;
    t->nodes++;
    return number;
}

int64_t timeline_node_with(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                           uint32_t object, uint32_t stack, uint32_t other)
{
    int64_t context = context_of(b, object, stack, other, 0);
    return context < 0 ? context : timeline_node_add(b, thread, kind, (uint32_t)context);
}

int64_t timeline_node_of(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind)
{
    int64_t context = context_of(b, e->object, e->stack, e->other, e->timeout_ms);
    return context < 0 ? context : timeline_node_add(b, e->thread, kind, (uint32_t)context);
}

int timeline_node_other(struct timeline_builder *b, uint32_t n, uint32_t other)
{
    const struct tl_context c = b->contexts.data[timeline_node(b, n).context];
    if (c.other != TL_NONE)
        return 0;
    int64_t context = context_of(b, c.object, c.stack, other, c.timeout_ms);
    if (context >= 0)
        timeline_node_edit(b, n)->context = (uint32_t)context;
    return context < 0 ? (int)context : 0;
}

/* An interaction refers back to the first node that it caused. */
void timeline_bind(struct timeline_builder *b, uint32_t n, enum tl_edge edge, uint32_t waker,
                   bool inferred)
{
    struct tl_node *node = timeline_node_edit(b, n);
    node->edge = (uint8_t)edge;
    node->waker = waker;
    if (inferred)
        node->flags |= TL_INFERRED;
    if (waker == TL_NONE)
        return;
    const struct tl_node w = timeline_node(b, waker);
    if (!tl_is_state(w.kind) && w.waker == TL_NONE)
        timeline_node_edit(b, waker)->waker = n;
}

/*
 * If the thread released the lock before the receiver began to wait, it was not the owner: the
 * record of owners was stale, and the cause is unknown.
 */
void timeline_bind_release(struct timeline_builder *b, uint32_t n, enum tl_edge edge,
                           uint32_t release, bool inferred)
{
    uint32_t p = timeline_node(b, n).prev;
    while (p != TL_NONE && timeline_node(b, p).flags & TL_BLOCKED &&
           timeline_node(b, p).prev != TL_NONE &&
           timeline_node(b, timeline_node(b, p).prev).flags & TL_BLOCKED)
        p = timeline_node(b, p).prev;
    if (p != TL_NONE && timeline_node(b, release).time < timeline_node(b, p).time)
        b->unbound++;
    else
        timeline_bind(b, n, edge, release, inferred);
}

void timeline_started_by(struct timeline_builder *b, uint32_t n, uint32_t starter, bool inferred)
{
    struct tl_thread *t = &b->threads.data[timeline_node(b, n).thread];
    timeline_bind(b, n, TL_BY_START, starter, inferred);
    if (t->parent == TL_NONE)
        t->parent = timeline_node(b, starter).thread;
}

/*
 * The thread may be new: another thread that waited for a lock named it as the owner before the
 * thread's own first event.
 */
int timeline_thread_seen(struct timeline_builder *b, uint32_t thread)
{
    if (b->threads.data[thread].first != TL_NONE)
        return 0;
    bool left_out = b->part_of & TL_PART_OF_THREADS && thread != b->acting;
    b->activity.data[thread].left_out = left_out;
    int64_t n =
        timeline_node_with(b, thread, left_out ? TL_UNKNOWN : TL_RUN, TL_NONE, TL_NONE, TL_NONE);
    if (n < 0)
        return (int)n;
    if (b->activity.data[thread].starter == TL_NONE)
        timeline_node_edit(b, (uint32_t)n)->flags |= TL_FIRST;
    else
        timeline_started_by(b, (uint32_t)n, b->activity.data[thread].starter, false);
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct tl_pause *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Converts pauses to the timeline's clock, sorts them, and removes overlaps. */
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

static int by_thread(const void *a, const void *b)
{
    const struct tl_delay *x = a, *y = b;
    return x->thread != y->thread ? (x->thread > y->thread) - (x->thread < y->thread)
                                  : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* If readings are further apart, they do not show when it was; the JDK takes one in 30 s. */
#define THROTTLED_GAP (5 * NS_PER_SECOND)

static int by_time(const void *a, const void *b)
{
    const struct throttled *x = a, *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Returns the first reading after a time. */
static size_t reading_after(const struct timeline_builder *b, uint64_t time_ns)
{
    size_t low = 0, high = b->throttled.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (b->throttled.data[mid].time_ns <= time_ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/*
 * Returns how much of a delay the container's quota explains. When the container was out of CPU
 * between two readings is unknown, and the kernel adds up the processors, so this is an upper
 * limit.
 */
static uint32_t throttled_of(const struct timeline_builder *b, const struct tl_delay *d)
{
    uint64_t ns = 0;
    for (size_t i = MAX(reading_after(b, d->start_ns), (size_t)1); i < b->throttled.len; i++) {
        const struct throttled *from = &b->throttled.data[i - 1], *to = from + 1;
        if (from->time_ns >= d->end_ns)
            break;
        if (to->total_ns > from->total_ns && to->time_ns - from->time_ns <= THROTTLED_GAP)
            ns += MIN(to->total_ns - from->total_ns,
                      MIN(to->time_ns, d->end_ns) - MAX(from->time_ns, d->start_ns));
    }
    return (uint32_t)MIN(MIN(ns, d->ns) / 1000, (uint64_t)UINT32_MAX);
}

/*
 * A thread that waited for pages did not run in the collector's pauses either: these do not count
 * as such a wait.
 */
static void leave_pauses_out(const struct timeline_builder *b, struct tl_delay *d)
{
    size_t low = 0;
    size_t high = d->fault_ns ? b->pauses.len : 0;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (b->pauses.data[mid].end_ns <= d->start_ns)
            low = mid + 1;
        else
            high = mid;
    }
    for (; d->fault_ns && low < b->pauses.len && b->pauses.data[low].start_ns < d->end_ns; low++) {
        const struct tl_pause *p = &b->pauses.data[low];
        uint64_t from = MAX(p->start_ns, d->start_ns), to = MIN(p->end_ns, d->end_ns);
        d->fault_ns -= MIN(to - from, d->fault_ns);
    }
}

/* What is known of the same time of a thread becomes one. */
static void join_delays(struct timeline_builder *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->delays.len; i++) {
        const struct tl_delay one = b->delays.data[i];
        struct tl_delay *last = n ? &b->delays.data[n - 1] : NULL;
        if (last && last->thread == one.thread && last->start_ns == one.start_ns &&
            last->end_ns == one.end_ns) {
            last->ns += one.ns;
            last->fault_ns += one.fault_ns;
            last->throttled_us += one.throttled_us;
        } else
            b->delays.data[n++] = one;
    }
    b->delays.len = n;
}

/*
 * Converts delays to the timeline's clock, finds what throttling explains of each, and sorts them
 * by thread. Pauses are settled.
 */
static void delays_settle(struct timeline_builder *b)
{
    size_t n = 0;
    vec_sort(&b->throttled, by_time);
    for (size_t i = 0; i < b->delays.len; i++) {
        struct tl_delay one = b->delays.data[i];
        one.throttled_us = throttled_of(b, &one);
        one.start_ns = one.start_ns > b->origin ? one.start_ns - b->origin : 0;
        one.end_ns = one.end_ns > b->origin ? one.end_ns - b->origin : 0;
        leave_pauses_out(b, &one);
        if (one.end_ns > one.start_ns)
            b->delays.data[n++] = one;
    }
    b->delays.len = n;
    if (n)
        qsort(b->delays.data, n, sizeof(*b->delays.data), by_thread);
    join_delays(b);
}

/* Marks the threads that the part lacks, and what is unknown of the others. */
static void part_settle(struct timeline_builder *b, struct timeline *t)
{
    t->part_of = b->part_of;
    for (size_t i = 0; b->part_of & TL_PART_OF_THREADS && i < b->threads.len; i++)
        if (b->activity.data[i].left_out || b->threads.data[i].first == TL_NONE)
            b->threads.data[i].flags |= TL_THREAD_LEFT_OUT;
    uint16_t *shapes = (uint16_t *)t->shapes;
    for (size_t i = 0; b->part_of & TL_PART_OF_CLASSES && i < t->n_shapes; i++)
        if ((shapes[i] & 0xff) == TL_RUN)
            shapes[i] = (uint16_t)(shapes[i] | TL_UNKNOWN);
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
    uint32_t cycles = 0, unknown = 0;
    uint64_t end = end_clock_ns > b->origin ? end_clock_ns - b->origin : 0;
    if (end > TL_TIME_LAST)
        return -EOVERFLOW;
    b->now = MAX(b->now, end);
    int r = timeline_find_deadlocks(b, &cycles, &unknown);
    if (r < 0)
        return r;
    pauses_settle(b);
    delays_settle(b);
    _cleanup_(timeline_freep) struct timeline *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    r = strings_settle(b, t);
    if (r == 0)
        r = timeline_nodes_pack(b);
    if (r == 0)
        r = tl_packer_finish(&b->packer, t);
    if (r < 0)
        return r;
    for (size_t i = 0; i < b->threads.len; i++) {
        if (!b->activity.data[i].ended)
            b->threads.data[i].end_ns = b->now;
    }
    part_settle(b, t);
    t->origin_ns = b->origin;
    t->start_epoch = b->epoch;
    t->end_ns = b->now;
    t->unbound = b->unbound;
    t->instrumented = TL_NONE;
    t->deadlocks = cycles;
    t->owners_unknown = unknown;
#define GIVE_(name)            \
    t->name = b->name.data;    \
    t->n_##name = b->name.len; \
    b->name.data = NULL;       \
    b->name.len = b->name.cap = 0;
    GIVE_(contexts)
    GIVE_(threads)
    GIVE_(objects)
    GIVE_(stacks)
    GIVE_(frames)
    GIVE_(pauses)
    GIVE_(delays)
#undef GIVE_
    *ret = TAKE(t);
    return 0;
}
