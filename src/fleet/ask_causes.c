/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/ask_causes.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>

/* The number of places shown for a cause: those that took the most time. */
enum { PLACES = 10 };

#define NO_TEXT UINT32_MAX

struct reading_causes {
    struct cause_sums *to;
    enum fleet_group group;
    struct store *s;
    struct store_read *r;
    /* The places of stacks, by the numbers of stacks in this read. */
    VEC(struct cause_place) places;
    struct map by_stack;
};

/*
 * Reads a stack that consists of the cause, "[lock]", perhaps of what it was about, "[Stock]", and
 * of the method.
 */
static int read_place(struct reading_causes *x, uint64_t stack, struct cause_place *ret)
{
    struct store_stack path;
    int e = store_stack(x->s, x->r, stack, &path);
    *ret = (struct cause_place){NO_TEXT, NO_TEXT, NO_TEXT};
    for (size_t i = 0; e == 0 && i < path.depth; i++) {
        struct store_frame f;
        e = store_frame(x->s, x->r, path.frames[i], &f);
        if (e < 0)
            break;
        size_t len = strlen(f.label), mark = f.kind == FLEET_MARK && len > 1;
        int64_t text = strpool_add(&x->to->texts, f.label + mark, len - 2 * mark);
        *(i == 0 ? &ret->cause : mark ? &ret->object : &ret->method) = (uint32_t)text;
        e = (int)MIN(text, 0);
    }
    return e;
}

static int find_place(struct reading_causes *x, uint64_t stack, struct cause_place *ret)
{
    bool added = false;
    uint64_t *at = map_at(&x->by_stack, hash_bytes(&stack, sizeof(stack)), x->places.len, &added);
    int e = at ? 0 : -ENOMEM;
    if (e == 0 && added)
        e = read_place(x, stack, ret);
    if (e == 0 && added)
        e = vec_push(&x->places, *ret);
    if (e == 0)
        *ret = x->places.data[*at];
    return e;
}

static int add_entry(struct reading_causes *x, uint32_t service, const struct fleet_entry *e)
{
    struct cause_sums *c = x->to;
    const char *name = e->request ? store_request(x->s, x->r, e->request) : NULL;
    if (!name)
        return 0;
    int64_t request = strpool_add(&c->texts, name, strlen(name));
    if (request < 0)
        return (int)request;
    struct cause_place p;
    int r = find_place(x, e->stack, &p);
    if (r < 0)
        return r;
    const uint32_t key[] = {service, (uint32_t)request, p.cause, p.object, p.method};
    bool added = false;
    uint64_t *at = map_at(&c->at, hash_bytes(key, sizeof(key)), c->list.len, &added);
    struct cause_sum one = {service, (uint32_t)request, p, {0}, {0}};
    if (!at || (added && vec_push(&c->list, one) < 0))
        return -ENOMEM;
    c->list.data[*at].ns[x->group] += e->weight;
    c->list.data[*at].count[x->group] += e->count;
    return 0;
}

static int on_block(void *context, const struct store_block *b)
{
    struct reading_causes *x = context;
    const char *name = b->series->service;
    int64_t service = strpool_add(&x->to->texts, name, strlen(name));
    int e = service < 0 ? (int)service : 0;
    for (size_t i = 0; i < b->entries->list.len && e == 0; i++)
        e = add_entry(x, (uint32_t)service, &b->entries->list.data[i]);
    return e;
}

static int by_time(const void *left, const void *right)
{
    const struct cause_sum *a = left, *b = right;
    uint64_t m = a->ns[FLEET_ALL], n = b->ns[FLEET_ALL];
    return m != n ? (m < n) - (m > n) : memcmp(&a->place, &b->place, sizeof(a->place));
}

/*
 * Returns -1, 0 or 1 if the service and the request of a row come before, are, or come after the
 * given ones.
 */
static int place_of(const struct cause_sum *row, uint32_t service, uint32_t request)
{
    uint32_t x = row->service == service ? row->request : row->service;
    uint32_t y = row->service == service ? request : service;
    return (x > y) - (x < y);
}

static int by_request(const void *left, const void *right)
{
    const struct cause_sum *a = left, *b = right;
    int c = place_of(a, b->service, b->request);
    return c ? c : by_time(a, b);
}

int cause_sums_read(struct cause_sums *to, enum fleet_group g, struct store *s,
                    struct store_read *r)
{
    struct reading_causes x = {.to = to, .group = g, .s = s, .r = r};
    int e = store_each_block(s, r, true, on_block, &x);
    vec_release(&x.places);
    map_release(&x.by_stack);
    return e;
}

void cause_sums_sort(struct cause_sums *c)
{
    vec_sort(&c->list, by_request);
}

void cause_sums_release(struct cause_sums *c)
{
    strpool_release(&c->texts);
    vec_release(&c->list);
    map_release(&c->at);
}

/* The rows of one service and request, and the sum of each cause. */
struct chosen {
    VEC(const struct cause_sum *) list;
    VEC(struct cause_sum) sums;
    uint64_t ns[FLEET_GROUPS], count[FLEET_GROUPS];
};

