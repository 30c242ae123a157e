/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what threads did during a part of a request, and which threads kept them waiting. */
#include "analysis/request_ledger_private.h"

#include <string.h>

const char *frames_ref_method(const struct request_ledger *l, const struct frames_ref *f,
                              uint32_t i, uint32_t *ret_line)
{
    if (f->sampled) {
        const struct request_frame *frame = &l->r->frames.data[f->first + i];
        if (ret_line)
            *ret_line = frame->line;
        return requests_text(l->r, frame->method);
    }
    const struct tl_frame *frame = &l->t->frames[f->first + i];
    if (ret_line)
        *ret_line = frame->line;
    return tl_string(l->t, frame->method);
}

/*
 * Returns whether a frame belongs to the program rather than to the pool for whose connection it
 * waits.
 */
static bool is_program(const struct request_ledger *l, const struct frames_ref *f, uint32_t i)
{
    const char *method = frames_ref_method(l, f, i, NULL);
    enum frame_role role =
        f->sampled ? frame_role(method) : idle_role_of_frame(l->t, l->roles, f->first + i);
    return role == ROLE_PROGRAM && !(ledger_mark(method) & FRAME_POOL) &&
           strncmp(method, "com.zaxxer.hikari.", strlen("com.zaxxer.hikari.")) != 0;
}

const char *frames_ref_program(const struct request_ledger *l, const struct frames_ref *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (is_program(l, f, i))
            return frames_ref_method(l, f, i, NULL);
    return f->n ? frames_ref_method(l, f, 0, NULL) : NULL;
}

static struct frames_ref wait_frames(const struct request_ledger *l, uint32_t node)
{
    uint32_t stack = node == TL_NONE ? TL_NONE : tl_context_of(l->t, node)->stack;
    if (stack == TL_NONE)
        return (struct frames_ref){0};
    return (struct frames_ref){l->t->stacks[stack].first, l->t->stacks[stack].len, false};
}

/*
 * From when to when samples of a thread show what it did in a part of this time. lock: it holds a
 * lock; got: the node at which it got the lock after waiting for it, or TL_NONE.
 */
struct scope {
    uint64_t least, most;
    bool lock;
    uint32_t got;
};

/*
 * Adds the places of a run, dividing its time equally among its samples. Where in a run the thread
 * had no processor is unknown, so a part without a sample takes the nearest samples of the same
 * run, within the scope. If there are none, the frames that are on the stack at both ends count,
 * and for a lock those of the place where it was taken: the ends of a run may lie outside of the
 * section.
 */
static int add_activity_run(const struct request_ledger *l, const struct request_part *p,
                            const struct scope *scope, struct thread_activities *ret)
{
    const struct requests *r = l->r;
    size_t end, first = ledger_samples(l, p->thread, p->start, p->end, &end);
    if (end == first) {
        struct stretch s = ledger_before(l, p->thread, 0, p->end);
        uint64_t least = MIN(MAX(s.start, scope->least), p->start),
                 most = MAX(MIN(ledger_until(l, p->thread, p->end), scope->most), p->end);
        uint64_t ns = p->end - p->start, from, to;
        do {
            from = MAX(least, p->start - MIN(p->start, ns));
            to = MIN(most, p->end + ns);
            first = ledger_samples(l, p->thread, from, to, &end);
            ns *= 2;
        } while (end == first && ns && (from > least || to < most));
    }
    struct thread_activity activity = {.thread = p->thread, .kind = p->cause};
    int e = 0;
    for (size_t i = first; e == 0 && i < end; i++) {
        const struct request_stack *s = &r->stacks.data[r->samples.data[i].stack];
        activity.ns = (p->end - p->start) / (end - first);
        activity.frames = (struct frames_ref){s->first, s->len, true};
        e = vec_push(&ret->rows, activity);
    }
    if (e || end > first)
        return e;
    activity.ns = p->end - p->start;
    if (scope->lock) {
        activity.frames =
            wait_frames(l, scope->got == TL_NONE ? TL_NONE : graph_before(l->t, scope->got));
        return vec_push(&ret->rows, activity);
    }
    struct path_segment segment = {
        .start = p->start, .end = p->end, .thread = p->thread, .node = p->node, .state = PATH_RUN};
    struct path_frames frames =
        p->node == TL_NONE ? (struct path_frames){0, 0} : path_frames(l->t, l->roles, &segment);
    activity.frames = (struct frames_ref){frames.first, frames.n, false};
    return vec_push(&ret->rows, activity);
}

static int add_activity(const struct request_ledger *l, const struct request_part *p,
                        const struct scope *scope, struct thread_activities *ret)
{
    if (p->thread == TL_NONE)
        return 0;
    bool ran = p->node == TL_NONE || tl_node(l->t, p->node).kind == TL_RUN ||
               tl_node(l->t, p->node).time >= p->end;
    if (p->cause == CAUSE_CPU || p->cause == CAUSE_RUNNABLE || p->cause == CAUSE_THROTTLED ||
        p->cause == CAUSE_FAULT || p->cause == CAUSE_GC || p->cause == CAUSE_SAFEPOINT ||
        ((p->cause == CAUSE_CLASS_LOAD || p->cause == CAUSE_UNKNOWN) && ran))
        return add_activity_run(l, p, scope, ret);
    struct thread_activity activity = {.ns = p->end - p->start,
                                       .thread = p->thread,
                                       .kind = p->cause,
                                       .frames = wait_frames(l, p->node)};
    return vec_push(&ret->rows, activity);
}

