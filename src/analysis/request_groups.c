/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_groups.h"

#include "analysis/request_confirmed.h"
#include "base/hash.h"
#include "base/map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The sum of the times that have the same two keys. */
struct tally_row {
    uint64_t a, b, ns;
    struct thread_activity activity; /* one of the activities that were added */
};

struct tally {
    struct map at;
    VEC(struct tally_row) rows;
};

/* A cause that is being summed up. */
struct sum {
    enum request_cause cause;
    const char *object;
    struct estimate slow, typical, most; /* most: how often it took the most time */
    uint64_t of_request;                 /* of the current request */
    struct tally own, culprits;
    struct tally busy; /* by the name of the request */
};

struct summing {
    struct request_ledger *l;
    const struct requests *r;
    const struct timeline *t;
    struct map at;
    VEC(struct sum) sums;
    struct request_parts parts;
    struct thread_activities activities;
    struct estimate_sample slow, typical;
    struct cpu_check slow_check, typical_check;
    struct cpu_excess slow_excess, typical_excess; /* in the requests' own threads */
    struct hidden_waits slow_hidden, typical_hidden;
    struct hidden_time slow_hides, typical_hides;
    double weight; /* of the request that is being added */
};

static uint64_t text_key(const char *s)
{
    return s ? hash_bytes(s, strlen(s)) : 0;
}

/* Returns whether a sum is that of the time in which the requests' own threads ran. */
static bool is_cpu(const struct sum *sum)
{
    return sum->cause == CAUSE_CPU && !sum->object;
}

static int tally_add(struct tally *y, uint64_t a, uint64_t b,
                     const struct thread_activity *activity, double weight)
{
    bool added = false;
    uint64_t *at = map_at(&y->at, hash_u64(a) ^ b, y->rows.len, &added);
    uint64_t ns = (uint64_t)((double)activity->ns * weight);
    if (!at)
        return -ENOMEM;
    if (added)
        return vec_push(&y->rows, ((struct tally_row){a, b, ns, *activity}));
    y->rows.data[*at].ns += ns;
    return 0;
}

static void tally_release(struct tally *y)
{
    map_release(&y->at);
    vec_release(&y->rows);
}

static struct sum *sum_of(struct summing *s, const struct request_part *p)
{
    bool added = false;
    /* Pauses and classes have many names, but are one cause. */
    bool one = request_cause_is_one(p->cause);
    const char *object = p->cause == CAUSE_GC ? NULL : p->object;
    uint64_t key = hash_u64((uint64_t)p->cause + 1) ^ (one ? 0 : text_key(object));
    uint64_t *at = map_at(&s->at, key, s->sums.len, &added);
    if (!at)
        return NULL;
    if (added && vec_push(&s->sums, ((struct sum){.cause = p->cause, .object = object})) < 0)
        return NULL;
    struct sum *sum = &s->sums.data[*at];
    if (text_key(sum->object) != text_key(object))
        sum->object = NULL;
    return sum;
}

static uint64_t frames_key(const struct frames_ref *f)
{
    return f->n ? (uint64_t)f->sampled << 63 | (uint64_t)f->n << 40 | f->first : 0;
}

static int add_activities(struct summing *s, struct tally *to)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < s->activities.rows.len; i++) {
        const struct thread_activity *d = &s->activities.rows.data[i];
        e = tally_add(to, (uint64_t)d->kind << 32 | d->thread, frames_key(&d->frames), d,
                      s->weight);
    }
    return e;
}

/* While a task lay in a queue, its worker was busy with other requests: adds the names of these. */
static int add_busy(struct summing *s, struct sum *sum, const struct request_part *p)
{
    enum { LOOKED_AT = 64 };

    const struct requests *r = s->r;
    int64_t start = (int64_t)(p->start + s->t->origin_ns),
            end = start + (int64_t)(p->end - p->start);
    uint64_t id = s->t->threads[p->thread].id;
    size_t i = requests_work_at(r, id, end);
    int e = 0;
    for (int looked = 0; e == 0 && i-- > 0 && looked < LOOKED_AT; looked++) {
        const struct request_work *w = &r->works.data[r->by_thread.data[i]];
        if (w->thread != id)
            break;
        if (w->end_ns <= start || w->owner == REQUEST_NONE)
            continue;
        struct thread_activity activity = {
            .ns = (uint64_t)(MIN(end, w->end_ns) - MAX(start, w->start_ns))};
        e = tally_add(&sum->busy, r->list.data[w->owner].name, 0, &activity, s->weight);
    }
    return e;
}

