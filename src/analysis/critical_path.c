/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/critical_path.h"

#include "analysis/graph.h"
#include "timeline/idle.h"
#include "timeline/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const states[PATH_STATES] = {"run", "lock", "reacquire", "sleep",     "timer",
                                                "io",  "gc",   "preempted", "throttled", "unknown"};

static const char *const texts[PATH_STATES] = {
    [PATH_IO] = "I/O",
    [PATH_GC] = "garbage collection",
    [PATH_PREEMPTED] = "waiting for a processor",
    [PATH_THROTTLED] = "container out of CPU",
};

const char *path_state_name(enum path_state state)
{
    return state < PATH_STATES ? states[state] : "?";
}

const char *path_state_text(enum path_state state)
{
    return state < PATH_STATES && texts[state] ? texts[state] : path_state_name(state);
}

/*
 * Returns what the thread did in the interval before node n; the interval's state began at node
 * `state`.
 */
static enum path_state state_of(const struct timeline *t, uint32_t state, uint32_t n)
{
    bool timer =
        n != TL_NONE && (tl_node(t, n).edge == TL_BY_TIMER || tl_node(t, n).kind == TL_TIMEOUT);
    if (n != TL_NONE && tl_node(t, n).kind == TL_HANDOFF)
        return PATH_RUN; /* the thread has called wait(), but it still holds the lock */
    switch ((enum tl_kind)tl_node(t, state).kind) {
    case TL_RUN:
    case TL_DEAD:
        return PATH_RUN;
    case TL_SLEEP:
        return PATH_SLEEP;
    case TL_IO:
        return PATH_IO;
    case TL_PREEMPTED:
    case TL_UNMOUNTED:
        return PATH_PREEMPTED;
    case TL_WAIT_LOCK:
    case TL_DEADLOCK:
        return PATH_LOCK;
    case TL_REACQUIRE:
        return PATH_REACQUIRE;
    case TL_UNKNOWN:
        return PATH_UNKNOWN;
    default:
        return timer ? PATH_TIMER : PATH_UNKNOWN;
    }
}

/* The state of the time between a wake-up and the moment at which the woken thread runs. */
static enum path_state latency_state(enum tl_edge edge)
{
    switch (edge) {
    case TL_BY_HANDOFF:
    case TL_BY_UNPARK:
        return PATH_LOCK;
    case TL_BY_NOTIFY:
    case TL_BY_NOTIFY_ALL:
        return PATH_REACQUIRE;
    default:
        return PATH_RUN;
    }
}

struct walk {
    const struct timeline *t;
    struct critical_path *path;
    uint64_t from, at; /* [from, at) is still to be explained */
    struct graph_seen seen;
    /* of each thread: the number of the last call of running_at that visited it */
    uint32_t *visited_in;
    uint32_t visit;
};

/*
 * Adds [start, at) in front of the path, or extends the first segment if it is of the same kind,
 * and continues at start. Returns -EPROTO when the node leads outside the timeline.
 */
static int consume(struct walk *w, uint32_t thread, uint64_t start, enum path_state state,
                   uint32_t node)
{
    start = MAX(start, w->from);
    if (start >= w->at)
        return 0;
    if (node != TL_NONE && !timeline_node_holds(w->t, node))
        return -EPROTO;
    struct path_segment *last =
        w->path->segments.len ? &w->path->segments.data[w->path->segments.len - 1] : NULL;
    int r = 0;
    if (last && last->thread == thread && last->state == state && last->edge == TL_NO_EDGE &&
        last->start == w->at && state == PATH_RUN) {
        last->start = start;
        if (last->node == TL_NONE)
            last->node = node;
    } else {
        /* The object of a run's node is that of what the thread does at the end of the run. */
        bool waits = node != TL_NONE && state != PATH_RUN && tl_is_state(tl_node(w->t, node).kind);
        struct path_segment s = {.start = start,
                                 .end = w->at,
                                 .thread = thread,
                                 .node = node,
                                 .object = waits ? tl_context_of(w->t, node)->object : TL_NONE,
                                 .waker = TL_NONE,
                                 .state = state};
        r = vec_push(&w->path->segments, s);
    }
    w->at = start;
    return r;
}