int request_part_stacks(struct request_ledger *l, const struct request_part *p,
                        struct thread_activities *ret)
{
    bool own = p->cause == CAUSE_SAFEPOINT || (p->cause != CAUSE_QUEUE && !p->behind);
    struct scope scope = {.most = UINT64_MAX, .got = TL_NONE};
    if (p->work != REQUEST_NONE) {
        const struct request_work *w = &l->r->works.data[p->work];
        scope.least = ledger_since_origin(l, w->start_ns);
        scope.most = ledger_since_origin(l, w->end_ns);
    }
    return own ? add_activity(l, p, &scope, ret) : 0;
}

/*
 * Adds what a thread did from start to end, leaving out times when it had nothing to do. scope: how
 * far samples may lie outside of that time.
 */
static int add_span_in_scope(struct request_ledger *l, uint32_t thread, uint64_t start,
                             uint64_t end, const struct scope *scope, struct thread_activities *ret)
{
    struct request_parts *p = &l->scratch;
    int e = 0;
    if (thread == TL_NONE)
        return 0;
    vec_clear(&p->rows);
    while (e == 0 && end > start) {
        struct stretch s = ledger_before(l, thread, start, end);
        e = ledger_add_stretch(l, p, REQUEST_NONE, thread, &s);
        end = s.start;
    }
    for (size_t i = 0; e == 0 && i < p->rows.len; i++) {
        const struct request_part *part = &p->rows.data[i];
        bool waits = part->node != TL_NONE && ledger_is_blocked(tl_node(l->t, part->node).kind);
        if (!waits || !idle_is_idle_stack(l->t, l->roles, tl_context_of(l->t, part->node)->stack))
            e = add_activity(l, part, scope, ret);
    }
    return e;
}

/* Adds what a thread did from start to end, as far as samples before the end show it. */
static int add_span_of_thread(struct request_ledger *l, uint32_t thread, uint64_t start,
                              uint64_t end, struct thread_activities *ret)
{
    const struct scope scope = {.most = end, .got = TL_NONE};
    return add_span_in_scope(l, thread, start, end, &scope, ret);
}

/*
 * Adds what the owner of a lock did from start to end, which lie in the section in which it holds
 * the lock. got: the node at which it got the lock, or TL_NONE.
 */
static int add_span_of_owner(struct request_ledger *l, uint32_t owner, uint64_t start, uint64_t end,
                             uint32_t got, struct thread_activities *ret)
{
    bool its = got != TL_NONE && tl_node(l->t, got).thread == owner;
    const struct scope scope = {start, end, true, its ? got : TL_NONE};
    return add_span_in_scope(l, owner, start, end, &scope, ret);
}

/* Returns the thread that ended a wait, or TL_NONE. */
static uint32_t waker_of(const struct timeline *t, uint32_t ends)
{
    const struct tl_node at = ends == TL_NONE ? (struct tl_node){0} : tl_node(t, ends);
    return ends != TL_NONE && graph_caused(&at, ends) ? tl_node(t, at.waker).thread : TL_NONE;
}

/*
 * Adds the owners of a lock while a part waited for it. Each node that ended another thread's wait
 * for the lock makes that thread the owner. Before the first of these nodes the owner is the one
 * seen at the beginning of the wait.
 */
static int add_owners(struct request_ledger *l, const struct request_part *p, uint32_t object,
                      struct thread_activities *ret)
{
    const struct timeline *t = l->t;
    uint32_t owner = tl_context_of(t, p->node)->other;
    uint32_t low = l->object_first[object], high = l->object_first[object + 1];
    uint32_t last = high;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (tl_node(t, l->taken[mid]).time <= p->start)
            low = mid + 1;
        else
            high = mid;
    }
    uint64_t at = p->start;
    uint32_t got = low > l->object_first[object] ? l->taken[low - 1] : TL_NONE;
    int e = 0;
    for (; e == 0 && low < last && tl_node(t, l->taken[low]).time < p->end; low++) {
        const struct tl_node n = tl_node(t, l->taken[low]);
        if (n.thread == p->thread)
            continue;
        uint32_t holder = owner != TL_NONE ? owner : waker_of(t, l->taken[low]);
        e = add_span_of_owner(l, holder, at, n.time, got, ret);
        owner = n.thread;
        got = l->taken[low];
        at = n.time;
    }
    if (owner == TL_NONE)
        owner = waker_of(t, p->ends);
    return e ? e : owner == p->thread ? 0 : add_span_of_owner(l, owner, at, p->end, got, ret);
}

int request_part_culprits(struct request_ledger *l, const struct request_part *p,
                          struct thread_activities *ret)
{
    const struct timeline *t = l->t;
    if (p->behind)
        return add_span_of_thread(l, p->behind - 1, p->start, p->end, ret);
    switch (p->cause) {
    case CAUSE_QUEUE:
        return add_span_of_thread(l, p->thread, p->start, p->end, ret);
    case CAUSE_LOCK:
    case CAUSE_PARK:
    case CAUSE_POOL:
    case CAUSE_CLASS_LOAD:
        break;
    default:
        return 0;
    }
    if (p->node == TL_NONE || !ledger_is_blocked(tl_node(t, p->node).kind))
        return 0;
    enum tl_kind kind = tl_node(t, p->node).kind;
    uint32_t object = tl_context_of(t, p->node)->object;
    bool lock = kind == TL_WAIT_LOCK || kind == TL_REACQUIRE || kind == TL_DEADLOCK ||
                (object != TL_NONE && t->objects[object].flags & TL_OBJECT_LOCK);
    if (lock && object != TL_NONE)
        return add_owners(l, p, object, ret);
    uint32_t waker = waker_of(t, p->ends);
    return waker == p->thread ? 0 : add_span_of_thread(l, waker, p->start, p->end, ret);
}