/*
 * Adds a part of a slow request to its cause: what its own thread did, and what the threads did
 * that are to blame.
 */
static int add_slow(struct summing *s, struct sum *sum, const struct request_part *p)
{
    vec_clear(&s->activities.rows);
    int e = request_part_stacks(s->l, p, &s->activities);
    e = e ? e : add_activities(s, &sum->own);
    vec_clear(&s->activities.rows);
    e = e ? e : request_part_culprits(s->l, p, &s->activities);
    e = e ? e : add_activities(s, &sum->culprits);
    if (e == 0 && p->cause == CAUSE_QUEUE && p->thread != TL_NONE)
        e = add_busy(s, sum, p);
    return e;
}

/* Returns how many requests a slow or typical one stands for. */
static double weight_of(const struct request_group *g, const struct request *q, bool slow)
{
    return slow && g->equal ? (double)g->all / (double)g->slow.len : (double)q->weight;
}

static uint32_t stratum_of(const struct request_group *g, const struct request *q, bool slow)
{
    return slow && g->equal ? 0 : q->stratum;
}

static int add_sample(struct summing *s, const struct request_group *g, bool slow)
{
    const uint32_t *list = slow ? g->slow.data : g->typical.data;
    size_t n = slow ? g->slow.len : g->typical.len;
    struct estimate_sample *to = slow ? &s->slow : &s->typical;
    int e = 0;
    for (size_t i = 0; e == 0 && i < n; i++) {
        const struct request *q = &s->r->list.data[list[i]];
        e = estimate_sample_add(to, stratum_of(g, q, slow), weight_of(g, q, slow));
    }
    for (size_t i = 0; e == 0 && i < n; i++) {
        const struct request *q = &s->r->list.data[list[i]];
        estimate_sample_spread(to, stratum_of(g, q, slow), weight_of(g, q, slow));
    }
    return e;
}

/* Adds what a request spent on each cause to the means. */
static int add_values(struct summing *s, uint32_t stratum, bool slow)
{
    const struct estimate_sample *sample = slow ? &s->slow : &s->typical;
    struct sum *largest = NULL;
    int e = 0;
    for (size_t k = 0; e == 0 && k < s->sums.len; k++) {
        struct sum *sum = &s->sums.data[k];
        if (sum->of_request)
            e = estimate_add(slow ? &sum->slow : &sum->typical, sample, stratum, s->weight,
                             (double)sum->of_request);
        largest = !largest || sum->of_request > largest->of_request ? sum : largest;
    }
    return e == 0 && slow && largest ? estimate_add(&largest->most, sample, stratum, s->weight, 1)
                                     : e;
}

static int add_requests(struct summing *s, const struct request_group *g, bool slow)
{
    const uint32_t *list = slow ? g->slow.data : g->typical.data;
    size_t n = slow ? g->slow.len : g->typical.len;
    int e = add_sample(s, g, slow);
    for (size_t i = 0; e == 0 && i < n; i++) {
        const struct request *q = &s->r->list.data[list[i]];
        struct request_cpu cpu = {0};
        s->weight = weight_of(g, q, slow);
        e = request_parts(s->l, q, &s->parts);
        e = e ? e : request_cpu(s->l, q, &cpu);
        cpu_check_add(slow ? &s->slow_check : &s->typical_check, &cpu, s->weight);
        hidden_waits_add(slow ? &s->slow_hidden : &s->typical_hidden, s->l, s->r, q, &s->parts,
                         s->weight);
        for (size_t k = 0; k < s->sums.len; k++)
            s->sums.data[k].of_request = 0;
        for (size_t k = 0; e == 0 && k < s->parts.rows.len; k++) {
            const struct request_part *p = &s->parts.rows.data[k];
            struct sum *sum = sum_of(s, p);
            if (!sum)
                return -ENOMEM;
            sum->of_request += p->end - p->start;
            if (slow)
                e = add_slow(s, sum, p);
        }
        e = e ? e : add_values(s, stratum_of(g, q, slow), slow);
    }
    return e;
}

/* ---- who, in one sentence ---- */

/* The content of a tally by method. */
struct method_row {
    const char *method;
    uint64_t ns;
};

static uint64_t thread_key(const struct summing *s, uint32_t thread)
{
    return thread == TL_NONE ? 0 : text_key(tl_thread_name(s->t, thread));
}

/*
 * Finds the method in which most of the time was spent, the thread that spent most there, and what
 * it did there. An empty tally sets nothing.
 */
