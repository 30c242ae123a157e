/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the series of a tenant, because labels with ever new values would fill the store and its
 * indexes.
 */
#include "base/clock.h"
#include "collect/collector.h"

#include <errno.h>

/*
 * How often the series are read again: another collector may add some to the same store, and
 * retention removes some.
 */
#define READ_AGAIN_NS (60 * NS_PER_SECOND)

static uint64_t key_of(const struct fleet_origin *o)
{
    struct fleet_hash hash = store_hash_origin(o);
    return fleet_hash_key(&hash);
}

static int add_series(void *context, const struct store_series *s)
{
    struct tenant *t = context;
    struct fleet_origin o = {s->tenant,   s->service, s->version, s->host,
                             s->instance, s->labels,  s->n_labels};
    return map_put(&t->series, key_of(&o), 1);
}

static int read_series(struct collector *c, struct tenant *t, struct buf *why)
{
    struct store_read *r = NULL;
    struct fleet_choice all = {.tenant = t->name};
    map_release(&t->series);
    int e = store_begin(c->store, &all, &r, why);
    if (e == 0)
        e = store_each_series(c->store, r, add_series, t);
    store_end(c->store, r);
    if (e == 0)
        t->series_read_ns = now_ns();
    return e;
}

static struct tenant *tenant_of(struct collector *c, const struct fleet_origin *o)
{
    for (size_t i = 0; i < c->tenants.len; i++)
        if (strcmp(c->tenants.data[i].name, o->tenant) == 0)
            return &c->tenants.data[i];
    return NULL;
}

static int admit(struct collector *c, struct tenant *t, uint64_t key, struct buf *why)
{
    if (map_get(&t->series, key))
        return 0;
    bool full = t->series.len >= c->limits.series;
    int e = 0;
    if (!t->series_read_ns || (full && now_ns() - t->series_read_ns > READ_AGAIN_NS))
        e = read_series(c, t, why);
    if (e < 0 || map_get(&t->series, key))
        return e;
    if (t->series.len < c->limits.series)
        return map_put(&t->series, key, 1);
    buf_printf(why,
               "there are %llu different sets of service, version, host, instance and labels, and "
               "no more are accepted (--max-series)",
               (unsigned long long)t->series.len);
    return -E2BIG;
}

int collector_admit_series(struct collector *c, const struct fleet_origin *o, struct buf *why)
{
    struct tenant *t = tenant_of(c, o);
    if (!t)
        return 0;
    pthread_mutex_lock(&c->admitting);
    int e = admit(c, t, key_of(o), why);
    pthread_mutex_unlock(&c->admitting);
    return e;
}
