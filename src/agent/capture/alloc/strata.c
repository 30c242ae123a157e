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
 * Adds `more` objects of about `size` bytes, which no tracked object represents, to the estimate of
 * what is alive of a site, or subtracts them: as many as are alive of its others. `settled` of them
 * are among the site's allocated objects.
 */
static void add_live(int64_t number, double more, double settled, double size)
{
    /* Objects that were allocated last may be alive more often, or less often. */
    const double unsure = 0.05;
    struct site *s = sites_at(number);
    if (!s)
        return;
    double others = MAX(s->allocated.objects - settled, s->live.objects);
    double alive = (s->live.objects + 0.5) / (others + 1);
    double objects = MAX(more * alive, -s->live.objects);
    s->live.objects += objects;
    s->live.bytes += MAX(objects * size, -s->live.bytes);
    if (more > 0) {
        double variance = more * more * MAX(alive * (1 - alive), unsure);
        s->variance.objects += variance;
        s->variance.bytes += variance * size * size;
        s->most = MAX(s->most, more);
        s->tracked = true;
    }
}

/*
 * A stratum that has not ended: none of its objects is tracked yet, or one is that represents more
 * objects than have been counted.
 */
static void complete_live(const struct alloc_sampling *l, const struct alloc_counter *c)
{
    uint64_t from = l->end - l->gap, count = __atomic_load_n(&c->count, __ATOMIC_RELAXED);
    if (!l->end || l->gap <= 1 || l->site < 0 || count < from || !alloc_point(l->point)->offered)
        return;
    bool drawn = __atomic_load_n(&c->next, __ATOMIC_RELAXED) >= l->end;
    double more = (double)MIN(count - from, l->gap) - (drawn ? (double)l->gap : 0);
    double settled = l->objects > from ? (double)(l->objects - from) : 0;
    add_live(l->site, more, settled, (double)alloc_size_of(l->point, c));
}

void alloc_complete_live(void)
{
    if (alloc_follow != FOLLOW_STACKS)
        return;
    for (struct alloc_block *b = alloc_blocks; b; b = b->next)
        for (size_t i = 0; i < b->samplings.len; i++)
            complete_live(&b->samplings.data[i], alloc_counter_of(b, b->samplings.data[i].point));
}

void alloc_forget_sampling(struct alloc_block *b, struct alloc_sampling *l)
{
    struct alloc_counter *c = alloc_counter_of(b, l->point);
    settle_sampling(l, c);
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
