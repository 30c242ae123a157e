/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if.h"

#include "analysis/graph.h"
#include "analysis/replay.h"
#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static bool stack_inside(const struct timeline *t, const uint8_t *stacks, uint32_t node)
{
    uint32_t stack = tl_context_of(t, node)->stack;
    return stack != TL_NONE && stacks[stack];
}

int scaled_init(struct scaled *ret, const struct timeline *t, const struct what_if *w)
{
    struct scaled s = {0};
    int r = 0;
    if (w->lock) {
        s.objects = calloc(t->n_objects + 1, 1);
        for (size_t i = 0; s.objects && i < t->n_objects; i++)
            s.objects[i] = w->lock(t, (uint32_t)i, w->lock_arg);
        r = s.objects ? hold_list_init(&s.list, t, w->lock, w->lock_arg) : -ENOMEM;
    }
    if (r == 0 && w->method) {
        s.stacks = calloc(t->n_stacks + 1, 1);
        r = s.stacks ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < t->n_stacks; i++) {
            for (uint32_t k = 0; k < t->stacks[i].len && !s.stacks[i]; k++)
                s.stacks[i] = w->method(t, t->frames[t->stacks[i].first + k].method, w->method_arg);
        }
    }
    if (r < 0)
        scaled_release(&s);
    else
        *ret = s;
    return r;
}

void scaled_release(struct scaled *s)
{
    free(s->objects);
    hold_list_release(&s->list);
    free(s->stacks);
    *s = (struct scaled){0};
}

int replay_init(struct replay *ret, const struct timeline *t, const struct scaled *what,
                double factor)
{
    struct replay r = {.t = t, .what = what, .factor = factor};
    int result =
        what->objects ? sections_init(&r.sections, t, &what->list, what->objects, what->ends) : 0;
    if (result == 0 && !(r.saved = calloc(t->n_threads + 1, sizeof(*r.saved))))
        result = -ENOMEM;
    if (result == 0 && what->stacks && !(r.seen = calloc(t->n_threads + 1, sizeof(*r.seen))))
        result = -ENOMEM;
    if (result < 0)
        replay_release(&r);
    else
        *ret = r;
    return result;
}

void replay_release(struct replay *r)
{
    sections_release(&r->sections);
    free(r->seen);
    free(r->saved);
    *r = (struct replay){0};
}

static uint64_t scale(const struct replay *r, uint64_t all, uint64_t inside)
{
    return (all - inside) + (uint64_t)((double)inside * r->factor + 0.5);
}

uint64_t replay_own(struct replay *r, uint32_t n, uint64_t start)
{
    const struct timeline *t = r->t;
    const struct tl_node at = tl_node(t, n);
    uint64_t end = at.time, inside = 0;
    if (start >= end)
        return 0;
    if (r->what->objects)
        inside = sections_inside(&r->sections, at.thread, start, end);
    if (r->what->stacks && at.prev < n && inside < end - start) {
        /*
         * The stack of a wait says whether the wait is inside. A run has no stack; it counts as
         * inside when both the node before and the node after it are.
         */
        uint32_t state = graph_state_seen(t, at.prev, &r->seen[at.thread]);
        if (stack_inside(t, r->what->stacks, tl_node(t, state).flags & TL_BLOCKED ? state : n))
            inside = end - start;
    }
    r->scaled += inside;
    return scale(r, end - start, inside);
}

uint64_t replay_part(struct replay *r, uint32_t n, uint64_t to)
{
    uint64_t from = tl_node(r->t, n).time;
    return scale(r, to - from,
                 r->what->objects ? sections_inside(&r->sections, tl_node(r->t, n).thread, from, to)
                                  : 0);
}

uint64_t replay_node(struct replay *r, const uint64_t *times, uint32_t n)
{
    const struct tl_node at = tl_node(r->t, n);
    bool caused = graph_caused(&at, n);
    uint64_t time = at.time;
    if (at.prev == TL_NONE || graph_carried(r->t, n))
        return caused ? times[at.waker] + (time - tl_node(r->t, at.waker).time) : time;
    if (!caused)
        return times[at.prev] +
               replay_left(r, at.thread, replay_own(r, n, tl_node(r->t, at.prev).time));
    if (!graph_woken(r->t, n))
        return MAX(times[at.prev] + (time - tl_node(r->t, at.prev).time), times[at.waker]);
    return replay_woken(r, &at, tl_node(r->t, at.prev).time, times[at.prev], times[at.waker]);
}

