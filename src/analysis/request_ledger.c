/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_ledger.h"

#include "analysis/graph.h"
#include "model/idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * If a run lasts this many sampling intervals without a CPU sample, in a recording that has
 * samples, the thread was not running: it waited in a way that leaves no event.
 */
#define UNSEEN_INTERVALS 3
#define INTERVAL_NS      UINT64_C(20000000) /* used when it is unknown */

static const char *const cause_names[REQUEST_CAUSES] = {
    "cpu",   "runnable", "lock", "park",      "queue",      "pool",   "io",
    "fault", "sleep",    "gc",   "safepoint", "class-load", "unknown"};

const char *request_cause_name(enum request_cause cause)
{
    return cause < REQUEST_CAUSES ? cause_names[cause] : "?";
}

/* A thread waited while it initialized a class: others that need the class wait for that thread. */
struct initializing {
    uint64_t start, end;
    uint32_t thread, node;
};

struct request_ledger {
    const struct requests *r;
    const struct timeline *t;
    struct map threads;             /* id to the thread of the timeline */
    uint32_t *first;                /* per thread: its first place in `nodes` */
    uint32_t *nodes;                /* by thread, in chronological order */
    uint32_t *object_first, *taken; /* per object: the nodes at which a wait for it ended */
    uint8_t *roles;                 /* of the timeline's strings: enum frame_role */
    uint8_t *marks;                 /* of the same strings: FRAME_ */
    uint8_t *sampled;               /* marks of the requests' stacks */
    VEC(struct initializing) inits; /* sorted by start */
    struct strpool made;            /* texts that neither of the two has */
    struct request_parts scratch;
};

#define FRAME_POOL       1
#define FRAME_CLASS_LOAD 2 /* a class is being loaded or initialized */
#define FRAME_CLASS_INIT 4
#define FRAME_IO         8 /* a virtual thread reads or writes: it parks until the poller wakes it */

/* In these methods a thread waits for a connection that others use. */
static const char *const pool_methods[] = {
    "com.zaxxer.hikari.pool.HikariPool.getConnection",
    "com.zaxxer.hikari.util.ConcurrentBag.borrow",
    "org.apache.commons.dbcp.",
    "org.apache.commons.dbcp2.",
    "org.apache.commons.pool.impl.",
    "org.apache.commons.pool2.impl.",
    "org.apache.tomcat.dbcp.",
    "org.apache.tomcat.jdbc.pool.ConnectionPool.borrowConnection",
    "com.mchange.v2.resourcepool.BasicResourcePool.",
    "org.apache.http.pool.AbstractConnPool.",
    "org.apache.hc.core5.pool.",
    "oracle.ucp.",
    "org.vibur.objectpool.",
    "io.agroal.pool.ConnectionPool.",
    "snaq.db.ConnectionPool.",
};

static uint8_t mark_of(const char *method)
{
    uint8_t mark = 0;
    for (size_t i = 0; i < ARRAY_SIZE(pool_methods); i++)
        if (strncmp(method, pool_methods[i], strlen(pool_methods[i])) == 0)
            mark |= FRAME_POOL;
    if (strncmp(method, "sun.nio.ch.Poller.", strlen("sun.nio.ch.Poller.")) == 0)
        mark |= FRAME_IO;
    const char *name = strrchr(method, '.');
    if (name && strcmp(name, ".<clinit>") == 0)
        mark |= FRAME_CLASS_LOAD | FRAME_CLASS_INIT;
    else if ((name && strcmp(name, ".loadClass") == 0) ||
             strcmp(method, "java.lang.Class.forName") == 0)
        mark |= FRAME_CLASS_LOAD;
    return mark;
}

/* Lists the nodes of each thread. */
static int index_nodes(struct request_ledger *l)
{
    const struct timeline *t = l->t;
    l->first = calloc(t->n_threads + 2, sizeof(*l->first));
    l->nodes = malloc((t->n_nodes + 1) * sizeof(*l->nodes));
    if (!l->first || !l->nodes)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_nodes; i++)
        l->first[tl_node(t, i).thread + 2]++;
    for (size_t i = 2; i < t->n_threads + 2; i++)
        l->first[i] += l->first[i - 1];
    for (size_t i = 0; i < t->n_nodes; i++)
        l->nodes[l->first[tl_node(t, i).thread + 1]++] = (uint32_t)i;
    return 0;
}

