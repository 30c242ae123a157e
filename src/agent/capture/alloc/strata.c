/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose stack is looked at: stratified sampling. A counter's values are cut into strata that grow
 * with the count (to some 512 KB, or 64 KB where several stacks have been met), and at one value of
 * each, drawn at random, the probe has the stack looked at; the whole stratum is added to the class
 * and stack found. So one place that is reached on several ways divides its exact count between
 * them without bias, whatever the order in which they come.
 */
#include "agent/capture/alloc/alloc.h"

/*
 * Of a stratum, where one stack has been met and where several have: its share of the count so far,
 * its bytes, and the share that it may have though it has more bytes.
 */
enum { LOOK_BYTES = 512 << 10, LOOK_SHARE = 16, LOOK_LATER = 256 };

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

/* Adds what a counter has counted since then to the stack of the last look. Under the lock. */
static void settle_look(struct alloc_look *l, const struct alloc_counter *c)
{
    const struct alloc_point *p = alloc_point(l->point);
    uint64_t objects = __atomic_load_n(&c->count, __ATOMIC_RELAXED) - l->failed;
    uint64_t bytes =
        p->kind == ALLOC_NEW ? objects * p->size : __atomic_load_n(&c[1].count, __ATOMIC_RELAXED);
    double more = (double)(int64_t)(objects - l->objects); /* fewer, when some failed */
    /*
     * The size may have been measured after the first objects were counted, in an earlier session.
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
        for (size_t i = 0; i < b->looks.len; i++)
            settle_look(&b->looks.data[i], alloc_counter_of(b, b->looks.data[i].point));
}

void alloc_forget_look(struct alloc_block *b, struct alloc_look *l)
{
    struct alloc_counter *c = alloc_counter_of(b, l->point);
    settle_look(l, c);
    l->begin = c->count;
    l->end = 0;
    __atomic_store_n(&c->next, 0, __ATOMIC_RELAXED);
}

void alloc_forget(struct alloc_block *b)
{
    for (size_t i = 0; i < b->looks.len; i++)
        alloc_forget_look(b, &b->looks.data[i]);
}

void alloc_forget_all(void)
{
    sites_lock();
    for (struct alloc_block *b = alloc_blocks; b; b = b->next)
        alloc_forget(b);
    sites_unlock();
}

uint64_t alloc_random_below(uint64_t n)
{
    static __thread uint64_t state;
    state = state ? state : (uint64_t)(uintptr_t)&state | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

/*
 * How long the next stratum is: a share of what was counted, and no more than so many bytes or a
 * small share of it.
 */
static uint64_t stratum(const struct alloc_look *l, const struct alloc_counter *c)
{
    const struct alloc_point *p = alloc_point(l->point);
    uint64_t each = p->kind == ALLOC_NEW ? p->size : c[1].count / MAX(c->count, 1),
             count = c->count - l->begin;
    uint64_t share = l->several ? SEVERAL_SHARE : LOOK_SHARE,
             later = l->several ? SEVERAL_LATER : LOOK_LATER;
    uint64_t bytes = l->several ? SEVERAL_BYTES : LOOK_BYTES;
    return MIN(count / share, MAX(bytes / MAX(each, 1), count / later)) + 1;
}

bool alloc_look_due(struct alloc_look *l, struct alloc_counter *c)
{
    if (c->count < l->end)
        return true;
    settle_look(l, c);
    l->gap = !l->end || (alloc_follow == FOLLOW_LOOKS && sites_follow_each()) ? 1 : stratum(l, c);
    l->end = c->count + l->gap;
    uint64_t later = alloc_random_below(l->gap);
    __atomic_store_n(&c->next, c->count + later, __ATOMIC_RELAXED);
    return later == 0;
}
