/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a request backward from its end to its beginning. */
#include "analysis/request_ledger_private.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

struct walk {
    struct request_ledger *l;
    const struct request *q;
    struct request_parts *out;
    uint64_t from, at;         /* [from, at) is still to be divided */
    struct request_work whole; /* for a request without any work */
};

static const struct request_work *work_at(const struct walk *w, uint32_t i)
{
    return w->q->works ? &w->l->r->works.data[w->q->first_work + i] : &w->whole;
}

static uint32_t work_count(const struct walk *w)
{
    return w->q->works ? w->q->works : 1;
}

static uint32_t work_number(const struct walk *w, uint32_t i)
{
    return w->q->works ? w->q->first_work + i : REQUEST_NONE;
}

static int64_t queued_at(const struct request_work *x)
{
    return x->start_ns - x->queued_ns;
}

/*
 * Returns whether the work stands for a task that was cancelled while it waited in a queue. Its
 * thread is then the one that cancelled it.
 */
static bool is_cancelled(const struct walk *w, const struct request_work *x)
{
    return x->hand_over != REQUEST_NONE &&
           strcmp(requests_text(w->l->r, x->hand_over), "cancelled") == 0;
}

/*
 * Returns the work that was in progress just before a time: on the given thread if there is one,
 * otherwise the one that began last. Returns UINT32_MAX if there is none.
 */
static uint32_t pick(const struct walk *w, uint64_t at, uint64_t thread)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < work_count(w); i++) {
        const struct request_work *x = work_at(w, i);
        if (ledger_since_origin(w->l, x->start_ns) >= at)
            break; /* they are sorted by start */
        if (ledger_since_origin(w->l, x->end_ns) < at)
            continue;
        if (best == UINT32_MAX || x->thread == thread || work_at(w, best)->thread != thread)
            best = i;
    }
    return best;
}

/* Of the works that began before a time, returns the one that ended last, or UINT32_MAX. */
static uint32_t pick_before(const struct walk *w, uint64_t at)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < work_count(w); i++) {
        const struct request_work *x = work_at(w, i);
        if (ledger_since_origin(w->l, x->start_ns) >= at)
            break;
        if (!is_cancelled(w, x) && (best == UINT32_MAX || x->end_ns >= work_at(w, best)->end_ns))
            best = i;
    }
    return best;
}

/* Adds the part of [start, at) that lies within the request, of which only the cause is known. */
static int consume(struct walk *w, uint64_t start, enum request_cause cause, uint32_t work)
{
    start = MIN(MAX(start, w->from), w->at);
    const struct request_work *of =
        work == REQUEST_NONE || is_cancelled(w, &w->l->r->works.data[work])
            ? NULL
            : &w->l->r->works.data[work];
    struct request_part part = {.start = start,
                                .end = w->at,
                                .thread = of ? ledger_thread(w->l, of->thread) : TL_NONE,
                                .node = TL_NONE,
                                .ends = TL_NONE,
                                .work = work,
                                .cause = cause};
    w->at = start;
    return ledger_add_part(w->out, part);
}

/*
 * Returns the work of a thread that was in progress at a time. A work that ended after `since`
 * counts as well if the thread only ran from then on, because a future wakes the threads that wait
 * for it when the work that completes it is over.
 */
static uint32_t work_of(const struct walk *w, uint32_t thread, uint64_t since, uint64_t at)
{
    uint64_t id = w->l->t->threads[thread].id;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < work_count(w); i++) {
        const struct request_work *x = work_at(w, i);
        if (ledger_since_origin(w->l, x->start_ns) >= at)
            break;
        if (x->thread == id && ledger_since_origin(w->l, x->end_ns) >= since && !is_cancelled(w, x))
            best = i;
    }
    uint64_t end = best == UINT32_MAX ? at : ledger_since_origin(w->l, work_at(w, best)->end_ns);
    if (end >= at)
        return best;
    struct stretch s = ledger_before(w->l, thread, end, at);
    bool ran = s.start == end && (s.state == TL_NONE || tl_node(w->l->t, s.state).kind == TL_RUN);
    return ran ? best : UINT32_MAX;
}

/*
 * Returns the work for the same request that another thread was doing when it ended this wait, or
 * UINT32_MAX.
 */
