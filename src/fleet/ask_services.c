/* SPDX-License-Identifier: Apache-2.0 */
/* Answers which services and versions there are, when they sent profiles, and what they cost. */
#include "fleet/ask.h"

#include <errno.h>
#include <string.h>

struct service_sum {
    const char *service, *version;
    struct sum sum;
    uint64_t series, hosts;
    const char *last_host;
    int64_t from_s, to_s;    /* of all blocks; to_s is 0 if there are none */
    int64_t first_s, last_s; /* the same for blocks that were read in detail */
};

/* Sums by service and version. The series of a view are sorted by both and by host. */
struct service_sums {
    VEC(struct service_sum) list;
    struct map of_series; /* id of a series -> number in list */
};

static void service_sums_release(struct service_sums *s)
{
    vec_release(&s->list);
    map_release(&s->of_series);
}

static int on_series(void *context, const struct store_series *series)
{
    struct service_sums *s = context;
    struct service_sum *last = s->list.len ? &s->list.data[s->list.len - 1] : NULL;
    if (!last || strcmp(last->service, series->service) != 0 ||
        strcmp(last->version, series->version) != 0) {
        struct service_sum one = {.service = series->service, .version = series->version};
        int r = vec_push(&s->list, one);
        if (r < 0)
            return r;
        last = &s->list.data[s->list.len - 1];
    }
    last->series++;
    if (!last->last_host || strcmp(last->last_host, series->host) != 0)
        last->hosts++;
    last->last_host = series->host;
    return map_put(&s->of_series, series->id, s->list.len - 1);
}

static void widen(int64_t *from_s, int64_t *to_s, const struct store_block *b)
{
    *from_s = *to_s ? MIN(*from_s, b->start_s) : b->start_s;
    *to_s = MAX(*to_s, b->start_s + b->length_s);
}

static int on_service_block(void *context, const struct store_block *b)
{
    struct service_sums *s = context;
    const uint64_t *at = map_get(&s->of_series, b->series->id);
    if (!at)
        return 0;
    struct service_sum *one = &s->list.data[*at];
    widen(&one->from_s, &one->to_s, b);
    sum_add_block(&one->sum, b);
    return 0;
}

static int on_detailed_block(void *context, const struct store_block *b)
{
    struct service_sums *s = context;
    const uint64_t *at = map_get(&s->of_series, b->series->id);
    if (at)
        widen(&s->list.data[*at].first_s, &s->list.data[*at].last_s, b);
    return 0;
}

/* Reads an hour in the finest resolution that is kept of it, unless that was done before. */
static int read_hour(struct asker *a, struct service_sums *s, struct map *done, int64_t time_s)
{
    const int64_t hour_s = store_resolution_s[STORE_RESOLUTIONS - 1];
    struct fleet_choice choice = a->q->choice;
    struct store_read *r = NULL;
    int64_t from_s = fleet_floor(time_s, hour_s);
    if (map_get(done, (uint64_t)from_s))
        return 0;
    choice.type = NULL;
    choice.step_s = store_resolution_s[0];
    choice.from_s = MAX(choice.from_s, from_s);
    choice.to_s = choice.to_s ? MIN(choice.to_s, from_s + hour_s) : from_s + hour_s;
    int e = map_put(done, (uint64_t)from_s, 1);
    if (e == 0)
        e = store_begin(a->store, &choice, &r, a->why);
    if (e == 0)
        e = store_each_block(a->store, r, false, on_detailed_block, s);
    store_end(a->store, r);
    return e;
}

/*
 * Determines the times of the first and the last profile. Roll-ups have only their hours; finer
 * blocks have the times.
 */
static int refine_times(struct asker *a, struct service_sums *s)
{
    struct map done = {0};
    int e = 0;
    for (size_t i = 0; i < s->list.len && e == 0; i++) {
        struct service_sum *one = &s->list.data[i];
        if (!one->to_s)
            continue;
        e = read_hour(a, s, &done, one->from_s);
        if (e == 0)
            e = read_hour(a, s, &done, one->to_s - 1);
    }
    for (size_t i = 0; i < s->list.len && e == 0; i++) {
        struct service_sum *one = &s->list.data[i];
        if (one->last_s) {
            one->from_s = one->first_s;
            one->to_s = one->last_s;
        }
    }
    map_release(&done);
    return e;
}

static int compare_services(const void *left, const void *right)
{
    const struct service_sum *a = left, *b = right;
    if (a->sum.weight != b->sum.weight)
        return a->sum.weight < b->sum.weight ? 1 : -1;
    int c = strcmp(a->service, b->service);
    return c ? c : strcmp(a->version, b->version);
}

