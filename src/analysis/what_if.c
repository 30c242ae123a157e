/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if.h"

#include "analysis/graph.h"
#include "analysis/possible.h"
#include "analysis/replay.h"
#include "base/nth.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int what_if_times(const struct timeline *t, const struct what_if *w, uint64_t *times)
{
    struct scaled what;
    struct replay r;
    int result = scaled_init(&what, t, w);
    if (result < 0)
        return result;
    result = replay_init(&r, t, &what, w->factor, HOLD_ENDS_LIKELY);
    if (result == 0) {
        struct replay_kept kept = {0};
        uint64_t *all = malloc((t->n_nodes + 1) * (1 + KEPT_MORE) * sizeof(*all));
        result = all ? replay_kept_begin(&kept, t, &r, 1, all, SIZE_MAX, 0, 0) : -ENOMEM;
        if (result == 0)
            result = replay_kept_end(&kept);
        for (size_t i = 0; result == 0 && i < t->n_nodes; i++)
            times[i] = all[i * (1 + KEPT_MORE)];
        free(all);
        replay_kept_release(&kept);
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
    uint64_t from, to; /* the range of time that was asked about */
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
        p->result = sections_init(&sections, p->t, &p->what->list, p->what->objects);
    for (size_t i = 0; p->result == 0 && i < p->path.segments.len; i++) {
        const struct path_segment *s = &p->path.segments.data[i];
        uint64_t inside = p->what->objects ? sections_inside(&sections, s->thread, s->start, s->end,
                                                             HOLD_ENDS_LIKELY)
                                           : 0;
        if (p->what->stacks && s->node != TL_NONE &&
            replay_stack_inside(p->t, p->what->stacks, s->node))
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

/* Returns the makespan that results from the new times of all nodes. */
static uint64_t makespan(const struct path_part *p, const uint64_t *times)
{
    const struct path_segment *first = &p->path.segments.data[0];
    return new_end(p->t, times, p->options, &p->path) -
           moment(p->t, times, first->thread, first->start);
}

/*
 * Returns the makespan of a replay that keeps the recorded order. Most nodes' times are no longer
 * available then.
 */
static uint64_t makespan_kept(const struct path_part *p, const struct replay_kept *k, size_t replay)
{
    const struct path_segment *first = &p->path.segments.data[0],
                              *last = &p->path.segments.data[p->path.segments.len - 1];
    uint64_t end = replay_kept_moment(k, replay, KEPT_TO, last->thread);
    for (size_t i = 0; p->options->end_thread == TL_NONE && i < p->t->n_threads; i++) {
        if (ends_before(p->t, i, last->end))
            end = MAX(end, replay_kept_last(k, replay, (uint32_t)i));
    }
    return end - replay_kept_moment(k, replay, KEPT_FROM, first->thread);
}

/*
 * Replays in the recorded order. Unless the path is already known, another thread finds it at the
 * same time.
 */
static int replay_concurrently(struct replay_kept *k, struct path_part *p)
{
    pthread_t finder;
    bool find = p->path.segments.len == 0;
    bool concurrent = find && p->t->n_nodes >= CONCURRENT_NODES &&
                      pthread_create(&finder, NULL, find_concurrently, p) == 0;
    if (find && !concurrent)
        find_path(p);
    int result = replay_kept_end(k);
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
    struct tl_reader nodes = {.t = t};
    VEC(uint64_t) took = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        const struct tl_node *at = tl_read(&nodes, (uint32_t)i);
        uint64_t cause;
        if (at->time < p->from || at->time > p->to || !replay_hands_over(at) || at->prev >= i ||
            !graph_woken_at(t, at, (uint32_t)i, &cause))
            continue;
        if (cause >= tl_node(t, at->prev).time + t->wake_ns)
            r = vec_push(&took, at->time - cause);
    }
    for (size_t i = 0; i < 3; i++)
        ret[i] = took.len ? nth_number(took.data, took.len, (i + 1) * took.len / 4) : 0;
    vec_release(&took);
    return r;
}

/* A replay in the recorded order. */
struct in_order {
    enum hold_ends ends;
    uint64_t wake_as; /* as in struct replay */
    uint64_t result;  /* the makespan */
};

/* The replays that an answer needs; the first one assumes nothing. */
struct all_in_order {
    struct in_order each[KEPT_REPLAYS];
    size_t n;
    uint64_t scaled_ns;
};

/* Makes n replays at a time, with times of this many nodes. */
static int replay_with(struct path_part *p, double factor, struct in_order *each, size_t n,
                       size_t n_times, uint64_t *ret_scaled)
{
    struct replay replays[KEPT_REPLAYS] = {0};
    struct replay_kept kept = {0};
    uint64_t *times = malloc(n_times * (n + KEPT_MORE) * sizeof(*times));
    int result = times ? 0 : -ENOMEM;
    for (size_t i = 0; result == 0 && i < n; i++) {
        result = replay_init(&replays[i], p->t, p->what, factor, each[i].ends);
        replays[i].wake_as = each[i].wake_as;
    }
    if (result == 0)
        result = replay_kept_begin(&kept, p->t, replays, n, times, n_times, p->from, p->to);
    if (result == 0)
        result = replay_concurrently(&kept, p);
    for (size_t i = 0; result == 0 && i < n; i++)
        each[i].result = makespan_kept(p, &kept, i);
    *ret_scaled = replays[0].scaled;
    replay_kept_release(&kept);
    for (size_t i = 0; i < n; i++)
        replay_release(&replays[i]);
    free(times);
    return result;
}

/* Makes all replays, one after the other if the times of all nodes must be kept. */
static int replay_in_order(struct path_part *p, double factor, struct all_in_order *a)
{
    size_t all = p->t->n_nodes + 1;
    uint64_t scaled;
    int result = replay_with(p, factor, a->each, a->n, replay_kept_times(p->t), &a->scaled_ns);
    if (result != -ERANGE)
        return result;
    result = replay_with(p, factor, a->each, 1, all, &a->scaled_ns);
    for (size_t i = 1; result == 0 && i < a->n; i++)
        result = replay_with(p, factor, &a->each[i], 1, all, &scaled);
    return result;
}

/*
 * Returns by how much a run may differ from others, given its standard deviation. Nine of ten
 * differences between two runs lie within 1.833 standard deviations, by Student's t for a variance
 * estimated from ten batches; the standard deviation of a difference is the square root of two
 * times that of one run.
 */
static uint64_t differs(double spread)
{
    return (uint64_t)(1.833 * sqrt(2) * spread);
}

/*
 * Computes the answer and the interval in which a run is expected if it varies as much as the
 * recorded one may.
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
     * A shorter section cannot make the run longer, nor a longer section make it shorter. If the
     * result says so, deciding the order anew is the cause.
     */
    if (factor < 1)
        a->answer = MIN(a->answer, a->before);
    if (factor > 1)
        a->answer = MAX(a->answer, a->before);
    a->spread = a->before ? (uint64_t)(spread * (double)a->answer / (double)a->before) : 0;
    uint64_t least = MIN(MIN(a->kept, a->arbitrated), a->answer),
             most = MAX(MAX(a->kept, a->arbitrated), a->answer),
             around = differs((double)a->spread);
    a->low = least - MIN(around + hand_overs[0], least);
    a->high = most + around + hand_overs[1];
    if (factor < 1)
        a->high = MIN(a->high, a->before);
    if (factor > 1)
        a->low = MAX(a->low, a->before);
}

/*
 * Decides the order of locks anew, with the change and without it. The ratio of the two is
 * meaningful only if that is possible for both.
 */
static int replay_both_anew(double factor, const struct path_part *p, uint64_t usual,
                            struct what_if_answer *a)
{
    const double factors[] = {factor, 1};
    struct replay replays[ARRAY_SIZE(factors)] = {0};
    uint64_t *times[ARRAY_SIZE(factors)];
    struct holds holds = {0};
    int result = holds_collect_linked(p->t, NULL, NULL, &holds);
    for (size_t i = 0; i < ARRAY_SIZE(factors); i++) {
        times[i] = malloc((p->t->n_nodes + 1) * sizeof(*times[i]));
        if (result == 0)
            result = times[i]
                         ? replay_init(&replays[i], p->t, p->what, factors[i], HOLD_ENDS_LIKELY)
                         : -ENOMEM;
        replays[i].usual = usual;
    }
    if (result == 0)
        result = replay_arbitrated(replays, &holds, times);
    uint64_t changed = result > 0 ? makespan(p, times[0]) : 0;
    uint64_t unchanged = result > 0 ? makespan(p, times[1]) : 0;
    a->decided_anew = changed && unchanged;
    if (a->decided_anew) {
        a->arbitrated = changed;
        a->unchanged = unchanged;
    }
    for (size_t i = 0; i < ARRAY_SIZE(factors); i++) {
        replay_release(&replays[i]);
        free(times[i]);
    }
    holds_release(&holds);
    return MIN(result, 0);
}

bool what_if_checks(const struct timeline *t)
{
    return !replay_arbitrates(t) && t->holds && t->hold_first;
}

static uint64_t moved(uint64_t ns, int64_t by)
{
    return by < 0 ? ns - MIN((uint64_t)-by, ns) : ns + (uint64_t)by;
}

/*
 * The earliest and the latest ends of sections that the recording allows, besides the likely ones.
 */
static const enum hold_ends other_ends[] = {HOLD_ENDS_AT_ONCE, HOLD_ENDS_LATE};

/*
 * Widens the interval to the results for the earliest and the latest ends that the recording
 * allows. Changes of less than a thousandth of the time are ignored, because two runs differ by
 * more.
 */
static void widen(const struct all_in_order *all, double factor, struct what_if_answer *a)
{
    uint64_t low = a->low, high = a->high;
    a->ends_ns[0] = a->ends_ns[1] = a->answer;
    for (size_t i = 1; i < all->n; i++) {
        const struct in_order *one = &all->each[i];
        if (one->ends == HOLD_ENDS_LIKELY)
            continue;
        int64_t more = (int64_t)one->result - (int64_t)a->kept;
        a->ends_inferred |= fabs((double)more) > (double)a->before / 1000;
        a->ends_ns[one->ends == HOLD_ENDS_LATE] = moved(a->answer, more);
        low = MIN(low, moved(a->low, more));
        high = MAX(high, moved(a->high, more));
    }
    a->low = factor > 1 ? MAX(low, a->before) : low;
    a->high = factor < 1 ? MIN(high, a->before) : high;
}

/*
 * Computes how much shorter and longer the result with the order kept becomes if a hand-over takes
 * the first or the third quartile instead of the median. All hand-overs may shift together, because
 * how soon a processor wakes depends on how long it slept, and the changed program sleeps
 * differently.
 */
static void vary_hand_overs(const struct all_in_order *all, const uint64_t took[3], uint64_t ret[2])
{
    if (!took[0])
        return;
    const struct in_order *quartiles = &all->each[all->n - 3];
    ret[0] = quartiles[1].result - MIN(quartiles[0].result, quartiles[1].result);
    ret[1] = quartiles[2].result - MIN(quartiles[1].result, quartiles[2].result);
}

/* Lists the replays in the recorded order that the answer needs. */
static struct all_in_order plan(const struct path_part *p, double factor, const uint64_t took[3])
{
    struct all_in_order all = {.n = 1};
    uint64_t unsure[ARRAY_SIZE(other_ends)] = {0}, before = p->to - p->from;
    if (p->what->objects)
        hold_list_unsure(&p->what->list, p->t, p->what->objects, &unsure[0], &unsure[1]);
    for (size_t i = 0; i < ARRAY_SIZE(other_ends); i++)
        if ((double)unsure[i] * fabs(1 - factor) > (double)before / 1000)
            all.each[all.n++].ends = other_ends[i];
    for (size_t i = 0; took[0] && i < 3; i++)
        all.each[all.n++].wake_as = took[i];
    return all;
}

/* Returns by how much a run of this length may differ from others. */
static uint64_t differs_at(const struct path_part *p, uint64_t length)
{
    return differs(p->path.length ? p->spread * (double)length / (double)p->path.length : 0);
}

/*
 * Computes what is possible besides what a replay can know. For a timeline that is too large to
 * count it, the bounds are that all of the time is inside, and that none is.
 */
static int find_possible(struct path_part *p, double factor, struct what_if_answer *a)
{
    struct path_part wider = *p;
    struct scaled wide;
    struct in_order one = {.ends = HOLD_ENDS_LATE};
    uint64_t inside, alone, scaled;
    bool more;
    a->least = MIN(a->low, (uint64_t)(factor * (double)a->before));
    a->most = MAX(a->high, factor < 1 ? a->before : (uint64_t)(factor * (double)a->before));
    if (factor == 1 || !possible_counts(p->t))
        return 0;
    int result = possible_sections(p->t, p->what, &wide, &more);
    if (result < 0)
        return result;
    wider.what = more ? &wide : p->what;
    a->least = a->low;
    if (factor < 1 && more) {
        result = replay_with(&wider, factor, &one, 1, p->t->n_nodes + 1, &scaled);
        uint64_t around = differs_at(p, one.result);
        a->least = MIN(a->low, one.result - MIN(around, one.result));
    }
    if (result == 0)
        result = possible_alone(p->t, factor < 1 ? p->what : wider.what,
                                factor < 1 ? HOLD_ENDS_AT_ONCE : HOLD_ENDS_LATE, p->from, p->to,
                                &inside, &alone);
    if (result == 0) {
        uint64_t part = (uint64_t)(fabs(factor - 1) * (double)(factor < 1 ? alone : inside));
        uint64_t most = factor < 1 ? a->before - part : a->before + part;
        most = MAX(a->high, most + differs_at(p, most));
        a->most = factor < 1 ? MIN(a->before, most) : most;
    }
    possible_release(&wide);
    return result;
}

static int answer(struct path_part *p, double factor, bool bounds, struct what_if_answer *a)
{
    uint64_t took[3] = {0}, vary[2] = {0, 0};
    uint32_t end;
    a->decided_anew = replay_arbitrates(p->t);
    int result = critical_path_range(p->t, p->options, &p->from, &p->to, &end);
    if (result == 0 && a->decided_anew)
        result = hand_overs(p, took);
    if (result < 0)
        return result;
    struct all_in_order all = plan(p, factor, took);
    result = replay_in_order(p, factor, &all);
    if (result < 0)
        return result;
    a->before = p->path.length;
    a->scaled_ns = all.scaled_ns;
    a->kept = a->arbitrated = all.each[0].result;
    a->upper_bound = p->path.length - (uint64_t)((double)p->inside * (1 - factor));
    if (a->decided_anew)
        result = replay_both_anew(factor, p, took[1], a);
    vary_hand_overs(&all, took, vary);
    conclude(a, factor, p->spread, vary);
    widen(&all, factor, a);
    return result == 0 && bounds ? find_possible(p, factor, a) : result;
}

int what_if(const struct timeline *t, const struct path_options *o, const struct what_if *w,
            struct what_if_answer *ret)
{
    struct scaled what;
    struct what_if_answer a = {0};
    int result = scaled_init(&what, t, w);
    if (result < 0)
        return result;
    struct path_part p = {.t = t, .options = o, .what = &what};
    result = answer(&p, w->factor, w->bounds, &a);
    if (result == 0)
        *ret = a;
    critical_path_release(&p.path);
    scaled_release(&what);
    return result;
}