/*
 * Records in the segment that begins here that the path comes from another thread, which ended the
 * wait that began at a node.
 */
static void come_from(struct walk *w, uint32_t to, uint32_t from, enum tl_edge edge, bool inferred,
                      uint32_t wait)
{
    w->path->edges[edge]++;
    w->path->inferred += inferred;
    if (w->path->segments.len == 0)
        return;
    struct path_segment *s = &w->path->segments.data[w->path->segments.len - 1];
    if (s->thread != to || s->edge != TL_NO_EDGE)
        return; /* the path spends no time on this thread */
    s->waker = from;
    s->edge = edge;
    s->inferred = inferred;
    if (wait != TL_NONE && timeline_node_holds(w->t, wait))
        s->object = tl_context_of(w->t, wait)->object;
}

/* n is the last node of a thread before some moment. Returns whether the thread is running then. */
static bool runs_on(const struct timeline *t, uint32_t n)
{
    return tl_node(t, graph_state(t, n)).kind == TL_RUN;
}

/*
 * Returns the last node that is not after a time and that precedes a given node, among threads
 * without any of the given flags, or of end_thread alone. With running_first, threads that are
 * running then come first: a thread that has just died does not contribute to what comes next.
 */
static uint32_t last_node(const struct timeline *t, uint32_t end_thread, uint64_t to,
                          uint32_t before, uint32_t without, bool running_first)
{
    uint32_t best = TL_NONE;
    bool best_runs = false;
    for (size_t i = 0; i < t->n_threads; i++) {
        const struct tl_thread *p = &t->threads[i];
        if (p->last == TL_NONE ||
            (end_thread != TL_NONE ? end_thread != i : (p->flags & without) != 0))
            continue;
        uint32_t last = p->last;
        while (last != TL_NONE && (tl_node(t, last).time > to || last >= before))
            last = graph_before(t, last);
        if (last == TL_NONE)
            continue;
        bool runs = running_first && runs_on(t, last);
        if (best == TL_NONE || runs > best_runs || (runs == best_runs && last > best)) {
            best = last;
            best_runs = runs;
        }
    }
    return best;
}

/*
 * Returns the node at which the program ends: the last node of its own threads. If these are still
 * waiting at the end of the recording, as in a server that was killed, it is the last node of any
 * other thread that was running.
 */
static uint32_t end_node(const struct timeline *t, const struct path_options *o)
{
    uint64_t to = o->to ? o->to : UINT64_MAX;
    uint32_t n =
        last_node(t, o->end_thread, to, TL_NONE, TL_THREAD_SYSTEM | TL_THREAD_DAEMON, o->to != 0);
    if (n != TL_NONE && o->end_thread == TL_NONE && !o->to && tl_node(t, n).flags & TL_BLOCKED)
        n = last_node(t, TL_NONE, to, TL_NONE, TL_THREAD_SYSTEM, true);
    return n;
}

/* Adds what a thread does after its last node n. */
static int consume_last(struct walk *w, uint32_t thread, uint32_t n)
{
    uint32_t state = graph_state_seen(w->t, n, &w->seen);
    return consume(w, thread, tl_node(w->t, n).time, state_of(w->t, state, TL_NONE), state);
}

/*
 * Among the threads of the program that are running at a time, finds the one that did something
 * last, and returns its last node before node n. Returns TL_NONE if no thread is running.
 */
static uint32_t running_at(struct walk *w, uint32_t n, uint64_t time)
{
    const struct timeline *t = w->t;
    w->visit++;
    for (uint32_t i = n; i-- > 0;) {
        const struct tl_node at = tl_node(t, i);
        if (at.time > time || w->visited_in[at.thread] == w->visit)
            continue;
        w->visited_in[at.thread] = w->visit;
        if (!(t->threads[at.thread].flags & TL_THREAD_SYSTEM) && runs_on(t, i))
            return i;
    }
    return TL_NONE;
}

/* Returns the last pause that began between two times, or NULL. */
static const struct tl_pause *pause_within(const struct timeline *t, uint64_t from, uint64_t to)
{
    size_t low = 0, high = t->n_pauses;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (t->pauses[mid].start_ns < to)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && t->pauses[low - 1].start_ns >= from ? &t->pauses[low - 1] : NULL;
}