/* Sums a choice by service and version, whose names are valid until store_end(*ret_read). */
static int sum_services(struct asker *a, const struct fleet_choice *choice,
                        struct store_read **ret_read, struct service_sums *ret)
{
    int e = store_begin(a->store, choice, ret_read, a->why);
    if (e == 0)
        e = store_each_series(a->store, *ret_read, on_series, ret);
    if (e == 0)
        e = store_each_block(a->store, *ret_read, false, on_service_block, ret);
    return e;
}

/* Begins the row of a service that is found, unless there are already as many as requested. */
static bool begin_row(struct asker *a, const struct service_sum *s, bool found, uint64_t *shown)
{
    a->found = a->found || found;
    if (!found || (a->q->limit && (*shown)++ >= a->q->limit))
        return false;
    json_begin_object(a->j);
    json_key_string(a->j, "service", s->service);
    json_key_string(a->j, "version", s->version);
    return true;
}

/* The service that on_other widens. */
struct others {
    struct service_sums *sums;
    size_t which;
};

static int on_other(void *context, const struct store_latency *l)
{
    struct others *o = context;
    const uint64_t *at = map_get(&o->sums->of_series, l->series->id);
    struct service_sum *one = &o->sums->list.data[o->which];
    const struct store_block span = {.start_s = l->start_s, .length_s = l->length_s};
    if (at && *at == o->which)
        widen(&one->from_s, &one->to_s, &span);
    return 0;
}

/* Determines the times of services that sent no samples, but requests or figures of their VMs. */
static int read_others(struct asker *a, struct service_sums *s)
{
    int e = 0;
    for (size_t i = 0; i < s->list.len; i++) {
        for (int kind = 0; kind < FLEET_NAME_KINDS && e == 0 && !s->list.data[i].to_s; kind++) {
            struct others context = {s, i};
            struct fleet_choice choice = a->q->choice;
            struct store_read *r = NULL;
            if (kind == FLEET_FIGURE && choice.request)
                continue;
            choice.type = NULL;
            choice.names = (enum fleet_name_kind)kind;
            choice.step_s = store_resolution_s[0];
            choice.service = s->list.data[i].service;
            choice.version = s->list.data[i].version;
            e = store_begin(a->store, &choice, &r, a->why);
            if (e == 0)
                e = store_each_latency(a->store, r, on_other, &context);
            store_end(a->store, r);
        }
    }
    return e;
}

int ask_services(struct asker *a)
{
    _cleanup_(service_sums_release) struct service_sums sums = {0};
    struct fleet_choice all = a->q->choice;
    struct store_read *r = NULL;
    uint64_t shown = 0;
    all.type = NULL;
    int e = sum_services(a, &all, &r, &sums);
    if (e == 0)
        e = refine_times(a, &sums);
    if (e == 0)
        e = read_others(a, &sums);
    /* Without a choice among its contents, a service is listed whatever it sent. */
    bool whole = !all.from_s && !all.to_s && !all.request;
    json_key_array(a->j, "services");
    for (size_t i = 0; e == 0 && i < sums.list.len; i++) {
        const struct service_sum *s = &sums.list.data[i];
        if (!begin_row(a, s, whole || s->to_s, &shown))
            continue;
        json_key_u64(a->j, "hosts", s->hosts);
        json_key_u64(a->j, "instances", s->series);
        if (s->to_s) {
            json_key_i64(a->j, "from", s->from_s);
            json_key_i64(a->j, "to", s->to_s);
        }
        json_end_object(a->j);
    }
    json_end_array(a->j);
    store_end(a->store, r);
    return e;
}

int ask_top_services(struct asker *a)
{
    _cleanup_(service_sums_release) struct service_sums sums = {0};
    struct store_read *r = NULL;
    uint64_t shown = 0;
    int e = sum_services(a, &a->q->choice, &r, &sums);
    vec_sort(&sums.list, compare_services);
    json_key_string(a->j, "metric", a->q->metric);
    json_key_array(a->j, "services");
    for (size_t i = 0; e == 0 && i < sums.list.len; i++) {
        const struct service_sum *s = &sums.list.data[i];
        if (!begin_row(a, s, s->to_s != 0, &shown))
            continue;
        ask_put_sums(a->j, a->q->metric, s->sum);
        ask_put_cost(a, s->sum);
        json_end_object(a->j);
    }
    json_end_array(a->j);
    store_end(a->store, r);
    return e;
}