/* Returns the object of the wait that node n ends, or TL_NONE. */
static uint32_t object_taken(const struct timeline *t, uint32_t n)
{
    uint32_t before = graph_before(t, n);
    if (tl_node(t, n).kind != TL_RUN || before == TL_NONE)
        return TL_NONE;
    switch ((enum tl_kind)tl_node(t, before).kind) {
    case TL_WAIT_LOCK:
    case TL_REACQUIRE:
    case TL_DEADLOCK:
    case TL_PARK:
        return tl_context_of(t, before)->object;
    default:
        return TL_NONE;
    }
}

static int index_objects(struct request_ledger *l)
{
    const struct timeline *t = l->t;
    size_t n = 0;
    l->object_first = calloc(t->n_objects + 2, sizeof(*l->object_first));
    if (!l->object_first)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        uint32_t object = object_taken(t, i);
        if (object == TL_NONE)
            continue;
        l->object_first[object + 2]++;
        n++;
    }
    l->taken = malloc((n + 1) * sizeof(*l->taken));
    if (!l->taken)
        return -ENOMEM;
    for (size_t i = 2; i < t->n_objects + 2; i++)
        l->object_first[i] += l->object_first[i - 1];
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        uint32_t object = object_taken(t, i);
        if (object != TL_NONE)
            l->taken[l->object_first[object + 1]++] = i;
    }
    return 0;
}

static uint8_t stack_marks(const struct request_ledger *l, uint32_t node)
{
    uint32_t stack = tl_context_of(l->t, node)->stack;
    uint8_t marks = 0;
    for (uint32_t k = 0; stack != TL_NONE && k < l->t->stacks[stack].len; k++) {
        uint32_t method = l->t->frames[l->t->stacks[stack].first + k].method;
        marks |= method < l->t->n_strings ? l->marks[method] : 0;
    }
    return marks;
}

static int mark_samples(struct request_ledger *l)
{
    const struct requests *r = l->r;
    l->sampled = calloc(r->stacks.len + 1, 1);
    if (!l->sampled)
        return -ENOMEM;
    for (size_t i = 0; i < r->stacks.len; i++)
        for (uint32_t k = 0; k < r->stacks.data[i].len; k++)
            l->sampled[i] |=
                mark_of(requests_text(r, r->frames.data[r->stacks.data[i].first + k].method));
    return 0;
}

static int by_init_start(const void *a, const void *b)
{
    const struct initializing *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Lists the waits of threads that initialized a class meanwhile. */
static int index_inits(struct request_ledger *l)
{
    const struct timeline *t = l->t;
    int e = 0;
    for (uint32_t thread = 0; thread < t->n_threads; thread++)
        for (uint32_t i = l->first[thread]; e == 0 && i + 1 < l->first[thread + 1]; i++) {
            uint32_t n = l->nodes[i];
            if (tl_node(t, n).kind == TL_RUN || !tl_is_state(tl_node(t, n).kind) ||
                !(stack_marks(l, n) & FRAME_CLASS_INIT))
                continue;
            e = vec_push(&l->inits, ((struct initializing){
                                        (uint64_t)tl_node(t, n).time,
                                        (uint64_t)tl_node(t, l->nodes[i + 1]).time, thread, n}));
        }
    vec_sort(&l->inits, by_init_start);
    return e;
}

int request_ledger_new(struct request_ledger **ret, const struct requests *r,
                       const struct timeline *t)
{
    _cleanup_(request_ledger_freep) struct request_ledger *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->r = r;
    l->t = t;
    l->roles = frame_roles(t);
    l->marks = calloc(t->n_strings + 1, 1);
    int e = l->roles && l->marks ? 0 : -ENOMEM;
    for (size_t i = 0; e == 0 && i < t->n_strings; i++)
        l->marks[i] = mark_of(tl_string(t, (uint32_t)i));
    for (size_t i = 0; e == 0 && i < t->n_threads; i++)
        e = map_put(&l->threads, t->threads[i].id, i);
    if (e == 0)
        e = index_nodes(l);
    if (e == 0)
        e = index_objects(l);
    if (e == 0)
        e = mark_samples(l);
    if (e == 0)
        e = index_inits(l);
    if (e == 0)
        *ret = TAKE(l);
    return e;
}

void request_ledger_free(struct request_ledger *l)
{
    if (!l)
        return;
    map_release(&l->threads);
    free(l->first);
    free(l->nodes);
    free(l->object_first);
    free(l->taken);
    free(l->roles);
    free(l->marks);
    free(l->sampled);
    vec_release(&l->inits);
    strpool_release(&l->made);
    request_parts_release(&l->scratch);
    free(l);
}

static uint32_t thread_of(const struct request_ledger *l, uint64_t id)
{
    const uint64_t *at = id ? map_get(&l->threads, id) : NULL;
    return at ? (uint32_t)*at : TL_NONE;
}

static uint64_t since_origin(const struct request_ledger *l, int64_t ns)
{
    return ns > (int64_t)l->t->origin_ns ? (uint64_t)ns - l->t->origin_ns : 0;
}

static int64_t since_epoch(const struct request_ledger *l, uint64_t ns)
{
    return (int64_t)(ns + l->t->origin_ns);
}

/* ---- what a thread did in a time ---- */

/* A state of a thread that lasts from start to end. Node `ends`, if there is one, ended it. */
struct stretch {
    uint64_t start, end;
    uint32_t state, ends; /* nodes; state is TL_NONE before the first one */
};

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

/*
 * Returns the thread's last stretch that begins before `at`, cut at `at` and at `floor`. Instants
 * do not end a stretch.
 */
static struct stretch stretch_before(const struct request_ledger *l, uint32_t thread,
                                     uint64_t floor, uint64_t at)
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

static bool is_blocked(enum tl_kind kind)
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
        return stack_marks(l, state) & FRAME_CLASS_LOAD ? CAUSE_CLASS_LOAD : CAUSE_SLEEP;
    case TL_IO:
        return stack_marks(l, state) & FRAME_CLASS_LOAD ? CAUSE_CLASS_LOAD : CAUSE_IO;
    case TL_PREEMPTED:
    case TL_UNMOUNTED:
        return CAUSE_RUNNABLE;
    case TL_CLASS_INIT:
        return CAUSE_CLASS_LOAD;
    case TL_DEAD:
        return CAUSE_UNKNOWN;
    default:
        break;
    }
    if (!is_blocked(kind))
        return CAUSE_UNKNOWN;
    uint8_t marks = stack_marks(l, state);
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
    int64_t start = since_epoch(l, n.time);
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