static int culprit_of(const struct summing *s, const struct tally *y, double requests,
                      struct group_culprit *ret)
{
    struct map methods = {0}, threads = {0};
    VEC(struct method_row) rows = {0};
    size_t best = 0;
    uint64_t kinds[REQUEST_CAUSES] = {0}, most_thread = 0, most_frames = 0;
    int e = 0;
    for (size_t i = 0; e == 0 && i < y->rows.len; i++) {
        const char *method = frames_ref_program(s->l, &y->rows.data[i].activity.frames);
        bool added = false;
        uint64_t *at = map_at(&methods, text_key(method), rows.len, &added);
        e = !at ? -ENOMEM : added ? vec_push(&rows, ((struct method_row){method, 0})) : 0;
        if (e == 0)
            rows.data[*at].ns += y->rows.data[i].ns;
    }
    for (size_t i = 0; i < rows.len; i++)
        best = rows.data[i].ns > rows.data[best].ns ? i : best;
    for (size_t i = 0; e == 0 && i < y->rows.len; i++) {
        const struct tally_row *row = &y->rows.data[i];
        uint64_t key = text_key(frames_ref_program(s->l, &row->activity.frames));
        if (*map_get(&methods, key) != best)
            continue;
        uint64_t *ns = map_at(&threads, thread_key(s, row->activity.thread), 0, NULL);
        if (!ns) {
            e = -ENOMEM;
            break;
        }
        *ns += row->ns;
        kinds[row->activity.kind] += row->ns;
        if (*ns > most_thread) {
            most_thread = *ns;
            ret->thread =
                row->activity.thread == TL_NONE ? NULL : tl_thread_name(s->t, row->activity.thread);
        }
        if (row->ns > most_frames) {
            most_frames = row->ns;
            ret->frames = row->activity.frames;
        }
    }
    for (int k = 0; k < REQUEST_CAUSES; k++)
        ret->kind = kinds[k] > kinds[ret->kind] ? (enum request_cause)k : ret->kind;
    if (e == 0 && rows.len) {
        ret->method = rows.data[best].method;
        ret->ns = requests > 0 ? (double)rows.data[best].ns / requests : 0;
        ret->threads = (uint32_t)threads.len;
    }
    map_release(&methods);
    map_release(&threads);
    vec_release(&rows);
    return e;
}

static const char *busy_with(const struct summing *s, const struct tally *y)
{
    const struct tally_row *best = NULL;
    for (size_t i = 0; i < y->rows.len; i++)
        best = !best || y->rows.data[i].ns > best->ns ? &y->rows.data[i] : best;
    return best ? requests_text(s->r, s->r->names.data[best->a].name) : NULL;
}

static double difference_of(const struct group_cause *c)
{
    return c->slow_ns - c->typical_ns;
}

/* Returns what is certain of the difference between slow and typical requests. */
static double certain(const struct group_cause *c)
{
    double d = difference_of(c);
    return c->uncertain ? 0 : d > 0 ? d - c->doubt_ns : d + c->doubt_ns;
}

static int by_share(const void *a, const void *b)
{
    const struct group_cause *x = a, *y = b;
    double dx = certain(x), dy = certain(y);
    if (dx == dy) {
        dx = difference_of(x);
        dy = difference_of(y);
    }
    return dx > dy ? -1 : dx < dy ? 1 : (int)x->cause - (int)y->cause;
}

/* ---- the means ---- */

/* Sets the mean latency of a side of the group, its error, and the sum of the weights. */
static int set_mean(const struct summing *s, struct request_group *g, bool slow)
{
    const uint32_t *list = slow ? g->slow.data : g->typical.data;
    size_t n = slow ? g->slow.len : g->typical.len;
    const struct estimate_sample *sample = slow ? &s->slow : &s->typical;
    struct estimate mean = {0};
    int e = 0;
    for (size_t i = 0; e == 0 && i < n; i++) {
        const struct request *q = &s->r->list.data[list[i]];
        e = estimate_add(&mean, sample, stratum_of(g, q, slow), weight_of(g, q, slow),
                         (double)request_latency(&s->r->list.data[list[i]]));
    }
    *(slow ? &g->slow_weight : &g->typical_weight) = sample->weight;
    *(slow ? &g->slow_mean_ns : &g->typical_mean_ns) = estimate_mean(&mean, sample);
    *(slow ? &g->slow_error_ns : &g->typical_error_ns) = estimate_error(&mean, sample);
    estimate_release(&mean);
    return e;
}

