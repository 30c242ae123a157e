/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/possible.h"

#include "base/vec.h"
#include "timeline/idle.h"

#include <errno.h>
#include <stdlib.h>

enum { COUNT_NODES = 1 << 22 };

static bool waits_for_lock(const struct tl_node *at)
{
    return at->kind == TL_WAIT_LOCK || at->kind == TL_PARK || at->kind == TL_WAIT_OBJECT ||
           at->kind == TL_REACQUIRE || at->kind == TL_DEADLOCK;
}

static uint32_t class_wanted(const struct timeline *t, const struct scaled *what,
                             const struct tl_node *at)
{
    uint32_t object = t->contexts[at->context].object;
    if (object == TL_NONE || object >= t->n_objects || !what->objects[object])
        return TL_NONE;
    uint32_t class = t->objects[object].class;
    return class < t->n_strings ? class : TL_NONE;
}

/* Marks, by string, the classes of wanted locks that were seen to be taken when they were free. */
static void find_recorded(const struct timeline *t, const struct scaled *what, uint8_t *recorded)
{
    struct tl_reader nodes = {.t = t};
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node *at = tl_read(&nodes, (uint32_t)i);
        uint32_t class = at->kind == TL_ACQUIRE ? class_wanted(t, what, at) : TL_NONE;
        if (class != TL_NONE)
            recorded[class] = 1;
    }
}

/* Marks, by string, the methods that wait for wanted locks of other classes. */
static bool find_takers(const struct timeline *t, const struct scaled *what,
                        const uint8_t *recorded, const uint8_t *kinds, uint8_t *takers)
{
    struct tl_reader nodes = {.t = t};
    bool any = false;
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node *at = tl_read(&nodes, (uint32_t)i);
        uint32_t class = waits_for_lock(at) ? class_wanted(t, what, at) : TL_NONE;
        if (class == TL_NONE || recorded[class])
            continue;
        uint32_t frame = idle_waiting_frame(t, kinds, t->contexts[at->context].stack);
        if (frame == TL_NONE)
            continue;
        takers[t->frames[frame].method] = 1;
        any = true;
    }
    return any;
}

static void mark_stacks(const struct timeline *t, const uint8_t *takers, uint8_t *stacks)
{
    for (size_t i = 0; i < t->n_stacks; i++) {
        for (uint32_t k = 0; k < t->stacks[i].len && !stacks[i]; k++)
            stacks[i] = takers[t->frames[t->stacks[i].first + k].method];
    }
}

int possible_sections(const struct timeline *t, const struct scaled *what, struct scaled *ret,
                      bool *ret_more)
{
    struct scaled s = {.objects = what->objects, .list = what->list, .wide = true};
    *ret_more = false;
    *ret = s;
    if (!what->objects)
        return 0;
    uint8_t *recorded = calloc(t->n_strings + 1, 1), *takers = calloc(t->n_strings + 1, 1),
            *kinds = idle_frame_roles(t);
    s.stacks = calloc(t->n_stacks + 1, 1);
    int r = recorded && takers && kinds && s.stacks ? 0 : -ENOMEM;
    if (r == 0) {
        find_recorded(t, what, recorded);
        *ret_more = find_takers(t, what, recorded, kinds, takers);
        mark_stacks(t, takers, s.stacks);
        *ret = s;
    } else {
        free(s.stacks);
    }
    free(recorded);
    free(takers);
    free(kinds);
    return r;
}

void possible_release(struct scaled *s)
{
    free(s->stacks);
    *s = (struct scaled){0};
}

struct stretch {
    uint64_t start, end;
};

struct stretches {
    VEC(struct stretch) list;
};

struct alone {
    struct replay replay; /* only to determine what is inside */
    const struct timeline *t;
    uint8_t *kinds;
    struct graph_seen *seen; /* per thread */
    enum hold_ends ends;
    uint64_t from, to;
    struct stretches inside, other;
    uint64_t left; /* the end of the part of the current stretch that has not been divided */
    int result;
};

static void put(struct alone *a, struct stretches *to, uint64_t start, uint64_t end)
{
    struct stretch s = {MAX(start, a->from), MIN(end, a->to)};
    if (a->result == 0 && s.start < s.end)
        a->result = vec_push(&to->list, s);
}

/* Called for the parts that are inside, the last one first. */
static void divide(void *arg, uint64_t start, uint64_t end)
{
    struct alone *a = arg;
    put(a, &a->inside, start, end);
    put(a, &a->other, end, a->left);
    a->left = start;
}