/*
 * Adds a part. Parts are found from the end to the beginning and reversed when they are complete.
 */
static int add_part(struct request_parts *p, struct request_part part)
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
static size_t pause_behind(const struct timeline *t, uint64_t time)
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

/*
 * Returns for how long the thread had no processor during a run. Where in the run that was is
 * unknown.
 */
static uint64_t delayed(const struct timeline *t, uint32_t thread, uint64_t start, uint64_t end)
{
    uint64_t ns = 0;
    for (size_t i = graph_delay_behind(t, thread, start);
         i < t->n_delays && t->delays[i].thread == thread && t->delays[i].start_ns < end; i++) {
        const struct tl_delay *d = &t->delays[i];
        uint64_t from = MAX(start, d->start_ns), to = MIN(end, d->end_ns);
        if (d->end_ns > d->start_ns)
            ns +=
                (uint64_t)((double)d->ns * (double)(to - from) / (double)(d->end_ns - d->start_ns));
    }
    return MIN(ns, end - start);
}

/* Returns the samples of a thread from start to end: the first one, and the one after the last. */
static size_t samples_of(const struct request_ledger *l, uint32_t thread, uint64_t start,
                         uint64_t end, size_t *ret_end)
{
    const struct requests *r = l->r;
    uint64_t id = l->t->threads[thread].id;
    size_t first = requests_sample_at(r, id, since_epoch(l, start)), n = first;
    while (n < r->samples.len && r->samples.data[n].thread == id &&
           r->samples.data[n].time_ns < since_epoch(l, end))
        n++;
    *ret_end = n;
    return first;
}

static bool has_sample(const struct request_ledger *l, uint32_t thread, uint64_t start,
                       uint64_t end)
{
    size_t after, first = samples_of(l, thread, start, end, &after);
    return after > first;
}

/*
 * Returns whether the thread, which is not known to have waited, is known to have run for ns of
 * this time. Other recorders leave out short waits.
 */
static bool did_run(const struct request_ledger *l, uint32_t thread, uint64_t start, uint64_t end,
                    uint64_t ns)
{
    uint64_t interval = l->r->sample_ns ? l->r->sample_ns : INTERVAL_NS;
    bool ours = l->t->instrumented != TL_NONE;
    if (ours && (!l->r->sampled || ns < UNSEEN_INTERVALS * interval))
        return true;
    return has_sample(l, thread, start, end);
}

/*
 * Divides a time in which the thread ran into what it did to load classes and the rest, by its
 * samples: each stands for the time around it.
 */
