/* SPDX-License-Identifier: Apache-2.0 */
/* Divides what a thread did during an interval of time into parts of a request's latency. */
#include "analysis/request_ledger_private.h"

#include <errno.h>
#include <string.h>

/*
 * If a recording has samples, and a run lasts this many sampling intervals without one, the thread
 * was not running: it waited in a way that leaves no event.
 */
#define UNSEEN_INTERVALS 3
#define INTERVAL_NS      UINT64_C(20000000) /* used when the interval is unknown or shorter */

/* Returns how many of the thread's nodes come before a time. */
static uint32_t nodes_before(const struct request_ledger *l, uint32_t thread, uint64_t time)
{
    uint32_t low = l->first[thread], high = l->first[thread + 1];
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (tl_node(l->t, l->nodes[mid]).time < time)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct stretch ledger_before(const struct request_ledger *l, uint32_t thread, uint64_t floor,
                             uint64_t at)
{
    uint32_t i = nodes_before(l, thread, at), last = l->first[thread + 1];
    struct stretch s = {floor, at, TL_NONE, TL_NONE};
    if (i < last && tl_node(l->t, l->nodes[i]).time == at)
        s.ends = l->nodes[i];
    while (i > l->first[thread]) {
        uint32_t n = l->nodes[i - 1];
        if (tl_is_state(tl_node(l->t, n).kind)) {
            s.state = n;
            s.start = MAX((uint64_t)tl_node(l->t, n).time, floor);
            break;
        }
        i--;
    }
    return s;
}

uint64_t ledger_until(const struct request_ledger *l, uint32_t thread, uint64_t at)
{
    for (uint32_t i = nodes_before(l, thread, at); i < l->first[thread + 1]; i++)
        if (tl_is_state(tl_node(l->t, l->nodes[i]).kind))
            return tl_node(l->t, l->nodes[i]).time;
    return l->t->end_ns;
}

bool ledger_is_blocked(enum tl_kind kind)
{
    switch (kind) {
    case TL_WAIT_OBJECT:
    case TL_WAIT_LOCK:
    case TL_WAIT_JOIN:
    case TL_DEADLOCK:
    case TL_REACQUIRE:
    case TL_PARK:
        return true;
    default:
        return false;
    }
}

static enum request_cause wait_cause(const struct request_ledger *l, uint32_t state)
{
    enum tl_kind kind = tl_node(l->t, state).kind;
    switch (kind) {
    case TL_RUN:
        return CAUSE_CPU;
    case TL_SLEEP:
        return ledger_stack_marks(l, state) & FRAME_CLASS_LOAD ? CAUSE_CLASS_LOAD : CAUSE_SLEEP;
    case TL_IO:
        return ledger_stack_marks(l, state) & FRAME_CLASS_LOAD ? CAUSE_CLASS_LOAD : CAUSE_IO;
    case TL_PREEMPTED:
    case TL_UNMOUNTED:
        return CAUSE_RUNNABLE;
    case TL_CLASS_INIT:
        return CAUSE_CLASS_LOAD;
    case TL_DEAD:
    case TL_UNKNOWN:
        return CAUSE_UNKNOWN;
    default:
        break;
    }
    if (!ledger_is_blocked(kind))
        return CAUSE_UNKNOWN;
    uint8_t marks = ledger_stack_marks(l, state);
    if (marks & FRAME_POOL)
        return CAUSE_POOL;
    if (marks & FRAME_CLASS_LOAD)
        return CAUSE_CLASS_LOAD;
    if (marks & FRAME_IO)
        return CAUSE_IO;
    return kind == TL_PARK ? CAUSE_PARK : CAUSE_LOCK;
}

/* Returns the peer or file of a read or write that began at a node. */
static const char *io_peer(const struct request_ledger *l, uint32_t state)
{
    const struct tl_node n = tl_node(l->t, state);
    uint64_t id = l->t->threads[n.thread].id;
    int64_t start = ledger_since_epoch(l, n.time);
    for (size_t i = requests_span_at(l->r, id, start); i < l->r->spans.len; i++) {
        const struct request_span *s = &l->r->spans.data[i];
        if (s->thread != id || s->start_ns != start)
            break;
        if (s->kind == SPAN_IO && s->text != REQUEST_NONE)
            return requests_text(l->r, s->text);
    }
    return NULL;
}

/* ---- parts ---- */

int ledger_add_part(struct request_parts *p, struct request_part part)
{
    if (part.start >= part.end)
        return 0;
    struct request_part *last = p->rows.len ? &p->rows.data[p->rows.len - 1] : NULL;
    if (last && last->start == part.end && last->cause == part.cause &&
        last->thread == part.thread && last->object == part.object && last->work == part.work &&
        (part.cause == CAUSE_CPU || part.cause == CAUSE_UNKNOWN || last->node == part.node)) {
        last->start = part.start;
        return 0;
    }
    return vec_push(&p->rows, part);
}

/* Returns the first pause that ends after a time. Pauses are sorted and do not overlap. */
static size_t pause_after(const struct timeline *t, uint64_t time)
{
    size_t low = 0, high = t->n_pauses;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (t->pauses[mid].end_ns <= time)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

size_t ledger_samples(const struct request_ledger *l, uint32_t thread, uint64_t start, uint64_t end,
                      size_t *ret_end)
{
    const struct requests *r = l->r;
    uint64_t id = l->t->threads[thread].id;
    size_t first = requests_sample_at(r, id, ledger_since_epoch(l, start)), n = first;
    while (n < r->samples.len && r->samples.data[n].thread == id &&
           r->samples.data[n].time_ns < ledger_since_epoch(l, end))
        n++;
    *ret_end = n;
    return first;
}

static bool has_sample(const struct request_ledger *l, uint32_t thread, uint64_t start,
                       uint64_t end)
{
    size_t after, first = ledger_samples(l, thread, start, end, &after);
    return after > first;
}

/*
 * Returns whether something shows that the thread ran for `ns` nanoseconds between two times
 * between which it has no recorded wait. Other recorders leave out short waits.
 */
static bool did_run(const struct request_ledger *l, uint32_t thread, uint64_t start, uint64_t end,
                    uint64_t ns)
{
    uint64_t interval = MAX(l->r->gap_ns, INTERVAL_NS);
    bool ours = l->t->instrumented != TL_NONE;
    if (ours && (!l->r->sampled || ns < UNSEEN_INTERVALS * interval))
        return true;
    return has_sample(l, thread, start, end);
}

/*
 * Divides a time in which the thread ran into class loading and the rest, according to its samples:
 * each sample stands for the time around it.
 */
static int add_cpu(struct request_ledger *l, struct request_parts *p, struct request_part part)
{
    uint64_t start = part.start;
    size_t i, first = ledger_samples(l, part.thread, start, part.end, &i);
    const struct request_sample *samples = l->r->samples.data;
    int e = 0;
    part.cause = CAUSE_CPU;
    while (e == 0 && i-- > first) {
        part.cause = l->sampled[samples[i].stack] & FRAME_CLASS_LOAD ? CAUSE_CLASS_LOAD : CAUSE_CPU;
        part.start =
            i == first
                ? start
                : ledger_since_origin(l, samples[i - 1].time_ns +
                                             (samples[i].time_ns - samples[i - 1].time_ns) / 2);
        part.start = MAX(part.start, start);
        e = ledger_add_part(p, part);
        part.end = part.start;
    }
    part.start = start;
    return e ? e : ledger_add_part(p, part);
}

/*
 * Returns the class of the outermost frame with a mark in the stack of a wait, or NULL when memory
 * ran out.
 */
static const char *marked_class(struct request_ledger *l, uint32_t state, uint8_t mark)
{
    uint32_t stack = tl_context_of(l->t, state)->stack;
    const char *method = "";
    for (uint32_t k = 0; stack != TL_NONE && k < l->t->stacks[stack].len; k++) {
        uint32_t number = l->t->frames[l->t->stacks[stack].first + k].method;
        if (number < l->t->n_strings && l->marks[number] & mark)
            method = tl_string(l->t, number);
    }
    const char *dot = strrchr(method, '.');
    int64_t n = strpool_add(&l->made, method, dot ? (size_t)(dot - method) : strlen(method));
    return n < 0 ? NULL : strpool_get(&l->made, (uint64_t)n).data;
}

/*
 * The VM leaves no event when a thread waits until another one has initialized a class. But if
 * another thread initialized a class for most of this time and finished before its end, and this
 * thread hardly ran, then this thread waited for it. Returns the other thread's wait, or NULL.
 * piece_end is the end of the part and of the time without a processor that follows it. When
 * exactly the thread had no processor is unknown, so the other thread may finish in that time.
 */
static const struct initializing *init_during(const struct request_ledger *l,
                                              const struct request_part *part, uint64_t piece_end)
{
    const struct initializing *best = NULL;
    uint64_t ns = part->end - part->start, most = ns / 2, end = part->end;
    uint64_t interval = MAX(l->r->sample_ns, INTERVAL_NS), gap = MAX(l->r->gap_ns, interval);
    size_t after, first = ledger_samples(l, part->thread, part->start, end, &after);
    if (!l->r->sampled || ns < UNSEEN_INTERVALS * gap || (after - first) * interval > ns / 2)
        return NULL;
    for (size_t i = 0; i < l->inits.len && l->inits.data[i].start < end; i++) {
        const struct initializing *x = &l->inits.data[i];
        uint64_t from = MAX(x->start, part->start), to = MIN(x->end, end);
        if (x->thread == part->thread || x->end > piece_end || to <= from || to - from < most)
            continue;
        best = x;
        most = to - from;
    }
    return best;
}

/* Adds a time during part of which a thread waited for another thread to initialize a class. */
static int add_init(struct request_ledger *l, struct request_parts *p, struct request_part part,
                    const struct initializing *x)
{
    struct request_part rest = part;
    rest.start = part.end = MIN(x->end, part.end);
    int e = rest.start < rest.end ? add_cpu(l, p, rest) : 0;
    rest.start = part.start;
    part.start = MAX(part.start, x->start);
    part.cause = CAUSE_CLASS_LOAD;
    part.node = x->node;
    part.behind = x->thread + 1;
    part.object = marked_class(l, x->node, FRAME_CLASS_INIT);
    e = e ? e : ledger_add_part(p, part);
    rest.end = part.start;
    return e ? e : add_cpu(l, p, rest);
}

/*
 * Adds a piece of a run that contains no pause. Time without a processor or without a page of
 * memory is put at its end. Next to a pause, a thread that did not run was on its way to the pause
 * or back.
 */
static int add_piece(struct request_ledger *l, struct request_parts *p,
                     const struct request_part *run, uint64_t start, uint64_t end, bool by_pause)
{
    struct request_part part = *run;
    struct delay_parts delay;
    if (start >= end)
        return 0;
    uint64_t ready = end - ledger_delayed(l, part.thread, start, end, &delay);
    part.end = end;
    part.start = end - delay.throttled;
    part.cause = CAUSE_THROTTLED;
    int e = ledger_add_part(p, part);
    part.end = part.start;
    part.start = part.end - delay.fault;
    part.cause = CAUSE_FAULT;
    e = e ? e : ledger_add_part(p, part);
    part.end = part.start;
    part.start = ready;
    part.cause = CAUSE_RUNNABLE;
    e = e ? e : ledger_add_part(p, part);
    part.end = part.start;
    part.start = start;
    /*
     * Where in the piece the thread had no processor is unknown, so the samples of the whole piece
     * decide.
     */
    if (e || part.start >= part.end)
        return e;
    const struct initializing *init = init_during(l, &part, end);
    if (init)
        return add_init(l, p, part, init);
    if (did_run(l, part.thread, start, end, part.end - start))
        return add_cpu(l, p, part);
    part.cause = by_pause ? CAUSE_SAFEPOINT : CAUSE_UNKNOWN;
    return ledger_add_part(p, part);
}

/*
 * Returns the thread's last class load, or the last safepoint, that overlaps a time, or NULL when
 * there is none.
 */
static const struct request_span *last_span(const struct request_ledger *l, uint64_t id,
                                            enum request_span_kind kind, uint64_t start,
                                            uint64_t end)
{
    enum { LOOKED_AT = 64 };

    size_t i = requests_span_at(l->r, id, ledger_since_epoch(l, end));
    const struct request_span *found = NULL;
    for (int looked = 0; i-- > 0 && looked < LOOKED_AT; looked++) {
        const struct request_span *s = &l->r->spans.data[i];
        if (s->thread != id)
            break;
        if (s->kind == kind && s->end_ns > ledger_since_epoch(l, start) &&
            (!found || s->end_ns >= found->end_ns))
            found = s; /* an enclosing one */
    }
    return found;
}

/*
 * Divides [start, end), which contains no pause, into the time of the VM, the time of class
 * loading, and the rest.
 */
static int add_between(struct request_ledger *l, struct request_parts *p,
                       const struct request_part *run, uint64_t start, uint64_t end, bool by_pause)
{
    uint64_t id = l->t->threads[run->thread].id;
    int e = 0;
    while (e == 0 && start < end) {
        const struct request_span *s = last_span(l, 0, SPAN_SAFEPOINT, start, end);
        enum request_cause cause = CAUSE_SAFEPOINT;
        if (!s) {
            s = last_span(l, id, SPAN_CLASS_LOAD, start, end);
            cause = CAUSE_CLASS_LOAD;
        }
        if (!s)
            return add_piece(l, p, run, start, end, by_pause);
        struct request_part part = *run;
        part.start = MAX(start, ledger_since_origin(l, s->start_ns));
        part.end = MIN(end, ledger_since_origin(l, s->end_ns));
        part.cause = cause;
        part.object = s->text == REQUEST_NONE ? NULL : requests_text(l->r, s->text);
        uint32_t late =
            cause == CAUSE_SAFEPOINT ? l->late.data[s - l->r->spans.data].thread : TL_NONE;
        part.behind = late == TL_NONE ? 0 : late + 1;
        e = add_piece(l, p, run, part.end, end, by_pause);
        if (e == 0)
            e = late == part.thread ? add_piece(l, p, run, part.start, part.end, false)
                                    : ledger_add_part(p, part);
        end = part.start;
    }
    return e;
}

/* Divides a run. The collector's pauses come first. */
static int add_run(struct request_ledger *l, struct request_parts *p,
                   const struct request_part *run, uint64_t start, uint64_t end)
{
    const struct timeline *t = l->t;
    size_t first = pause_after(t, start), i = first;
    bool paused = false;
    int e = 0;
    while (i < t->n_pauses && t->pauses[i].start_ns < end)
        i++;
    while (e == 0 && i-- > first) {
        struct request_part gc = *run;
        gc.start = MAX(t->pauses[i].start_ns, start);
        gc.end = MIN(t->pauses[i].end_ns, end);
        gc.cause = CAUSE_GC;
        gc.object = tl_string(t, t->pauses[i].name);
        if (gc.start >= gc.end)
            continue;
        e = add_between(l, p, run, gc.end, end, true);
        e = e ? e : ledger_add_part(p, gc);
        end = gc.start;
        paused = true;
    }
    return e ? e : add_between(l, p, run, start, end, paused);
}

/*
 * Returns the pool for whose connection a request's thread waited at a time, as the children of the
 * request show it.
 */
static const char *pool_at(const struct request_ledger *l, const struct request_work *w,
                           uint64_t start, uint64_t end)
{
    const struct request *q = w->owner == REQUEST_NONE ? NULL : &l->r->list.data[w->owner];
    uint64_t middle = start + (end - start) / 2;
    for (uint32_t i = 0; q && i < q->children; i++) {
        const struct request_child *c = &l->r->children.data[q->first_child + i];
        if (c->thread == w->thread && strcmp(requests_text(l->r, c->kind), "pool") == 0 &&
            ledger_since_origin(l, c->start_ns) <= middle &&
            middle < ledger_since_origin(l, c->end_ns))
            return requests_text(l->r, c->name);
    }
    return NULL;
}

int ledger_add_stretch(struct request_ledger *l, struct request_parts *p, uint32_t work,
                       uint32_t thread, const struct stretch *s)
{
    const struct request_work *w = work == REQUEST_NONE ? NULL : &l->r->works.data[work];
    struct request_part part = {.start = s->start,
                                .end = s->end,
                                .thread = thread,
                                .node = s->state,
                                .ends = s->ends,
                                .work = work};
    enum tl_kind kind = s->state == TL_NONE ? TL_RUN : tl_node(l->t, s->state).kind;
    if (s->state == TL_NONE && thread != TL_NONE &&
        l->t->threads[thread].flags & TL_THREAD_LEFT_OUT) {
        part.cause = CAUSE_UNKNOWN;
        return ledger_add_part(p, part);
    }
    if (kind == TL_RUN) {
        part.node = s->ends != TL_NONE ? s->ends : s->state;
        part.ends = TL_NONE;
        return add_run(l, p, &part, s->start, s->end);
    }
    part.cause = wait_cause(l, s->state);
    if (kind == TL_UNMOUNTED) {
        uint32_t occupant = tl_context_of(l->t, s->state)->other;
        part.behind = occupant == TL_NONE ? 0 : occupant + 1;
    } else if (part.cause == CAUSE_IO)
        part.object = io_peer(l, s->state);
    else if (part.cause == CAUSE_CLASS_LOAD && ledger_stack_marks(l, s->state) & FRAME_CLASS_INIT)
        part.object = marked_class(l, s->state, FRAME_CLASS_INIT);
    else if (part.cause == CAUSE_CLASS_LOAD && kind != TL_CLASS_INIT)
        part.object = NULL; /* the lock of a loader does not name the class */
    else if (part.cause != CAUSE_SLEEP)
        part.object = tl_object_class(l->t, tl_context_of(l->t, s->state)->object);
    const char *pool = ledger_is_blocked(kind) && w ? pool_at(l, w, s->start, s->end) : NULL;
    if (pool)
        part.cause = CAUSE_POOL;
    if (part.cause == CAUSE_POOL)
        part.object = pool ? pool : marked_class(l, s->state, FRAME_POOL);
    return ledger_add_part(p, part);
}