int what_if_times(const struct timeline *t, const struct what_if *w, uint64_t *times)
{
    struct scaled what;
    struct replay r;
    int result = scaled_init(&what, t, w);
    if (result < 0)
        return result;
    result = replay_init(&r, t, &what, w->factor);
    if (result == 0) {
        struct kept kept;
        result = kept_begin(&kept, &r, times, SIZE_MAX, 0, 0);
        if (result == 0)
            result = kept_end(&kept);
        kept_release(&kept);
        replay_release(&r);
    }
    scaled_release(&what);
    return result;
}

/*
 * Returns the thread's last node that is not after a moment, or TL_NONE. It searches backward both
 * from the moment, among all nodes, and from the thread's end, whichever finds it first.
 */
static uint32_t node_at(const struct timeline *t, uint32_t thread, uint64_t at)
{
    size_t low = 0, high = t->n_nodes;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (tl_node(t, mid).time <= at)
            low = mid + 1;
        else
            high = mid;
    }
    uint32_t n = t->threads[thread].last;
    for (; low > 0 && n != TL_NONE && tl_node(t, n).time > at; low--, n = graph_before(t, n))
        if (tl_node(t, low - 1).thread == thread)
            return (uint32_t)low - 1;
    return n != TL_NONE && tl_node(t, n).time <= at ? n : TL_NONE;
}

/*
 * Returns the new time of a moment: that of the end thread's last node before it, plus the
 * unchanged time in between.
 */
static uint64_t moment(const struct timeline *t, const uint64_t *times, uint32_t thread,
                       uint64_t at)
{
    uint32_t n = node_at(t, thread, at);
    return n == TL_NONE ? at : times[n] + (at - tl_node(t, n).time);
}

/* Returns whether a thread of the program had ended at a time. */
static bool ends_before(const struct timeline *t, size_t thread, uint64_t time)
{
    uint32_t n = t->threads[thread].last;
    return n != TL_NONE && (tl_node(t, n).kind == TL_DEAD || tl_node(t, n).kind == TL_DEAD_JOIN) &&
           tl_node(t, n).time <= time &&
           !(t->threads[thread].flags & (TL_THREAD_DAEMON | TL_THREAD_SYSTEM));
}

/*
 * Returns the new end: the latest of the path's own end and the end of every other thread of the
 * program that had ended by then. (A join of a thread that is already dead waits for nothing and
 * leaves no edge; in the new schedule it may have to wait.)
 */
static uint64_t new_end(const struct timeline *t, const uint64_t *times,
                        const struct path_options *o, const struct critical_path *p)
{
    const struct path_segment *last = &p->segments.data[p->segments.len - 1];
    uint64_t end = moment(t, times, last->thread, last->end);
    for (size_t i = 0; o->end_thread == TL_NONE && i < t->n_threads; i++) {
        if (ends_before(t, i, last->end))
            end = MAX(end, times[t->threads[i].last]);
    }
    return end;
}

/* The path, and how much of it lies inside what is scaled. */
struct path_part {
    const struct timeline *t;
    const struct path_options *options;
    const struct scaled *what;
    struct critical_path path;
    uint64_t from, to; /* the range that was asked about */
    uint64_t inside;
    double spread;
    int result;
};

static void find_path(struct path_part *p)
{
    struct sections sections = {0};
    p->result = critical_path(p->t, p->options, &p->path);
    if (p->result == 0)
        p->result = path_spread(p->t, &p->path, &p->spread);
    if (p->result == 0 && p->what->objects)
        p->result = sections_init(&sections, p->t, &p->what->list, p->what->objects, p->what->ends);
    for (size_t i = 0; p->result == 0 && i < p->path.segments.len; i++) {
        const struct path_segment *s = &p->path.segments.data[i];
        uint64_t inside =
            p->what->objects ? sections_inside(&sections, s->thread, s->start, s->end) : 0;
        if (p->what->stacks && s->node != TL_NONE && stack_inside(p->t, p->what->stacks, s->node))
            inside = s->end - s->start;
        p->inside += inside;
    }
    if (p->result == 0 && sections.failed)
        p->result = -ENOMEM;
    sections_release(&sections);
}