static int add_cpu(struct request_ledger *l, struct request_parts *p, struct request_part part)
{
    uint64_t start = part.start;
    size_t i, first = samples_of(l, part.thread, start, part.end, &i);
    const struct request_sample *samples = l->r->samples.data;
    int e = 0;
    part.cause = CAUSE_CPU;
    while (e == 0 && i-- > first) {
        part.cause = l->sampled[samples[i].stack] & FRAME_CLASS_LOAD ? CAUSE_CLASS_LOAD : CAUSE_CPU;
        part.start = i == first
                         ? start
                         : since_origin(l, samples[i - 1].time_ns +
                                               (samples[i].time_ns - samples[i - 1].time_ns) / 2);
        part.start = MAX(part.start, start);
        e = add_part(p, part);
        part.end = part.start;
    }
    part.start = start;
    return e ? e : add_part(p, part);
}

/* Returns the class of the outermost frame with a mark in a wait's stack; NULL after a failure. */
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
 * The VM leaves no event of a thread that waits until another one has initialized a class. But if
 * another one did that for most of a time, was ready before its end, and this thread hardly ran,
 * then that is what it waited for. Returns the other one's wait, or NULL.
 */
static const struct initializing *init_during(const struct request_ledger *l,
                                              const struct request_part *part)
{
    const struct initializing *best = NULL;
    uint64_t ns = part->end - part->start, most = ns / 2, end = part->end;
    uint64_t interval = l->r->sample_ns ? l->r->sample_ns : INTERVAL_NS;
    size_t after, first = samples_of(l, part->thread, part->start, end, &after);
    if (!l->r->sampled || ns < UNSEEN_INTERVALS * interval || (after - first) * interval > ns / 2)
        return NULL;
    for (size_t i = 0; i < l->inits.len && l->inits.data[i].start < end; i++) {
        const struct initializing *x = &l->inits.data[i];
        uint64_t from = MAX(x->start, part->start);
        if (x->thread == part->thread || x->end > end || x->end <= from || x->end - from < most)
            continue;
        best = x;
        most = x->end - from;
    }
    return best;
}

/* Adds a time of which a thread spent a part waiting until another one had initialized a class. */
static int add_init(struct request_ledger *l, struct request_parts *p, struct request_part part,
                    const struct initializing *x)
{
    struct request_part rest = part;
    rest.start = x->end;
    int e = add_cpu(l, p, rest);
    rest.start = part.start;
    part.start = MAX(part.start, x->start);
    part.end = x->end;
    part.cause = CAUSE_CLASS_LOAD;
    part.node = x->node;
    part.behind = x->thread + 1;
    part.object = marked_class(l, x->node, FRAME_CLASS_INIT);
    e = e ? e : add_part(p, part);
    rest.end = part.start;
    return e ? e : add_cpu(l, p, rest);
}

/*
 * Adds a piece of a run that contains no pause. Time without a processor is put at its end. Next to
 * a pause, a thread that did not run was on its way to the pause or back.
 */
static int add_piece(struct request_ledger *l, struct request_parts *p,
                     const struct request_part *run, uint64_t start, uint64_t end, bool by_pause)
{
    struct request_part part = *run;
    if (start >= end)
        return 0;
    part.end = end;
    part.start = end - delayed(l->t, part.thread, start, end);
    part.cause = CAUSE_RUNNABLE;
    int e = add_part(p, part);
    part.end = part.start;
    part.start = start;
    /*
     * Where in the piece it had no processor is unknown, so the samples of the whole piece decide.
     */
    if (e || part.start >= part.end)
        return e;
    const struct initializing *init = init_during(l, &part);
    if (init)
        return add_init(l, p, part, init);
    if (did_run(l, part.thread, start, end, part.end - start))
        return add_cpu(l, p, part);
    part.cause = by_pause ? CAUSE_SAFEPOINT : CAUSE_UNKNOWN;
    return add_part(p, part);
}

/* Returns the thread's last class load, or the last safepoint, that overlaps a time; NULL: none. */
static const struct request_span *last_span(const struct request_ledger *l, uint64_t id,
                                            enum request_span_kind kind, uint64_t start,
                                            uint64_t end)
{
    enum { LOOKED_AT = 64 };

    size_t i = requests_span_at(l->r, id, since_epoch(l, end));
    const struct request_span *found = NULL;
    for (int looked = 0; i-- > 0 && looked < LOOKED_AT; looked++) {
        const struct request_span *s = &l->r->spans.data[i];
        if (s->thread != id)
            break;
        if (s->kind == kind && s->end_ns > since_epoch(l, start) &&
            (!found || s->end_ns >= found->end_ns))
            found = s; /* an enclosing one */
    }
    return found;
}