static uint32_t woken_by(const struct walk *w, const struct stretch *s, uint64_t *ret_at)
{
    const struct timeline *t = w->l->t;
    if (s->state == TL_NONE || s->ends == TL_NONE ||
        !ledger_is_blocked(tl_node(t, s->state).kind) || !graph_woken(t, s->ends))
        return UINT32_MAX;
    const struct tl_node waker = tl_node(t, tl_node(t, s->ends).waker);
    uint64_t at = waker.time;
    if (at >= w->at || at <= w->from || at < s->start)
        return UINT32_MAX;
    uint32_t i = work_of(w, waker.thread, s->start, at);
    if (i != UINT32_MAX)
        *ret_at = at;
    return i;
}

/*
 * Returns the task for which a thread waited until it gave up and cancelled the task, without
 * waiting for anything else in between. Returns UINT32_MAX if there is none.
 */
static uint32_t given_up(const struct walk *w, uint32_t thread, const struct stretch *s)
{
    const struct timeline *t = w->l->t;
    if (s->state == TL_NONE || s->ends == TL_NONE ||
        !ledger_is_blocked(tl_node(t, s->state).kind) || graph_woken(t, s->ends))
        return UINT32_MAX;
    for (uint32_t i = 0; i < work_count(w); i++) {
        const struct request_work *x = work_at(w, i);
        uint64_t at = ledger_since_origin(w->l, x->start_ns);
        if (at < w->at || !is_cancelled(w, x) || ledger_thread(w->l, x->thread) != thread ||
            ledger_since_origin(w->l, queued_at(x)) > s->start)
            continue;
        struct stretch ran = ledger_before(w->l, thread, w->at, at);
        if (at == w->at || ran.state == TL_NONE || tl_node(t, ran.state).kind == TL_RUN)
            return ran.start <= w->at ? i : UINT32_MAX;
    }
    return UINT32_MAX;
}

/*
 * Divides the time before `at` back to the point where the work began, or where another thread's
 * work for the same request ended a wait. Returns that work, UINT32_MAX when the beginning of the
 * request is reached, or a negative errno.
 */
static int64_t walk_work(struct walk *w, uint32_t i)
{
    const struct request_work *x = work_at(w, i);
    uint32_t thread = ledger_thread(w->l, x->thread);
    uint64_t floor = MAX(ledger_since_origin(w->l, x->start_ns), w->from);
    if (thread == TL_NONE) {
        int e = consume(w, floor, CAUSE_UNKNOWN, work_number(w, i));
        return e ? e : (int64_t)UINT32_MAX;
    }
    while (w->at > floor) {
        struct stretch s = ledger_before(w->l, thread, floor, w->at);
        uint64_t at;
        uint32_t other = woken_by(w, &s, &at);
        if (other != UINT32_MAX) {
            int e = consume(w, at, CAUSE_RUNNABLE, work_number(w, i));
            return e ? e : (int64_t)other;
        }
        uint32_t task = given_up(w, thread, &s);
        int e = task != UINT32_MAX
                    ? consume(w, s.start, CAUSE_QUEUE, work_number(w, task))
                    : ledger_add_stretch(w->l, w->out, work_number(w, i), thread, &s);
        if (e < 0)
            return e;
        w->at = s.start;
    }
    return UINT32_MAX;
}

/* Divides the time before `at` back to `floor`, as far as the thread was busy then. */
static int walk_busy(struct walk *w, uint32_t thread, uint64_t floor)
{
    int e = 0;
    floor = MAX(floor, w->from);
    while (e == 0 && thread != TL_NONE && w->at > floor) {
        struct stretch s = ledger_before(w->l, thread, floor, w->at);
        if (s.state == TL_NONE ||
            idle_is_idle_stack(w->l->t, w->l->roles, tl_context_of(w->l->t, s.state)->stack))
            break;
        e = ledger_add_stretch(w->l, w->out, REQUEST_NONE, thread, &s);
        w->at = s.start;
    }
    return e;
}

/*
 * Divides the time between the last work and the end of the request, during which the thread that
 * ended the request was busy: what a server does to finish a response is not recorded as work.
 */
static int walk_tail(struct walk *w)
{
    uint32_t last = pick_before(w, w->at);
    uint64_t floor =
        last == UINT32_MAX ? w->from : ledger_since_origin(w->l, work_at(w, last)->end_ns);
    return walk_busy(w, ledger_thread(w->l, w->q->end_thread), floor);
}

/*
 * Returns the work whose task was in a queue just before a time and had not begun then. Among
 * several, returns the one that was queued first. Returns UINT32_MAX if there is none.
 */
