/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses by stratified sampling the objects whose stacks are sampled. A counter's values are
 * divided into strata that grow with the count (up to about 512 KB, or 64 KB where several stacks
 * have been found). At one randomly drawn value of each stratum the probe has the stack sampled,
 * and the whole stratum is attributed to the class and stack found. A place that is reached by
 * several paths thus divides its exact count among them without bias, whatever their order.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/session/budget.h"

/*
 * Limits of a stratum: its bytes, its share of the count so far, and the share that it may have
 * even if it has more bytes. The limits differ for places where one stack has been found and where
 * several have.
 */
enum { STRATUM_BYTES = 512 << 10, STRATUM_SHARE = 16, STRATUM_LATER = 256 };

enum { SEVERAL_BYTES = 64 << 10, SEVERAL_SHARE = 32, SEVERAL_LATER = 1024 };

uint64_t alloc_no_room;

void alloc_add(int64_t number, double objects, double bytes)
{
    struct site *site = sites_at(number);
    if (!site) {
        alloc_no_room += objects > 0 ? (uint64_t)objects : 0;
        return;
    }
    site->allocated.objects += objects;
    site->allocated.bytes += bytes;
}

/*
 * Adds what a counter has counted since the last sample to the stack of that sample. Requires the
 * lock.
 */
static void settle_sampling(struct alloc_sampling *l, const struct alloc_counter *c)
{
    const struct alloc_point *p = alloc_point(l->point);
    uint64_t objects = __atomic_load_n(&c->count, __ATOMIC_RELAXED) - l->failed;
    uint64_t bytes =
        p->kind == ALLOC_NEW ? objects * p->size : __atomic_load_n(&c[1].count, __ATOMIC_RELAXED);
    /* may be negative, when some objects were never created */
    double more = (double)(int64_t)(objects - l->objects);
    /*
     * The size may have been measured only after the first objects were counted, in an earlier
     * session.
     */
    if (objects != l->objects && l->end)
        alloc_add(l->site, more,
                  p->kind == ALLOC_NEW ? more * p->size : (double)(int64_t)(bytes - l->bytes));
    l->objects = objects;
    l->bytes = bytes;
}

void alloc_settle(JNIEnv *jni)
{
    for (struct alloc_block *b = alloc_blocks; b; b = b->next)
        for (size_t i = 0; i < b->samplings.len; i++)
            settle_sampling(&b->samplings.data[i], alloc_counter_of(b, b->samplings.data[i].point));
}

/*
 * A stratum always has one tracked object; which site it belongs to and whether it is alive are
 * random. With the share p of those alive, the variance is at most p (1 - p) of the squares, and
 * p^2 of the count's variance. That is estimated from successive strata, because half of the
 * squared difference between two of them has their variance as its mean; so a count that is divided
 * by time or by thread has no variance. The VM samples each object independently, so that the
 * number of samples varies as well.
 *
 * Few tracked objects say little about p: one is alive or not, which would leave no variance. The
 * share of all objects of the site that are alive therefore counts like one of them.
 */
double alloc_variance(const struct site *s, double live_squares, double squares, double division)
{
    if (!(squares > 0))
        return 0;
    double p = MIN(live_squares / squares, 1), n = s->squares.objects / (s->most * s->most);
    double of_all = s->allocated.objects > 0 ? s->live.objects / s->allocated.objects : p;
    double share = (n * p + MIN(MAX(of_all, 0.0), 1.0)) / (n + 1);
    return squares * share * (1 - share) + p * p * division;
}

/*
 * Adds the rest of strata to the estimate of what is alive of a site, or subtracts it: as many as
 * are alive of its other objects.
 */
static void add_live(struct site *s, const struct site_rest *rest)
{
    /* Objects that were allocated last may be alive more often, or less often. */
    const double unsure = 0.05;
    double others = MAX(s->allocated.objects - rest->settled, s->live.objects);
    /* Without the half and the one, the sum over the sites of many threads has no bias. */
    double alive = others > 0 ? s->live.objects / others : 0.5;
    double objects = MAX(rest->objects * alive, -s->live.objects);
    s->live.objects += objects;
    s->live.bytes += MAX(objects * rest->size, -s->live.bytes);
    if (rest->squares > 0) {
        double variance = rest->squares * MAX(alive * (1 - alive), unsure);
        s->variance.objects += variance;
        s->variance.bytes += variance * rest->size * rest->size;
        s->most = MAX(s->most, rest->most);
        s->tracked = true;
    }
}

/*
 * Returns what is left of a stratum that has not ended: none of its objects is tracked yet, or one
 * is that represents more objects than have been counted.
 */