/*
 * Two threads are woken by the VM itself and not by a thread of the program: the one that delivers
 * signals, at its start, and the one that enqueues references which a collection has cleared. The
 * path then continues with what the program was doing when the signal arrived or the collection
 * began. Returns the node to continue at, or TL_NONE when node n is not such a wake-up or nothing
 * was running. Sets *ret_r to -EPROTO when the node leads outside the timeline.
 */
static uint32_t before_vm(struct walk *w, uint32_t n, int *ret_r)
{
    const struct timeline *t = w->t;
    const struct tl_node at = tl_node(t, n);
    uint32_t before = TL_NONE;
    if (!(t->threads[at.thread].flags & TL_THREAD_SYSTEM))
        return TL_NONE;
    const char *name = tl_thread_name(t, at.thread);
    if (at.kind == TL_STARTS && strcmp(name, "Signal Dispatcher") == 0) {
        before = last_node(t, TL_NONE, at.time, n, TL_THREAD_SYSTEM, true);
    } else if (at.kind == TL_RUN && at.prev < n && tl_node(t, at.prev).kind == TL_WAIT_OBJECT &&
               !graph_woken(t, n) && strcmp(name, "Reference Handler") == 0) {
        const struct tl_pause *p = pause_within(t, tl_node(t, at.prev).time, at.time);
        before = running_at(w, n, p ? p->start_ns : at.time);
        if (before != TL_NONE && p) /* the thread waits for a processor until then */
            *ret_r = consume(w, at.thread, p->end_ns, PATH_RUN, n);
    }
    if (before == TL_NONE || *ret_r < 0)
        return before;
    if (!timeline_node_holds(t, before))
        *ret_r = -EPROTO;
    else
        *ret_r = consume_last(w, tl_node(t, before).thread, before);
    return before;
}

/* Walks back from the last node of a thread that lies before the end. */
static int walk_back(struct walk *w, uint32_t n, uint32_t thread)
{
    int r = 0;
    if (n != TL_NONE && tl_node(w->t, n).time < w->at)
        r = consume_last(w, thread, n);
    while (r == 0 && n != TL_NONE && w->at > w->from) {
        const struct tl_node at = tl_node(w->t, n);
        if (!timeline_node_holds(w->t, n))
            return -EPROTO;
        uint32_t before = before_vm(w, n, &r);
        if (before != TL_NONE) {
            n = before;
            thread = tl_node(w->t, n).thread;
        } else if (graph_woken(w->t, n)) {
            uint32_t waker = graph_waker_since(w->t, n, w->from);
            const struct tl_node from = tl_node(w->t, waker);
            uint32_t wait = graph_wait_start(w->t, n);
            r = consume(w, thread, from.time, latency_state(at.edge), wait);
            come_from(w, thread, from.thread, at.edge, at.flags & TL_INFERRED, wait);
            thread = from.thread;
            n = waker;
        } else if (at.prev >= n) {
            break;
        } else {
            uint32_t began = graph_state_seen(w->t, at.prev, &w->seen);
            enum path_state state = state_of(w->t, began, n);
            uint32_t shown = state == PATH_RUN ? n : began;
            if (state == PATH_RUN && tl_context_of(w->t, n)->stack == TL_NONE)
                shown = at.prev;
            r = consume(w, thread, tl_node(w->t, at.prev).time, state, shown);
            n = at.prev;
        }
    }
    if (r == 0 && w->at > w->from)
        r = consume(w, thread, w->from, PATH_UNKNOWN, TL_NONE);
    return r;
}