static uint32_t pick_queued(const struct walk *w, uint64_t at)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < work_count(w); i++) {
        const struct request_work *x = work_at(w, i);
        if (x->queued_ns > 0 && ledger_since_origin(w->l, x->start_ns) >= at &&
            ledger_since_origin(w->l, queued_at(x)) < at &&
            (best == UINT32_MAX || queued_at(x) < queued_at(work_at(w, best))))
            best = i;
    }
    return best;
}

/*
 * Divides the time in which nothing worked for the request, back to the last work i. Between two
 * works of the same thread, code of the server ran. If a task of the request was in a queue, the
 * request waited for it, even if the request was over when the task began.
 */
static int walk_gap(struct walk *w, uint32_t i, uint64_t next_thread)
{
    uint64_t end = i == UINT32_MAX ? 0 : ledger_since_origin(w->l, work_at(w, i)->end_ns);
    int e = 0;
    if (i != UINT32_MAX && work_at(w, i)->thread == next_thread)
        e = walk_busy(w, ledger_thread(w->l, next_thread), end);
    uint32_t queued = pick_queued(w, w->at);
    if (e == 0 && queued != UINT32_MAX)
        e = consume(w, MAX(ledger_since_origin(w->l, queued_at(work_at(w, queued))), end),
                    CAUSE_QUEUE, work_number(w, queued));
    return e ? e : consume(w, end, CAUSE_UNKNOWN, REQUEST_NONE);
}

/*
 * Returns what a work waited for between its hand-over and its beginning. A virtual thread that was
 * created for it waits for a carrier, not in a queue of the program.
 */
static enum request_cause queue_cause(const struct walk *w, const struct request_work *x,
                                      uint64_t queued)
{
    uint32_t thread = ledger_thread(w->l, x->thread);
    const struct tl_thread *t = thread == TL_NONE ? NULL : &w->l->t->threads[thread];
    return t && t->flags & TL_THREAD_VIRTUAL && t->start_ns >= queued ? CAUSE_RUNNABLE
                                                                      : CAUSE_QUEUE;
}

static int walk_back(struct walk *w)
{
    uint64_t next_thread = 0;
    uint32_t i = pick(w, w->at, w->q->end_thread);
    int tail = i == UINT32_MAX ? walk_tail(w) : 0;
    if (tail < 0)
        return tail;
    i = pick(w, w->at, w->q->end_thread);
    while (w->at > w->from) {
        if (i == UINT32_MAX) {
            i = pick_before(w, w->at);
            int e = walk_gap(w, i, next_thread);
            if (e < 0)
                return e;
            continue;
        }
        int64_t other = walk_work(w, i);
        if (other < 0)
            return (int)other;
        if (other != UINT32_MAX) {
            i = (uint32_t)other;
            continue;
        }
        const struct request_work *x = work_at(w, i);
        next_thread = x->thread;
        if (x->queued_ns > 0 && w->at > w->from) {
            uint64_t queued = ledger_since_origin(w->l, queued_at(x));
            int e = consume(w, queued, queue_cause(w, x, queued), work_number(w, i));
            if (e < 0)
                return e;
        }
        i = pick(w, w->at, x->submitter);
    }
    return 0;
}

static void turn_round(struct request_parts *p)
{
    for (size_t i = 0, j = p->rows.len; i + 1 < j; i++) {
        struct request_part part = p->rows.data[i];
        p->rows.data[i] = p->rows.data[--j];
        p->rows.data[j] = part;
    }
}

int request_parts(struct request_ledger *l, const struct request *q, struct request_parts *ret)
{
    struct walk w = {.l = l, .q = q, .out = ret, .from = ledger_since_origin(l, q->start_ns)};
    w.at = ledger_since_origin(l, q->end_ns);
    w.whole = (struct request_work){
        .start_ns = q->start_ns, .end_ns = q->end_ns, .thread = q->thread, .owner = REQUEST_NONE};
    vec_clear(&ret->rows);
    memset(ret->ns, 0, sizeof(ret->ns));
    int e = walk_back(&w);
    turn_round(ret);
    for (size_t i = 0; e == 0 && i < ret->rows.len; i++)
        ret->ns[ret->rows.data[i].cause] += ret->rows.data[i].end - ret->rows.data[i].start;
    return e;
}