static struct site_rest rest_of(const struct alloc_sampling *l, const struct alloc_counter *c)
{
    uint64_t from = l->end - l->gap, count = __atomic_load_n(&c->count, __ATOMIC_RELAXED);
    if (!l->end || l->gap <= 1 || l->site < 0 || count < from || !alloc_point(l->point)->offered)
        return (struct site_rest){0};
    bool drawn = __atomic_load_n(&c->next, __ATOMIC_RELAXED) >= l->end;
    double more = (double)MIN(count - from, l->gap);
    double none = drawn ? 0 : more;
    return (struct site_rest){.objects = more - (drawn ? (double)l->gap : 0),
                              .settled = l->objects > from ? (double)(l->objects - from) : 0,
                              .squares = none * none,
                              .most = none,
                              .size = (double)alloc_size_of(l->point, c)};
}

static void complete_live(const struct alloc_sampling *l, const struct alloc_counter *c)
{
    struct site *s = sites_at(l->site);
    struct site_rest rest = rest_of(l, c);
    if (s && rest.objects != 0)
        add_live(s, &rest);
}

/* Keeps the rest of a stratum that ends because its thread has ended. */
static void cut(const struct alloc_sampling *l, const struct alloc_counter *c)
{
    struct site *s = sites_at(l->site);
    struct site_rest rest = rest_of(l, c);
    if (!s || rest.objects == 0)
        return;
    s->cut.objects += rest.objects;
    s->cut.settled += rest.settled;
    s->cut.squares += rest.squares;
    s->cut.most = MAX(s->cut.most, rest.most);
    s->cut.size = rest.size;
}

void alloc_complete_live(void)
{
    if (alloc_follow != FOLLOW_STACKS)
        return;
    struct site *s;
    for (int64_t i = 0; (s = sites_at(i)); i++)
        if (s->cut.settled > 0)
            add_live(s, &s->cut);
    for (struct alloc_block *b = alloc_blocks; b; b = b->next)
        for (size_t i = 0; i < b->samplings.len; i++)
            complete_live(&b->samplings.data[i], alloc_counter_of(b, b->samplings.data[i].point));
}

void alloc_forget_sampling(struct alloc_block *b, struct alloc_sampling *l)
{
    struct alloc_counter *c = alloc_counter_of(b, l->point);
    settle_sampling(l, c);
    if (alloc_follow == FOLLOW_STACKS)
        cut(l, c);
    l->begin = c->count;
    l->end = 0;
    l->weight = 0;
    __atomic_store_n(&c->next, 0, __ATOMIC_RELAXED);
}

void alloc_forget(struct alloc_block *b)
{
    for (size_t i = 0; i < b->samplings.len; i++)
        alloc_forget_sampling(b, &b->samplings.data[i]);
}

void alloc_forget_all(void)
{
    for (struct alloc_block *b = alloc_blocks; b; b = b->next)
        alloc_forget(b);
}

void alloc_start_again(void)
{
    alloc_forget_all();
    alloc_begun_forget();
    alloc_no_room = 0;
    sites_start_again();
}

uint64_t alloc_random_below(uint64_t n)
{
    return budget_random() % n;
}

uint64_t alloc_size_of(uint32_t point, const struct alloc_counter *c)
{
    const struct alloc_point *p = alloc_point(point);
    return p->kind == ALLOC_NEW ? p->size : c[1].count / MAX(c->count, 1);
}

/*
 * Returns the length of the next stratum in objects: a share of the count so far, but no more than
 * a number of bytes or a small share of the count.
 */
static uint64_t stratum(const struct alloc_sampling *l, const struct alloc_counter *c)
{
    uint64_t each = alloc_size_of(l->point, c);
    uint64_t count = c->count - l->begin;
    uint64_t share = l->several ? SEVERAL_SHARE : STRATUM_SHARE;
    uint64_t later = l->several ? SEVERAL_LATER : STRATUM_LATER;
    uint64_t bytes = l->several ? SEVERAL_BYTES : STRATUM_BYTES;
    return MIN(count / share, MAX(bytes / MAX(each, 1), count / later)) + 1;
}

bool alloc_sample_due(struct alloc_sampling *l, struct alloc_counter *c)
{
    if (c->count < l->end)
        return true;
    settle_sampling(l, c);
    /* If all objects are tracked, the counts of each caller are exact as well. */
    bool each = alloc_follow == FOLLOW_ALL || sites_follow_each(c->count - l->begin);
    l->gap = !l->end || each ? 1 : stratum(l, c);
    l->end = c->count + l->gap;
    uint64_t later = alloc_random_below(l->gap);
    __atomic_store_n(&c->next, c->count + later, __ATOMIC_RELAXED);
    return later == 0;
}