static void *find_concurrently(void *arg)
{
    find_path(arg);
    return NULL;
}

static uint64_t makespan(const struct path_part *p, const uint64_t *times)
{
    const struct path_segment *first = &p->path.segments.data[0];
    return new_end(p->t, times, p->options, &p->path) -
           moment(p->t, times, first->thread, first->start);
}

/*
 * The same for a replay that keeps the order, for which most nodes' times are no longer available.
 */
static uint64_t makespan_kept(const struct path_part *p, const struct kept *k)
{
    const struct path_segment *first = &p->path.segments.data[0],
                              *last = &p->path.segments.data[p->path.segments.len - 1];
    uint64_t end = kept_moment(k, KEPT_TO, last->thread);
    for (size_t i = 0; p->options->end_thread == TL_NONE && i < p->t->n_threads; i++) {
        if (ends_before(p->t, i, last->end))
            end = MAX(end, kept_last(k, (uint32_t)i));
    }
    return end - kept_moment(k, KEPT_FROM, first->thread);
}

/* Replays in the recorded order while another thread finds the path. */
static int replay_concurrently(struct kept *k, struct path_part *p)
{
    pthread_t finder;
    bool concurrent = p->t->n_nodes >= CONCURRENT_NODES &&
                      pthread_create(&finder, NULL, find_concurrently, p) == 0;
    if (!concurrent)
        find_path(p);
    int result = kept_end(k);
    if (concurrent)
        (void)pthread_join(finder, NULL);
    return result < 0 ? result : p->result;
}

/*
 * Computes the three quartiles of the time that it took to hand locks over to sleeping threads; 0
 * when that never happened.
 */
static int hand_overs(const struct path_part *p, uint64_t ret[3])
{
    const struct timeline *t = p->t;
    VEC(uint64_t) took = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        const struct tl_node at = tl_node(t, i);
        if (at.time < p->from || at.time > p->to || !replay_hands_over(&at) ||
            !graph_woken(t, (uint32_t)i) || at.prev >= i)
            continue;
        uint64_t cause = tl_node(t, at.waker).time;
        if (cause >= tl_node(t, at.prev).time + t->wake_ns)
            r = vec_push(&took, at.time - cause);
    }
    if (took.len)
        qsort(took.data, took.len, sizeof(*took.data), u64_ascending);
    for (size_t i = 0; i < 3; i++)
        ret[i] = took.len ? took.data[(i + 1) * took.len / 4] : 0;
    vec_release(&took);
    return r;
}

/*
 * Computes how much shorter and longer the result with the order kept becomes if a hand-over takes
 * the first or the third quartile instead of the median. All hand-overs may shift together, because
 * how soon a processor wakes depends on how long it slept, and the changed program sleeps
 * differently.
 */
static int vary_hand_overs(double factor, const struct path_part *p, const uint64_t took[3],
                           uint64_t *times, uint64_t ret[2])
{
    uint64_t after[3] = {0};
    int result = 0;
    for (size_t i = 0; result == 0 && took[0] && i < 3; i++) {
        struct kept kept = {0};
        struct replay r;
        result = replay_init(&r, p->t, p->what, factor);
        if (result != 0)
            break;
        r.wake_as = took[i];
        result = kept_begin(&kept, &r, times, SIZE_MAX, p->from, p->to);
        if (result == 0)
            result = kept_end(&kept);
        if (result == 0)
            after[i] = makespan_kept(p, &kept);
        kept_release(&kept);
        replay_release(&r);
    }
    ret[0] = after[1] - MIN(after[0], after[1]);
    ret[1] = after[2] - MIN(after[1], after[2]);
    return result;
}

/*
 * Computes the answer and the interval in which a run is expected if it varies as much as the
 * recorded one may. Nine of ten differences between two runs lie within 1.833 standard deviations,
 * by Student's t for a variance estimated from ten batches; the standard deviation of a difference
 * is the square root of two times that of one run.
 */