/*
 * Returns how much of a part that counts as CPU time can be time without a processor. See
 * jvmscope.Preempted in doc/format.md for what the agent leaves out.
 */
static uint64_t unexamined(const struct request_ledger *l, const struct request_part *part)
{
    const uint64_t run_least = 2 * NS_PER_MS, delay_least = NS_PER_MS / 5;
    uint64_t ns = 0, at = part->end;
    if (l->t->instrumented == TL_NONE)
        return part->end - part->start;
    while (at > part->start) {
        struct stretch s = ledger_before(l, part->thread, part->start, at);
        uint64_t begin = s.state == TL_NONE ? 0 : (uint64_t)tl_node(l->t, s.state).time;
        bool is_short = ledger_until(l, part->thread, at) - begin < run_least;
        ns += is_short ? at - s.start : MIN(at - s.start, delay_least);
        at = s.start;
    }
    return ns;
}

uint64_t request_unexamined_ns(const struct request_ledger *l, const struct request_parts *p)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < p->rows.len; i++)
        ns += p->rows.data[i].cause == CAUSE_CPU ? unexamined(l, &p->rows.data[i]) : 0;
    return ns;
}

void request_parts_release(struct request_parts *p)
{
    vec_release(&p->rows);
}

/*
 * Returns whether a thread lived for so many sampling intervals that its samples show about how
 * long it ran.
 */
static bool is_sampled(const struct request_ledger *l, uint32_t thread)
{
    enum { INTERVALS = 20 };

    const struct tl_thread *t = &l->t->threads[thread];
    return l->r->sampled && l->r->gap_ns && (l->r->by_cpu_clock || l->t->instrumented != TL_NONE) &&
           !(t->flags & TL_THREAD_VIRTUAL) && t->end_ns - t->start_ns >= INTERVALS * l->r->gap_ns;
}

uint64_t request_unconfirmed_ns(const struct request_ledger *l, const struct request *q,
                                const struct request_parts *p)
{
    uint64_t ns = 0;
    if (!requests_lack_waits(l->r, q->start_ns, q->end_ns))
        return 0;
    for (size_t i = 0; i < p->rows.len; i++) {
        const struct request_part *part = &p->rows.data[i];
        if (part->cause == CAUSE_CPU && (part->thread == TL_NONE || !is_sampled(l, part->thread)))
            ns += part->end - part->start;
    }
    return ns;
}

int request_cpu(struct request_ledger *l, const struct request *q, struct request_cpu *ret)
{
    struct request_parts *p = &l->scratch;
    struct walk w = {.l = l, .q = q};
    w.whole = (struct request_work){
        .start_ns = q->start_ns, .end_ns = q->end_ns, .thread = q->thread, .owner = REQUEST_NONE};
    struct request_cpu cpu = {0};
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < work_count(&w); i++) {
        const struct request_work *x = work_at(&w, i);
        uint32_t thread = ledger_thread(l, x->thread);
        bool nested = false;
        for (uint32_t k = 0; k < i && !nested; k++)
            nested = work_at(&w, k)->thread == x->thread && work_at(&w, k)->end_ns >= x->end_ns;
        uint64_t from = ledger_since_origin(l, x->start_ns);
        uint64_t end = ledger_since_origin(l, MIN(x->end_ns, q->end_ns)), at = end, ns = 0;
        vec_clear(&p->rows);
        while (e == 0 && !nested && thread != TL_NONE && at > from) {
            struct stretch s = ledger_before(l, thread, from, at);
            e = ledger_add_stretch(l, p, work_number(&w, i), thread, &s);
            at = s.start;
        }
        for (size_t k = 0; k < p->rows.len; k++)
            ns += p->rows.data[k].cause == CAUSE_CPU ? p->rows.data[k].end - p->rows.data[k].start
                                                     : 0;
        cpu.ns += ns;
        if (nested || thread == TL_NONE || from >= end || !is_sampled(l, thread))
            continue;
        size_t after, first = ledger_samples(l, thread, from, end, &after);
        uint64_t samples = 0, left_out = requests_samples_of(l->r, x->start_ns) - 1;
        for (; first < after; first++)
            samples += !(l->sampled[l->r->samples.data[first].stack] & FRAME_CLASS_LOAD);
        cpu.sampled_ns += ns;
        cpu.samples += samples;
        cpu.left_out_ns += left_out * ns;
        cpu.left_out_samples += left_out * samples;
    }
    *ret = cpu;
    return e;
}