/* Splits the running segments at pauses in which no thread runs. */
static int split_at_pauses(const struct timeline *t, struct critical_path *p)
{
    if (t->n_pauses == 0)
        return 0;
    __typeof__(p->segments) old = p->segments;
    memset(&p->segments, 0, sizeof(p->segments));
    size_t k = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < old.len; i++) {
        struct path_segment s = old.data[i];
        while (k < t->n_pauses && t->pauses[k].end_ns <= s.start)
            k++;
        for (size_t j = k;
             r == 0 && s.state == PATH_RUN && j < t->n_pauses && t->pauses[j].start_ns < s.end;
             j++) {
            struct path_segment before = s, gc = s;
            gc.start = MAX(t->pauses[j].start_ns, s.start);
            gc.end = MIN(t->pauses[j].end_ns, s.end);
            gc.state = PATH_GC;
            before.end = gc.start;
            if (before.end > before.start) {
                r = vec_push(&p->segments, before);
                gc.waker = gc.object = TL_NONE;
                gc.edge = TL_NO_EDGE;
                gc.inferred = false;
            }
            if (r == 0)
                r = vec_push(&p->segments, gc);
            s.start = gc.end;
            s.waker = s.object = TL_NONE;
            s.edge = TL_NO_EDGE;
            s.inferred = false;
        }
        if (r == 0 && s.end > s.start)
            r = vec_push(&p->segments, s);
    }
    vec_release(&old);
    return r;
}

int critical_path_range(const struct timeline *t, const struct path_options *o, uint64_t *ret_from,
                        uint64_t *ret_to, uint32_t *ret_end)
{
    struct path_options within = *o;
    if (t->part_of)
        return -ENODATA;
    if (!o->to || o->to > t->end_ns)
        within.to = t->part_of_time ? t->end_ns : 0;
    uint32_t end = end_node(t, &within);
    if (end == TL_NONE || (o->to && o->from >= o->to))
        return -ENOENT;
    if (!timeline_node_holds(t, end))
        return -EPROTO;
    bool dead = tl_node(t, graph_state(t, end)).kind == TL_DEAD;
    /* A thread that has not died existed until the end of the recording. */
    uint64_t to = within.to ? within.to : dead ? tl_node(t, end).time : t->end_ns;
    /* Time before the first record is not part of the recording. */
    uint64_t from = MAX(o->from, (uint64_t)tl_node(t, 0).time);
    if (to <= from)
        return -ENOENT;
    *ret_from = from;
    *ret_to = to;
    *ret_end = end;
    return 0;
}

int critical_path(const struct timeline *t, const struct path_options *o, struct critical_path *ret)
{
    struct critical_path path = {0};
    struct walk w = {.t = t, .path = &path};
    uint32_t end;
    int r = critical_path_range(t, o, &w.from, &w.at, &end);
    if (r < 0)
        return r;
    path.makespan = w.at - w.from;
    w.visited_in = calloc(t->n_threads, sizeof(*w.visited_in));
    r = !w.visited_in ? -ENOMEM : walk_back(&w, end, tl_node(t, end).thread);
    free(w.visited_in);
    for (size_t i = 0, j = path.segments.len; r == 0 && i + 1 < j; i++) {
        struct path_segment s = path.segments.data[i];
        path.segments.data[i] = path.segments.data[--j];
        path.segments.data[j] = s;
    }
    if (r == 0)
        r = split_at_pauses(t, &path);
    if (r == 0)
        r = path_split_delays(t, &path);
    for (size_t i = 0; r == 0 && i < path.segments.len; i++) {
        const struct path_segment *s = &path.segments.data[i];
        path.length += s->end - s->start;
        path.states[s->state] += s->end - s->start;
    }
    if (r < 0)
        critical_path_release(&path);
    else
        *ret = path;
    return r;
}

size_t critical_path_after(const struct critical_path *p, size_t i, uint64_t time)
{
    size_t step = 1, hi = i;
    while (hi < p->segments.len && p->segments.data[hi].end <= time) {
        i = hi + 1;
        hi += step;
        step *= 2;
    }
    hi = MIN(hi, p->segments.len);
    while (i < hi) {
        size_t mid = i + (hi - i) / 2;
        if (p->segments.data[mid].end <= time)
            i = mid + 1;
        else
            hi = mid;
    }
    return i;
}

void critical_path_release(struct critical_path *p)
{
    vec_release(&p->segments);
}

static int by_total(const void *a, const void *b, void *t)
{
    const struct path_method *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
    return strcmp(tl_string(t, x->method), tl_string(t, y->method));
}

static uint32_t stack_of(const struct timeline *t, uint32_t node)
{
    return node == TL_NONE ? TL_NONE : tl_context_of(t, node)->stack;
}

/*
 * Returns the stack of a thread at the beginning of a run: that of the wait before it, or of the
 * last thing it did. TL_NONE when it is not known.
 */