static void conclude(struct what_if_answer *a, double factor, double spread,
                     const uint64_t hand_overs[2])
{
    /*
     * With nothing changed the order decided anew gives another time than the recorded one, because
     * hand-overs take their median there, which is less than their mean. The answer is the ratio of
     * the two, in which this cancels out.
     */
    a->answer =
        a->unchanged
            ? (uint64_t)((double)a->arbitrated * (double)a->before / (double)a->unchanged + 0.5)
            : a->arbitrated;
    /*
     * The recorded run would not have been longer with a shorter section, nor shorter with a longer
     * one: a difference the other way comes from the order decided anew.
     */
    if (factor < 1)
        a->answer = MIN(a->answer, a->before);
    if (factor > 1)
        a->answer = MAX(a->answer, a->before);
    a->spread = a->before ? (uint64_t)(spread * (double)a->answer / (double)a->before) : 0;
    uint64_t least = MIN(MIN(a->kept, a->arbitrated), a->answer),
             most = MAX(MAX(a->kept, a->arbitrated), a->answer),
             around = (uint64_t)(1.833 * sqrt(2) * (double)a->spread);
    a->low = least - MIN(around + hand_overs[0], least);
    a->high = most + around + hand_overs[1];
    if (factor < 1)
        a->high = MIN(a->high, a->before);
    if (factor > 1)
        a->low = MAX(a->low, a->before);
}

static int replay_in_order(double factor, struct path_part *p, uint64_t *times, size_t n_times,
                           struct what_if_answer *a)
{
    struct replay r;
    struct kept kept = {0};
    int result = replay_init(&r, p->t, p->what, factor);
    if (result != 0)
        return result;
    result = kept_begin(&kept, &r, times, n_times, p->from, p->to);
    if (result == 0)
        result = replay_concurrently(&kept, p);
    a->before = p->path.length;
    if (result == 0) {
        a->first_thread = p->path.segments.data[0].thread;
        a->last_thread = p->path.segments.data[p->path.segments.len - 1].thread;
    }
    a->scaled_ns = r.scaled;
    replay_release(&r);
    if (result == 0) {
        a->kept = a->arbitrated = makespan_kept(p, &kept);
        a->upper_bound = p->path.length - (uint64_t)((double)p->inside * (1 - factor));
    }
    kept_release(&kept);
    return result;
}

/* *ret is 0 where the order cannot be decided anew. */
static int replay_anew(double factor, const struct path_part *p, const struct holds *holds,
                       uint64_t usual, uint64_t *times, uint64_t *ret)
{
    struct replay r;
    int result = replay_init(&r, p->t, p->what, factor);
    if (result != 0)
        return result;
    r.usual = usual;
    result = replay_arbitrated(&r, holds, times);
    *ret = result > 0 ? makespan(p, times) : 0;
    replay_release(&r);
    return MIN(result, 0);
}

static int replay_both(double factor, struct path_part *p, uint64_t *times, size_t n_times,
                       struct what_if_answer *ret)
{
    struct what_if_answer a = {.decided_anew = replay_arbitrates(p->t)};
    uint64_t took[3], vary[2] = {0, 0};
    struct holds holds = {0};
    uint32_t end;
    int result = critical_path_range(p->t, p->options, &p->from, &p->to, &end);
    if (result == 0)
        result = replay_in_order(factor, p, times, n_times, &a);
    if (result == 0 && a.decided_anew)
        result = hand_overs(p, took);
    if (result == 0 && a.decided_anew)
        result = holds_collect_linked(p->t, NULL, NULL, &holds);
    if (result == 0 && a.decided_anew)
        result = replay_anew(factor, p, &holds, took[1], times, &a.arbitrated);
    if (result == 0 && a.decided_anew)
        result = replay_anew(1, p, &holds, took[1], times, &a.unchanged);
    holds_release(&holds);
    if (result == 0 && a.decided_anew)
        result = vary_hand_overs(factor, p, took, times, vary);
    /* The ratio of the two has no meaning unless both were decided anew. */
    if (result == 0 && a.decided_anew && !(a.arbitrated && a.unchanged)) {
        a.decided_anew = 0;
        a.arbitrated = a.kept;
        a.unchanged = 0;
    }
    conclude(&a, factor, p->spread, vary);
    *ret = a;
    return result;
}

bool what_if_checks(const struct timeline *t)
{
    return !replay_arbitrates(t) && t->holds && t->hold_first;
}

/* The same, with room for a given number of times. */
static int what_if_in(const struct timeline *t, const struct path_options *o,
                      const struct scaled *what, double factor, size_t n_times,
                      struct what_if_answer *ret)
{
    struct path_part p = {.t = t, .options = o, .what = what};
    uint64_t *times = malloc(n_times * sizeof(*times));
    int result = times ? replay_both(factor, &p, times, n_times, ret) : -ENOMEM;
    free(times);
    critical_path_release(&p.path);
    return result;
}