/* Adds what a thread does by itself before node n, since a time. */
static void add_own(struct alone *a, const struct tl_node *at, uint32_t n, uint64_t since)
{
    if (replay_method_inside(&a->replay, at, n)) {
        put(a, &a->inside, since, at->time);
        return;
    }
    a->left = at->time;
    if (a->replay.what->objects)
        sections_parts(&a->replay.sections, at->thread, since, at->time, a->ends, divide, a);
    put(a, &a->other, since, a->left);
}

static bool takes_part(const struct alone *a, uint32_t thread)
{
    return !(a->t->threads[thread].flags & (TL_THREAD_SYSTEM | TL_THREAD_LEFT_OUT));
}

/* Returns whether the state in which a thread is after a node is a wait for something to do. */
static bool is_idle(struct alone *a, uint32_t n)
{
    uint32_t state = graph_state_seen(a->t, n, &a->seen[tl_node(a->t, n).thread]);
    return tl_node(a->t, state).flags & TL_BLOCKED &&
           idle_is_idle_stack(a->t, a->kinds, tl_context_of(a->t, state)->stack);
}

static void add_node(struct alone *a, const struct tl_node *at, uint32_t n)
{
    uint64_t cause;
    if (at->prev >= n || !takes_part(a, at->thread))
        return;
    uint64_t since = tl_node(a->t, at->prev).time;
    if (!graph_caused(at, n)) {
        if (!is_idle(a, at->prev))
            add_own(a, at, n, since);
        return;
    }
    /* Until its cause a wait is nothing that the thread does; waking up is. */
    put(a, &a->other, graph_woken_at(a->t, at, n, &cause) ? MAX(since, cause) : since, at->time);
}

/* Adds what threads did at the end of the recording. */
static void add_lasts(struct alone *a)
{
    for (uint32_t i = 0; i < a->t->n_threads; i++) {
        uint32_t last = a->t->threads[i].last;
        if (last == TL_NONE || !takes_part(a, i) || is_idle(a, last))
            continue;
        enum tl_kind kind = tl_node(a->t, graph_state_seen(a->t, last, &a->seen[i])).kind;
        if (kind == TL_RUN || kind == TL_SLEEP || kind == TL_PREEMPTED || kind == TL_IO)
            put(a, &a->other, tl_node(a->t, last).time, a->to);
    }
}

static int by_start(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/*
 * Returns how long at least one stretch of two lists lasts. Both are in the order of their begins;
 * one of them may be empty.
 */
static uint64_t length(const struct stretches *a, const struct stretches *b)
{
    uint64_t sum = 0, until = 0;
    for (size_t i = 0, k = 0; i < a->list.len || k < b->list.len;) {
        bool first =
            k == b->list.len || (i < a->list.len && a->list.data[i].start <= b->list.data[k].start);
        const struct stretch *at = first ? &a->list.data[i++] : &b->list.data[k++];
        uint64_t start = MAX(at->start, until);
        sum += at->end > start ? at->end - start : 0;
        until = MAX(until, at->end);
    }
    return sum;
}

bool possible_counts(const struct timeline *t)
{
    return t->n_nodes <= COUNT_NODES;
}

int possible_alone(const struct timeline *t, const struct scaled *what, enum hold_ends ends,
                   uint64_t from, uint64_t to, uint64_t *ret_inside, uint64_t *ret_alone)
{
    struct alone a = {.t = t,
                      .kinds = idle_frame_roles(t),
                      .seen = calloc(t->n_threads + 1, sizeof(*a.seen)),
                      .ends = ends,
                      .from = from,
                      .to = to};
    struct tl_reader nodes = {.t = t};
    a.result = a.kinds && a.seen ? replay_init(&a.replay, t, what, 1, ends) : -ENOMEM;
    for (size_t i = 0; a.result == 0 && i < t->n_nodes; i++)
        add_node(&a, tl_read(&nodes, (uint32_t)i), (uint32_t)i);
    if (a.result == 0)
        add_lasts(&a);
    if (a.result == 0 && a.replay.sections.failed)
        a.result = -ENOMEM;
    if (a.result == 0) {
        const struct stretches none = {0};
        vec_sort(&a.inside.list, by_start);
        vec_sort(&a.other.list, by_start);
        *ret_inside = length(&a.inside, &none);
        *ret_alone = length(&a.inside, &a.other) - length(&a.other, &none);
    }
    replay_release(&a.replay);
    vec_release(&a.inside.list);
    vec_release(&a.other.list);
    free(a.kinds);
    free(a.seen);
    return a.result;
}