static uint32_t stack_before(const struct timeline *t, const struct path_segment *s)
{
    uint32_t n = s->node;
    while (n != TL_NONE && tl_node(t, n).time > s->start)
        n = graph_before(t, n);
    if (n != TL_NONE && timeline_node_holds(t, n) && stack_of(t, n) == TL_NONE)
        n = graph_before(t, n);
    return n != TL_NONE && timeline_node_holds(t, n) ? stack_of(t, n) : TL_NONE;
}

static bool is_outer(const struct timeline *t, const uint8_t *kinds, uint32_t frame)
{
    return idle_role_of_frame(t, kinds, frame) != ROLE_PROGRAM ||
           strstr(tl_string(t, t->frames[frame].method), "$$Lambda");
}

struct path_frames path_frames(const struct timeline *t, const uint8_t *kinds,
                               const struct path_segment *s)
{
    uint32_t stack = stack_of(t, s->node);
    if (stack == TL_NONE)
        return (struct path_frames){0, 0};
    struct path_frames ret = {t->stacks[stack].first, t->stacks[stack].len};
    if (s->state != PATH_RUN && s->state != PATH_PREEMPTED && s->state != PATH_THROTTLED &&
        s->state != PATH_GC)
        return ret;
    uint32_t before = stack_before(t, s), common = 0;
    if (before != TL_NONE) {
        const struct tl_frame *x = &t->frames[ret.first + ret.n],
                              *y = &t->frames[t->stacks[before].first + t->stacks[before].len];
        while (common < MIN(ret.n, t->stacks[before].len) &&
               x[-1 - (int64_t)common].method == y[-1 - (int64_t)common].method)
            common++;
        ret = (struct path_frames){ret.first + ret.n - common, common};
    } else {
        /*
         * The stack of a thread that begins here contains, for its whole run, its first method or
         * the method that a lambda's proxy calls.
         */
        uint32_t outer = ret.n;
        while (outer > 0 && is_outer(t, kinds, ret.first + outer - 1))
            outer--;
        outer -= outer > 0;
        ret = (struct path_frames){ret.first + outer, ret.n - outer};
    }
    /* The event that ended the run does not belong to it. */
    uint32_t program = 0;
    while (program < ret.n && idle_role_of_frame(t, kinds, ret.first + program) != ROLE_PROGRAM)
        program++;
    return program < ret.n ? (struct path_frames){ret.first + program, ret.n - program} : ret;
}

int path_methods(const struct timeline *t, const struct critical_path *p, const uint8_t *skip,
                 struct path_methods *ret)
{
    struct seen {
        size_t row, segment;                           /* each plus 1 */
    } *seen = calloc(t->n_strings + 1, sizeof(*seen)); /* per method; the last: of damaged frames */
    struct path_methods rows = {0};
    uint8_t *kinds = idle_frame_roles(t);
    int r = seen && kinds ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < p->segments.len; i++) {
        const struct path_segment *s = &p->segments.data[i];
        struct path_frames frames =
            skip && skip[i] ? (struct path_frames){0, 0} : path_frames(t, kinds, s);
        for (uint32_t k = 0; r == 0 && k < frames.n; k++) {
            uint32_t method = t->frames[frames.first + k].method;
            struct seen *known = &seen[MIN((size_t)method, t->n_strings)];
            if (known->row == 0)
                r = vec_push(&rows.rows, ((struct path_method){.method = method}));
            if (r < 0)
                break;
            known->row = known->row ? known->row : rows.rows.len;
            struct path_method *row = &rows.rows.data[known->row - 1];
            if (k == 0 && s->state != PATH_RUN) /* where a run spent its time is unknown */
                row->self_ns += s->end - s->start;
            if (known->segment != i + 1) /* counts a recursive method once */
                row->total_ns += s->end - s->start;
            known->segment = i + 1;
        }
    }
    free(kinds);
    free(seen);
    if (r < 0) {
        vec_release(&rows.rows);
        return r;
    }
    if (rows.rows.len)
        qsort_r(rows.rows.data, rows.rows.len, sizeof(*rows.rows.data), by_total, (void *)t);
    *ret = rows;
    return 0;
}