/*
 * Divides [start, end), which contains no pause, into what the VM and class loading took and the
 * rest.
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
        part.start = MAX(start, since_origin(l, s->start_ns));
        part.end = MIN(end, since_origin(l, s->end_ns));
        part.cause = cause;
        part.object = s->text == REQUEST_NONE ? NULL : requests_text(l->r, s->text);
        e = add_piece(l, p, run, part.end, end, by_pause);
        e = e ? e : add_part(p, part);
        end = part.start;
    }
    return e;
}

/* Divides a run, beginning with the collector's pauses. */
static int add_run(struct request_ledger *l, struct request_parts *p,
                   const struct request_part *run, uint64_t start, uint64_t end)
{
    const struct timeline *t = l->t;
    size_t first = pause_behind(t, start), i = first;
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
        e = e ? e : add_part(p, gc);
        end = gc.start;
        paused = true;
    }
    return e ? e : add_between(l, p, run, start, end, paused);
}

/*
 * Returns the pool for whose connection a request's thread waited at a time, according to the
 * request's children.
 */
static const char *pool_at(const struct request_ledger *l, const struct request_work *w,
                           uint64_t start, uint64_t end)
{
    const struct request *q = w->owner == REQUEST_NONE ? NULL : &l->r->list.data[w->owner];
    uint64_t middle = start + (end - start) / 2;
    for (uint32_t i = 0; q && i < q->children; i++) {
        const struct request_child *c = &l->r->children.data[q->first_child + i];
        if (c->thread == w->thread && strcmp(requests_text(l->r, c->kind), "pool") == 0 &&
            since_origin(l, c->start_ns) <= middle && middle < since_origin(l, c->end_ns))
            return requests_text(l->r, c->name);
    }
    return NULL;
}

/* Adds a stretch of a thread that worked for a request. */
static int add_stretch(struct request_ledger *l, struct request_parts *p, uint32_t work,
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
    if (kind == TL_RUN) {
        part.node = s->ends != TL_NONE ? s->ends : s->state;
        part.ends = TL_NONE;
        return add_run(l, p, &part, s->start, s->end);
    }
    part.cause = wait_cause(l, s->state);
    if (part.cause == CAUSE_IO)
        part.object = io_peer(l, s->state);
    else if (part.cause == CAUSE_CLASS_LOAD && stack_marks(l, s->state) & FRAME_CLASS_INIT)
        part.object = marked_class(l, s->state, FRAME_CLASS_INIT);
    else if (part.cause != CAUSE_SLEEP)
        part.object = tl_object_class(l->t, tl_context_of(l->t, s->state)->object);
    const char *pool = is_blocked(kind) && w ? pool_at(l, w, s->start, s->end) : NULL;
    if (pool)
        part.cause = CAUSE_POOL;
    if (part.cause == CAUSE_POOL)
        part.object = pool ? pool : marked_class(l, s->state, FRAME_POOL);
    return add_part(p, part);
}

/* ---- the way back ---- */

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

/*
 * Returns the work that was in progress just before a time: on the given thread if there is one,
 * otherwise the one that began last. UINT32_MAX: none.
 */
static uint32_t pick(const struct walk *w, uint64_t at, uint64_t thread)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < work_count(w); i++) {
        const struct request_work *x = work_at(w, i);
        if (since_origin(w->l, x->start_ns) >= at)
            break; /* they are sorted by start */
        if (since_origin(w->l, x->end_ns) < at)
            continue;
        if (best == UINT32_MAX || x->thread == thread || work_at(w, best)->thread != thread)
            best = i;
    }
    return best;
}

/* Returns the work that ended last before a time. UINT32_MAX: none did. */
static uint32_t pick_before(const struct walk *w, uint64_t at)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < work_count(w); i++) {
        const struct request_work *x = work_at(w, i);
        if (since_origin(w->l, x->start_ns) >= at)
            break;
        if (best == UINT32_MAX || x->end_ns >= work_at(w, best)->end_ns)
            best = i;
    }
    return best;
}

/* Adds the part of [start, at) that lies within the request, of which only the cause is known. */
static int consume(struct walk *w, uint64_t start, enum request_cause cause, uint32_t work)
{
    start = MIN(MAX(start, w->from), w->at);
    struct request_part part = {.start = start,
                                .end = w->at,
                                .thread = work == REQUEST_NONE
                                              ? TL_NONE
                                              : thread_of(w->l, w->l->r->works.data[work].thread),
                                .node = TL_NONE,
                                .ends = TL_NONE,
                                .work = work,
                                .cause = cause};
    w->at = start;
    return add_part(w->out, part);
}

/*
 * Returns the work of a thread that was in progress at a time, or that ended since another time if
 * the thread only ran from then on: a future wakes the threads that wait for it when the work that
 * completes it is over.
 */