/* Returns the index of the first row of a service and request. */
static size_t first_row(const struct cause_sums *c, uint32_t service, uint32_t request)
{
    size_t low = 0, high = c->list.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (place_of(&c->list.data[middle], service, request) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int choose(struct chosen *to, const struct cause_sums *c, const char *service,
                  const char *request)
{
    int64_t s = strpool_find(&c->texts, service, strlen(service)),
            q = strpool_find(&c->texts, request, strlen(request));
    int e = 0;
    if (s < 0 || q < 0)
        return 0;
    for (size_t i = first_row(c, (uint32_t)s, (uint32_t)q); i < c->list.len && e == 0; i++) {
        const struct cause_sum *one = &c->list.data[i];
        size_t k = 0;
        if (place_of(one, (uint32_t)s, (uint32_t)q) != 0)
            break;
        while (k < to->sums.len && to->sums.data[k].place.cause != one->place.cause)
            k++;
        e = k < to->sums.len
                ? 0
                : vec_push(&to->sums, ((struct cause_sum){.place = {.cause = one->place.cause}}));
        if (e == 0)
            e = vec_push(&to->list, one);
        for (int g = 0; g < FLEET_GROUPS && e == 0; g++) {
            to->sums.data[k].ns[g] += one->ns[g];
            to->ns[g] += one->ns[g];
            to->count[g] += one->count[g];
        }
    }
    vec_sort(&to->sums, by_time);
    return e;
}

static void put_time(struct asker *a, uint64_t ns, uint64_t all)
{
    json_key_u64(a->j, "ns", ns);
    ask_put_double(a->j, "share", all ? (double)ns / (double)all : 0);
}

static void put_text(struct asker *a, const struct cause_sums *c, const char *key, uint32_t text)
{
    if (text != NO_TEXT)
        json_key_string(a->j, key, strpool_get(&c->texts, text).data);
}

static void put_place(struct asker *a, const struct cause_sums *c, const struct cause_sum *row,
                      uint64_t all)
{
    json_begin_object(a->j);
    put_text(a, c, "object", row->place.object);
    put_text(a, c, "method", row->place.method);
    put_time(a, row->ns[FLEET_ALL], all);
    json_end_object(a->j);
}

/* Returns a group's mean time per request. */
static uint64_t mean_of(const struct chosen *c, const uint64_t *ns, enum fleet_group g)
{
    return c->count[g] ? ns[g] / c->count[g] : 0;
}

static void put_group(struct asker *a, const struct chosen *c, const char *key, enum fleet_group g)
{
    json_key_object(a->j, key);
    json_key_u64(a->j, "count", c->count[g]);
    json_key_u64(a->j, "mean_ns", mean_of(c, c->ns, g));
    json_end_object(a->j);
}

/*
 * Writes the cause whose mean is largest in the slow requests compared with the typical ones; null
 * if the slow ones do not take twice as long.
 */
static void put_why_slow(struct asker *a, const struct cause_sums *c, const struct chosen *chosen)
{
    uint64_t typical = mean_of(chosen, chosen->ns, FLEET_TYPICAL), more = 0;
    const struct cause_sum *why = NULL;
    bool slow = typical && mean_of(chosen, chosen->ns, FLEET_SLOW) >= 2 * typical;
    for (size_t i = 0; i < chosen->sums.len && slow; i++) {
        const struct cause_sum *sum = &chosen->sums.data[i];
        uint64_t usual = mean_of(chosen, sum->ns, FLEET_TYPICAL),
                 with = mean_of(chosen, sum->ns, FLEET_SLOW);
        if (with > usual + more) {
            more = with - usual;
            why = sum;
        }
    }
    json_key(a->j, "why_slow");
    if (!why) {
        json_null(a->j);
        return;
    }
    json_begin_object(a->j);
    put_text(a, c, "cause", why->place.cause);
    json_key_u64(a->j, "more_ns", more);
    json_end_object(a->j);
}

int cause_sums_put(struct asker *a, const struct cause_sums *c, const char *service,
                   const char *request, uint64_t all)
{
    struct chosen chosen = {.ns = {0}};
    int e = choose(&chosen, c, service, request);
    json_key_u64(a->j, "with_causes", chosen.count[FLEET_ALL]);
    json_key_u64(a->j, "without_causes", all - MIN(all, chosen.count[FLEET_ALL]));
    put_group(a, &chosen, "slow", FLEET_SLOW);
    put_group(a, &chosen, "typical", FLEET_TYPICAL);
    put_why_slow(a, c, &chosen);
    json_key_array(a->j, "causes");
    for (size_t i = 0; e == 0 && i < chosen.sums.len; i++) {
        const struct cause_sum *sum = &chosen.sums.data[i];
        uint32_t cause = sum->place.cause;
        size_t shown = 0;
        json_begin_object(a->j);
        put_text(a, c, "cause", cause);
        put_time(a, sum->ns[FLEET_ALL], chosen.ns[FLEET_ALL]);
        json_key_u64(a->j, "slow_ns", mean_of(&chosen, sum->ns, FLEET_SLOW));
        json_key_u64(a->j, "typical_ns", mean_of(&chosen, sum->ns, FLEET_TYPICAL));
        json_key_array(a->j, "where");
        for (size_t k = 0; k < chosen.list.len && shown < PLACES; k++) {
            if (chosen.list.data[k]->place.cause != cause)
                continue;
            put_place(a, c, chosen.list.data[k], chosen.ns[FLEET_ALL]);
            shown++;
        }
        json_end_array(a->j);
        json_end_object(a->j);
    }
    json_end_array(a->j);
    vec_release(&chosen.list);
    vec_release(&chosen.sums);
    return e;
}