/* Returns the excess of the CPU time of one side of the group in the requests' own threads. */
static struct cpu_excess excess_of(const struct summing *s, const struct cpu_check *check,
                                   const struct estimate_sample *sample, double own_ns)
{
    struct cpu_excess all = cpu_check_excess(check, (double)s->r->sample_ns, cpu_check_mean(check));
    struct cpu_excess own = cpu_excess_of(&all, check, own_ns);
    if (!(sample->weight > 0))
        return (struct cpu_excess){0};
    return (struct cpu_excess){own.ns / sample->weight, own.error_ns / sample->weight};
}

/* Finds how much CPU time is not confirmed by samples. */
static void find_excess(struct summing *s)
{
    double slow_ns = 0, typical_ns = 0;
    for (size_t i = 0; i < s->sums.len; i++)
        if (s->sums.data[i].cause == CAUSE_CPU) {
            slow_ns += s->sums.data[i].slow.sum;
            typical_ns += s->sums.data[i].typical.sum;
        }
    s->slow_excess = excess_of(s, &s->slow_check, &s->slow, slow_ns);
    s->typical_excess = excess_of(s, &s->typical_check, &s->typical, typical_ns);
}

/*
 * Returns the error of a mean: of CPU time it includes what samples do not confirm, which may have
 * another cause.
 */
static double error_of(const struct sum *sum, const struct estimate *of,
                       const struct estimate_sample *sample, const struct cpu_excess *excess)
{
    double error = estimate_error(of, sample);
    return is_cpu(sum) ? error + MIN(excess->ns, estimate_mean(of, sample)) + excess->error_ns
                       : error;
}

/* Finds how much of the CPU time can be waits that were left out. */
static void find_hidden(struct summing *s)
{
    for (size_t i = 0; i < s->sums.len; i++) {
        const struct sum *sum = &s->sums.data[i];
        if (!is_cpu(sum))
            continue;
        s->slow_hides =
            hidden_waits_mean(&s->slow_hidden, s->slow.weight, estimate_mean(&sum->slow, &s->slow),
                              error_of(sum, &sum->slow, &s->slow, &s->slow_excess));
        s->typical_hides = hidden_waits_mean(
            &s->typical_hidden, s->typical.weight, estimate_mean(&sum->typical, &s->typical),
            error_of(sum, &sum->typical, &s->typical, &s->typical_excess));
    }
}

/* Returns what waits that were left out add to the error of a cause. */
static double hidden_in(const struct sum *sum, const struct hidden_time *h)
{
    return is_cpu(sum) ? h->unsampled_ns : hidden_waits_can_be(sum->cause) ? h->ns : 0;
}

static int add_cause(const struct summing *s, const struct sum *sum, struct request_group *g)
{
    double difference = g->slow_mean_ns - g->typical_mean_ns;
    struct group_cause c = {
        .cause = sum->cause,
        .object = sum->object,
        .slow_ns = estimate_mean(&sum->slow, &s->slow),
        .typical_ns = estimate_mean(&sum->typical, &s->typical),
        .slow_error_ns = error_of(sum, &sum->slow, &s->slow, &s->slow_excess),
        .typical_error_ns = error_of(sum, &sum->typical, &s->typical, &s->typical_excess),
        .slow_requests = sum->slow.n,
        .typical_requests = sum->typical.n,
        .largest = sum->most.n,
        .most_of = estimate_mean(&sum->most, &s->slow),
        .most_error = estimate_error(&sum->most, &s->slow),
        .busy_with = busy_with(s, &sum->busy),
    };
    double slow_doubt = c.slow_error_ns, typical_doubt = c.typical_error_ns;
    double slow_hidden = hidden_in(sum, &s->slow_hides),
           typical_hidden = hidden_in(sum, &s->typical_hides);
    if (is_cpu(sum)) {
        slow_doubt = estimate_error(&sum->slow, &s->slow) +
                     MIN(cpu_excess_doubt(&s->slow_excess), c.slow_ns);
        typical_doubt = estimate_error(&sum->typical, &s->typical) +
                        MIN(cpu_excess_doubt(&s->typical_excess), c.typical_ns);
    }
    c.slow_error_ns += slow_hidden;
    c.typical_error_ns += typical_hidden;
    c.doubt_ns = hypot(slow_doubt + slow_hidden, typical_doubt + typical_hidden);
    double error = hypot(c.slow_error_ns, c.typical_error_ns);
    uint32_t requests = difference_of(&c) > 0 ? c.slow_requests : c.typical_requests;
    c.uncertain = estimate_is_uncertain(difference_of(&c), c.doubt_ns, requests);
    c.hidden = c.uncertain && !estimate_is_uncertain(difference_of(&c),
                                                     hypot(slow_doubt, typical_doubt), requests);
    c.share = difference > 0 ? difference_of(&c) / difference : 0;
    c.share_error = difference > 0 ? error / difference : 0;
    int e = culprit_of(s, &sum->own, g->slow_weight, &c.own);
    e = e ? e : culprit_of(s, &sum->culprits, g->slow_weight, &c.culprit);
    return e ? e : vec_push(&g->causes, c);
}