static uint32_t work_of(const struct walk *w, uint32_t thread, uint64_t since, uint64_t at)
{
    uint64_t id = w->l->t->threads[thread].id;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < work_count(w); i++) {
        const struct request_work *x = work_at(w, i);
        if (since_origin(w->l, x->start_ns) >= at)
            break;
        if (x->thread == id && since_origin(w->l, x->end_ns) >= since)
            best = i;
    }
    uint64_t end = best == UINT32_MAX ? at : since_origin(w->l, work_at(w, best)->end_ns);
    if (end >= at)
        return best;
    struct stretch s = stretch_before(w->l, thread, end, at);
    bool ran = s.start == end && (s.state == TL_NONE || tl_node(w->l->t, s.state).kind == TL_RUN);
    return ran ? best : UINT32_MAX;
}

/*
 * Returns the work for the same request that another thread was doing when it ended this wait.
 * UINT32_MAX: there is none.
 */
static uint32_t woken_by(const struct walk *w, const struct stretch *s, uint64_t *ret_at)
{
    const struct timeline *t = w->l->t;
    if (s->state == TL_NONE || s->ends == TL_NONE || !is_blocked(tl_node(t, s->state).kind) ||
        !graph_woken(t, s->ends))
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
 * Divides the time before `at` back to where the work began, or to where another thread's work for
 * the same request ended a wait, and returns that work. Returns UINT32_MAX when the beginning is
 * reached, or a negative errno.
 */
static int64_t walk_work(struct walk *w, uint32_t i)
{
    const struct request_work *x = work_at(w, i);
    uint32_t thread = thread_of(w->l, x->thread);
    uint64_t floor = MAX(since_origin(w->l, x->start_ns), w->from);
    if (thread == TL_NONE) {
        int e = consume(w, floor, CAUSE_UNKNOWN, work_number(w, i));
        return e ? e : (int64_t)UINT32_MAX;
    }
    while (w->at > floor) {
        struct stretch s = stretch_before(w->l, thread, floor, w->at);
        uint64_t at;
        uint32_t other = woken_by(w, &s, &at);
        if (other != UINT32_MAX) {
            int e = consume(w, at, CAUSE_RUNNABLE, work_number(w, i));
            return e ? e : (int64_t)other;
        }
        int e = add_stretch(w->l, w->out, work_number(w, i), thread, &s);
        if (e < 0)
            return e;
        w->at = s.start;
    }
    return UINT32_MAX;
}

/* Divides the time before `at` back to `floor` for as long as the thread was busy then. */
static int walk_busy(struct walk *w, uint32_t thread, uint64_t floor)
{
    int e = 0;
    floor = MAX(floor, w->from);
    while (e == 0 && thread != TL_NONE && w->at > floor) {
        struct stretch s = stretch_before(w->l, thread, floor, w->at);
        if (s.state == TL_NONE ||
            stack_is_idle(w->l->t, w->l->roles, tl_context_of(w->l->t, s.state)->stack))
            break;
        e = add_stretch(w->l, w->out, REQUEST_NONE, thread, &s);
        w->at = s.start;
    }
    return e;
}

/*
 * Divides the time between the last work and the request's end, during which the thread that ended
 * the request was busy: servers finish an answer after what is recorded as their work for it.
 */
static int walk_tail(struct walk *w)
{
    uint32_t last = pick_before(w, w->at);
    uint64_t floor = last == UINT32_MAX ? w->from : since_origin(w->l, work_at(w, last)->end_ns);
    return walk_busy(w, thread_of(w->l, w->q->end_thread), floor);
}

/*
 * Divides the time in which nothing worked for the request, back to the last work i. Between two
 * works of the same thread its server's own code ran.
 */
static int walk_gap(struct walk *w, uint32_t i, uint64_t next_thread)
{
    uint64_t end = i == UINT32_MAX ? 0 : since_origin(w->l, work_at(w, i)->end_ns);
    int e = 0;
    if (i != UINT32_MAX && work_at(w, i)->thread == next_thread)
        e = walk_busy(w, thread_of(w->l, next_thread), end);
    return e ? e : consume(w, end, CAUSE_UNKNOWN, REQUEST_NONE);
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
            uint64_t queued = since_origin(w->l, x->start_ns - x->queued_ns);
            int e = consume(w, queued, CAUSE_QUEUE, work_number(w, i));
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
    struct walk w = {.l = l, .q = q, .out = ret, .from = since_origin(l, q->start_ns)};
    w.at = since_origin(l, q->end_ns);
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

void request_parts_release(struct request_parts *p)
{
    vec_release(&p->rows);
}

int request_cpu_ns(struct request_ledger *l, const struct request *q, uint64_t *ret)
{
    struct request_parts *p = &l->scratch;
    struct walk w = {.l = l, .q = q};
    w.whole = (struct request_work){
        .start_ns = q->start_ns, .end_ns = q->end_ns, .thread = q->thread, .owner = REQUEST_NONE};
    uint64_t cpu = 0;
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < work_count(&w); i++) {
        const struct request_work *x = work_at(&w, i);
        uint32_t thread = thread_of(l, x->thread);
        bool nested = false;
        for (uint32_t k = 0; k < i && !nested; k++)
            nested = work_at(&w, k)->thread == x->thread && work_at(&w, k)->end_ns >= x->end_ns;
        uint64_t from = since_origin(l, x->start_ns), at = since_origin(l, x->end_ns);
        vec_clear(&p->rows);
        while (e == 0 && !nested && thread != TL_NONE && at > from) {
            struct stretch s = stretch_before(l, thread, from, at);
            e = add_stretch(l, p, work_number(&w, i), thread, &s);
            at = s.start;
        }
        for (size_t k = 0; k < p->rows.len; k++)
            cpu += p->rows.data[k].cause == CAUSE_CPU ? p->rows.data[k].end - p->rows.data[k].start
                                                      : 0;
    }
    *ret = cpu;
    return e;
}

/* ---- who, and where ---- */

const char *frames_method(const struct request_ledger *l, const struct frames_ref *f, uint32_t i,
                          uint32_t *ret_line)
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
 * Returns whether a frame belongs to the program and not to the pool for whose connection it waits.
 */
static bool is_program(const struct request_ledger *l, const struct frames_ref *f, uint32_t i)
{
    const char *method = frames_method(l, f, i, NULL);
    enum frame_role role =
        f->sampled ? frame_role(method) : role_of_frame(l->t, l->roles, f->first + i);
    return role == ROLE_PROGRAM && !(mark_of(method) & FRAME_POOL) &&
           strncmp(method, "com.zaxxer.hikari.", strlen("com.zaxxer.hikari.")) != 0;
}

const char *frames_program(const struct request_ledger *l, const struct frames_ref *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (is_program(l, f, i))
            return frames_method(l, f, i, NULL);
    return f->n ? frames_method(l, f, 0, NULL) : NULL;
}

static struct frames_ref wait_frames(const struct request_ledger *l, uint32_t node)
{
    uint32_t stack = node == TL_NONE ? TL_NONE : tl_context_of(l->t, node)->stack;
    if (stack == TL_NONE)
        return (struct frames_ref){0};
    return (struct frames_ref){l->t->stacks[stack].first, l->t->stacks[stack].len, false};
}

/*
 * Adds where a run was, dividing its time equally among its samples. Where in a run the thread had
 * no processor is unknown, so a part without a sample takes the samples next to it in the same run.
 * If there are none, what was on the stack at both ends counts.
 */
static int add_doing_run(const struct request_ledger *l, const struct request_part *p,
                         struct thread_doings *ret)
{
    const struct requests *r = l->r;
    size_t end, first = samples_of(l, p->thread, p->start, p->end, &end);
    if (end == first) {
        struct stretch s = stretch_before(l, p->thread, 0, p->end);
        uint64_t ns = p->end - p->start, from = p->start > ns ? p->start - ns : 0, to = p->end + ns;
        if (p->node != TL_NONE && tl_node(l->t, p->node).time >= p->end)
            to = MIN(to, (uint64_t)tl_node(l->t, p->node).time);
        first = samples_of(l, p->thread, MAX(from, s.start), to, &end);
    }
    struct thread_doing doing = {.thread = p->thread, .kind = p->cause};
    int e = 0;
    for (size_t i = first; e == 0 && i < end; i++) {
        const struct request_stack *s = &r->stacks.data[r->samples.data[i].stack];
        doing.ns = (p->end - p->start) / (end - first);
        doing.frames = (struct frames_ref){s->first, s->len, true};
        e = vec_push(&ret->rows, doing);
    }
    if (e || end > first)
        return e;
    struct path_segment segment = {
        .start = p->start, .end = p->end, .thread = p->thread, .node = p->node, .state = PATH_RUN};
    struct path_frames frames =
        p->node == TL_NONE ? (struct path_frames){0, 0} : path_frames(l->t, l->roles, &segment);
    doing.ns = p->end - p->start;
    doing.frames = (struct frames_ref){frames.first, frames.n, false};
    return vec_push(&ret->rows, doing);
}

static int add_doing(const struct request_ledger *l, const struct request_part *p,
                     struct thread_doings *ret)
{
    if (p->thread == TL_NONE)
        return 0;
    bool ran = p->node == TL_NONE || tl_node(l->t, p->node).kind == TL_RUN ||
               tl_node(l->t, p->node).time >= p->end;
    if (p->cause == CAUSE_CPU || p->cause == CAUSE_RUNNABLE || p->cause == CAUSE_GC ||
        p->cause == CAUSE_SAFEPOINT || (p->cause == CAUSE_CLASS_LOAD && ran))
        return add_doing_run(l, p, ret);
    struct thread_doing doing = {.ns = p->end - p->start,
                                 .thread = p->thread,
                                 .kind = p->cause,
                                 .frames = wait_frames(l, p->node)};
    return vec_push(&ret->rows, doing);
}

int request_part_stacks(struct request_ledger *l, const struct request_part *p,
                        struct thread_doings *ret)
{
    return p->cause == CAUSE_QUEUE || p->behind ? 0 : add_doing(l, p, ret);
}

/* Adds what a thread did from start to end, except that it had nothing to do. */
static int add_meanwhile(struct request_ledger *l, uint32_t thread, uint64_t start, uint64_t end,
                         struct thread_doings *ret)
{
    struct request_parts *p = &l->scratch;
    int e = 0;
    if (thread == TL_NONE)
        return 0;
    vec_clear(&p->rows);
    while (e == 0 && end > start) {
        struct stretch s = stretch_before(l, thread, start, end);
        e = add_stretch(l, p, REQUEST_NONE, thread, &s);
        end = s.start;
    }
    for (size_t i = 0; e == 0 && i < p->rows.len; i++) {
        const struct request_part *part = &p->rows.data[i];
        bool waits = part->node != TL_NONE && is_blocked(tl_node(l->t, part->node).kind);
        if (!waits || !stack_is_idle(l->t, l->roles, tl_context_of(l->t, part->node)->stack))
            e = add_doing(l, part, ret);
    }
    return e;
}

/* Returns the thread that ended a wait, or TL_NONE. */
static uint32_t waker_of(const struct timeline *t, uint32_t ends)
{
    const struct tl_node at = ends == TL_NONE ? (struct tl_node){0} : tl_node(t, ends);
    return ends != TL_NONE && graph_caused(&at, ends) ? tl_node(t, at.waker).thread : TL_NONE;
}

/*
 * Adds the owners of a lock while a part waited for it. Each node that ended another thread's wait
 * for the lock begins that thread's turn. Before the first of them the owner is the one seen at the
 * beginning of the wait.
 */
static int add_owners(struct request_ledger *l, const struct request_part *p, uint32_t object,
                      struct thread_doings *ret)
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
    int e = 0;
    for (; e == 0 && low < last && tl_node(t, l->taken[low]).time < p->end; low++) {
        const struct tl_node n = tl_node(t, l->taken[low]);
        if (n.thread == p->thread)
            continue;
        uint32_t holder = owner != TL_NONE ? owner : waker_of(t, l->taken[low]);
        e = add_meanwhile(l, holder, at, n.time, ret);
        owner = n.thread;
        at = n.time;
    }
    if (owner == TL_NONE)
        owner = waker_of(t, p->ends);
    return e ? e : owner == p->thread ? 0 : add_meanwhile(l, owner, at, p->end, ret);
}

int request_part_culprits(struct request_ledger *l, const struct request_part *p,
                          struct thread_doings *ret)
{
    const struct timeline *t = l->t;
    if (p->behind)
        return add_meanwhile(l, p->behind - 1, p->start, p->end, ret);
    switch (p->cause) {
    case CAUSE_QUEUE:
        return add_meanwhile(l, p->thread, p->start, p->end, ret);
    case CAUSE_LOCK:
    case CAUSE_PARK:
    case CAUSE_POOL:
    case CAUSE_CLASS_LOAD:
        break;
    default:
        return 0;
    }
    if (p->node == TL_NONE || !is_blocked(tl_node(t, p->node).kind))
        return 0;
    enum tl_kind kind = tl_node(t, p->node).kind;
    uint32_t object = tl_context_of(t, p->node)->object;
    bool lock = kind == TL_WAIT_LOCK || kind == TL_REACQUIRE || kind == TL_DEADLOCK ||
                (object != TL_NONE && t->objects[object].flags & TL_OBJECT_LOCK);
    if (lock && object != TL_NONE)
        return add_owners(l, p, object, ret);
    uint32_t waker = waker_of(t, p->ends);
    return waker == p->thread ? 0 : add_meanwhile(l, waker, p->start, p->end, ret);
}