/* The same, with room for as many times as are needed. */
static int what_if_with(const struct timeline *t, const struct path_options *o,
                        const struct scaled *what, double factor, struct what_if_answer *ret)
{
    size_t all = t->n_nodes + 1;
    int result = what_if_in(t, o, what, factor,
                            replay_arbitrates(t) ? all : MIN(all, (size_t)KEPT_TIMES), ret);
    return result == -ERANGE ? what_if_in(t, o, what, factor, all, ret) : result;
}

/* Replays with locks in the recorded order and with other inferred ends. */
static int replay_with_ends(const struct path_part *p, const struct scaled *what, double factor,
                            size_t n_times, uint64_t *ret)
{
    struct replay r = {0};
    struct kept kept = {0};
    uint64_t *times = malloc(n_times * sizeof(*times));
    int result = times ? replay_init(&r, p->t, what, factor) : -ENOMEM;
    if (result == 0)
        result = kept_begin(&kept, &r, times, n_times, p->from, p->to);
    if (result == 0)
        result = kept_end(&kept);
    if (result == 0)
        *ret = makespan_kept(p, &kept);
    kept_release(&kept);
    replay_release(&r);
    free(times);
    return result;
}

static uint64_t moved(uint64_t ns, int64_t by)
{
    return by < 0 ? ns - MIN((uint64_t)-by, ns) : ns + (uint64_t)by;
}

/*
 * Widens the interval to the results for the earliest and the latest ends that the recording
 * allows. Changes of less than a thousandth of the time are ignored, because two runs differ by
 * more.
 */
static int widen(const struct timeline *t, const struct path_options *o, struct scaled *what,
                 double factor, struct what_if_answer *a)
{
    static const enum hold_ends other[] = {HOLD_ENDS_AT_ONCE, HOLD_ENDS_LATE};
    struct path_part p = {.t = t, .options = o, .what = what};
    uint64_t unsure[ARRAY_SIZE(other)] = {0}, low = a->low, high = a->high;
    uint32_t end;
    if (what->objects)
        hold_list_unsure(&what->list, t, what->objects, &unsure[0], &unsure[1]);
    int result = critical_path_range(t, o, &p.from, &p.to, &end);
    /* the two ends of the path, which is that of the recording */
    const struct path_segment ends[] = {{.end = p.to, .thread = a->first_thread},
                                        {.end = p.to, .thread = a->last_thread}};
    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(ends); i++)
        result = vec_push(&p.path.segments, ends[i]);
    for (size_t i = 0; result == 0 && i < ARRAY_SIZE(other); i++) {
        size_t all = t->n_nodes + 1;
        size_t some = replay_arbitrates(t) ? all : MIN(all, KEPT_TIMES);
        uint64_t kept = 0;
        a->ends_ns[i] = a->answer;
        if ((double)unsure[i] * fabs(1 - factor) <= (double)a->before / 1000)
            continue;
        what->ends = other[i];
        result = replay_with_ends(&p, what, factor, some, &kept);
        if (result == -ERANGE)
            result = replay_with_ends(&p, what, factor, all, &kept);
        int64_t more = (int64_t)kept - (int64_t)a->kept;
        a->ends_inferred |= fabs((double)more) > (double)a->before / 1000;
        a->ends_ns[i] = moved(a->answer, more);
        low = MIN(low, moved(a->low, more));
        high = MAX(high, moved(a->high, more));
    }
    a->low = factor > 1 ? MAX(low, a->before) : low;
    a->high = factor < 1 ? MIN(high, a->before) : high;
    critical_path_release(&p.path);
    return result;
}

int what_if(const struct timeline *t, const struct path_options *o, const struct what_if *w,
            struct what_if_answer *ret)
{
    struct scaled what;
    struct what_if_answer a = {0};
    int result = scaled_init(&what, t, w);
    if (result < 0)
        return result;
    result = what_if_with(t, o, &what, w->factor, &a);
    if (result == 0)
        result = widen(t, o, &what, w->factor, &a);
    if (result == 0)
        *ret = a;
    scaled_release(&what);
    return result;
}