int request_group(struct request_ledger *l, const struct requests *r, const struct timeline *t,
                  uint32_t name, const struct group_options *o, struct request_group *ret)
{
    struct request_group g = {.name = name};
    struct summing s = {.l = l, .r = r, .t = t};
    int e = request_choose(r, name, o, &g);
    e = e ? e : add_requests(&s, &g, true);
    e = e ? e : add_requests(&s, &g, false);
    e = e ? e : set_mean(&s, &g, true);
    e = e ? e : set_mean(&s, &g, false);
    if (e == 0) {
        find_excess(&s);
        find_hidden(&s);
        g.slow_hidden_ns = s.slow_hides.ns;
        g.typical_hidden_ns = s.typical_hides.ns;
    }
    for (size_t i = 0; e == 0 && i < s.sums.len; i++)
        e = add_cause(&s, &s.sums.data[i], &g);
    vec_sort(&g.causes, by_share);
    for (size_t i = 0; i < s.sums.len; i++) {
        tally_release(&s.sums.data[i].own);
        tally_release(&s.sums.data[i].culprits);
        tally_release(&s.sums.data[i].busy);
        estimate_release(&s.sums.data[i].slow);
        estimate_release(&s.sums.data[i].typical);
        estimate_release(&s.sums.data[i].most);
    }
    estimate_sample_release(&s.slow);
    estimate_sample_release(&s.typical);
    map_release(&s.at);
    vec_release(&s.sums);
    request_parts_release(&s.parts);
    vec_release(&s.activities.rows);
    if (e < 0)
        request_group_release(&g);
    else
        *ret = g;
    return e;
}

void request_group_release(struct request_group *g)
{
    vec_release(&g->slow);
    vec_release(&g->typical);
    vec_release(&g->causes);
}

/* ---- when threads worked for requests ---- */

static int by_thread(const void *a, const void *b)
{
    const struct request_time *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int add_times(const struct requests *r, const struct request *q, struct request_times *to)
{
    int e = 0;
    to->requests++;
    if (!q->works)
        return vec_push(&to->rows, ((struct request_time){q->thread, q->start_ns, q->end_ns}));
    for (uint32_t i = 0; e == 0 && i < q->works; i++) {
        const struct request_work *w = &r->works.data[q->first_work + i];
        e = vec_push(&to->rows, ((struct request_time){w->thread, w->start_ns, w->end_ns}));
    }
    return e;
}

/* Merges intervals that overlap. */
static void join_times(struct request_times *t)
{
    size_t kept = 0;
    vec_sort(&t->rows, by_thread);
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct request_time *row = &t->rows.data[i];
        struct request_time *last = kept ? &t->rows.data[kept - 1] : NULL;
        if (last && last->thread == row->thread && row->start_ns <= last->end_ns)
            last->end_ns = MAX(last->end_ns, row->end_ns);
        else
            t->rows.data[kept++] = *row;
    }
    t->rows.len = kept;
}

int request_times(const struct requests *r, const struct group_options *o,
                  struct request_times *ret)
{
    struct request_times t = {0};
    int e = 0;
    for (uint32_t i = 0; !o && e == 0 && i < r->list.len; i++)
        e = add_times(r, &r->list.data[i], &t);
    for (uint32_t i = 0; o && e == 0 && i < r->names.len; i++) {
        struct request_group g = {.name = i};
        e = request_choose(r, i, o, &g);
        for (size_t k = 0; e == 0 && k < g.slow.len; k++)
            e = add_times(r, &r->list.data[g.slow.data[k]], &t);
        request_group_release(&g);
        e = e == -ENOENT ? 0 : e;
    }
    join_times(&t);
    if (e < 0)
        request_times_release(&t);
    else
        *ret = t;
    return e;
}

bool request_times_hold(const struct request_times *t, uint64_t thread, int64_t time_ns)
{
    size_t low = 0, high = t->rows.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct request_time *row = &t->rows.data[mid];
        if (row->thread < thread || (row->thread == thread && row->end_ns <= time_ns))
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->rows.len && t->rows.data[low].thread == thread &&
           t->rows.data[low].start_ns <= time_ns;
}

void request_times_release(struct request_times *t)
{
    vec_release(&t->rows);
}
