/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers which findings a store has: methods that take a larger share since a new version of
 * their service, and findings that recordings reported.
 */
#include "base/hash.h"
#include "fleet/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The probability that the answer contains any finding that is due to chance alone. It is small
 * because the query is made every day and for many services.
 */
static const double false_alarm = 0.01;

/* A version of a service, and when it ran. */
struct version_span {
    const char *service, *version;
    int64_t from_s, to_s;
};

struct searching {
    struct asker *a;
    VEC(struct version_span) versions;
    struct map of_series;
    struct arena arena; /* their texts */
};

struct pair {
    const struct version_span *base, *new;
};

struct pairs {
    VEC(struct pair) list;
};

static int on_series(void *context, const struct store_series *s)
{
    struct searching *x = context;
    struct version_span *last = x->versions.len ? &x->versions.data[x->versions.len - 1] : NULL;
    if (!last || strcmp(last->service, s->service) != 0 || strcmp(last->version, s->version) != 0) {
        struct version_span one = {.service = arena_copy(&x->arena, s->service, strlen(s->service)),
                                   .version = arena_copy(&x->arena, s->version, strlen(s->version)),
                                   .from_s = INT64_MAX,
                                   .to_s = INT64_MIN};
        int r = one.service && one.version ? vec_push(&x->versions, one) : -ENOMEM;
        if (r < 0)
            return r;
    }
    return map_put(&x->of_series, s->id, x->versions.len - 1);
}

static int on_block(void *context, const struct store_block *b)
{
    struct searching *x = context;
    const uint64_t *at = map_get(&x->of_series, b->series->id);
    if (!at)
        return 0;
    struct version_span *v = &x->versions.data[*at];
    v->from_s = MIN(v->from_s, b->start_s);
    v->to_s = MAX(v->to_s, b->start_s + b->length_s);
    return 0;
}

/*
 * Finds all versions and when they ran, up to the end of the range, however long before the range
 * they began.
 */
static int find_versions(struct searching *x)
{
    struct fleet_choice choice = x->a->q->choice;
    struct store_read *r = NULL;
    choice.version = NULL;
    choice.from_s = 0;
    int e = store_begin(x->a->store, &choice, &r, x->a->why);
    if (e == 0)
        e = store_each_series(x->a->store, r, on_series, x);
    if (e == 0)
        e = store_each_end(x->a->store, r, on_block, x);
    store_end(x->a->store, r);
    return e;
}

static int on_first_block(void *context, const struct store_block *b)
{
    int64_t *first = context;
    *first = MIN(*first, b->start_s);
    return 0;
}

/*
 * Determines when a version appeared. Roll-ups show only the hour; data that is still kept in
 * detail shows it more precisely.
 */
static int refine(struct searching *x, struct version_span *v)
{
    struct fleet_choice choice = x->a->q->choice;
    struct store_read *r = NULL;
    int64_t first = INT64_MAX;
    choice.service = v->service;
    choice.version = v->version;
    choice.from_s = v->from_s;
    choice.to_s = v->from_s + store_resolution_s[STORE_RESOLUTIONS - 1];
    choice.step_s = store_resolution_s[0];
    int e = store_begin(x->a->store, &choice, &r, x->a->why);
    if (e == 0)
        e = store_each_end(x->a->store, r, on_first_block, &first);
    store_end(x->a->store, r);
    if (e == 0 && first < INT64_MAX)
        v->from_s = first;
    return e;
}

/* Returns the version of the same service that came last before this one, or NULL. */
static const struct version_span *version_before(const struct searching *x,
                                                 const struct version_span *v)
{
    const struct version_span *best = NULL;
    for (size_t i = 0; i < x->versions.len; i++) {
        const struct version_span *o = &x->versions.data[i];
        if (o != v && strcmp(o->service, v->service) == 0 && o->from_s < v->from_s &&
            (!best || o->from_s > best->from_s))
            best = o;
    }
    return best;
}

static bool has_siblings(const struct searching *x, size_t i)
{
    const struct version_span *v = x->versions.data;
    return (i && strcmp(v[i - 1].service, v[i].service) == 0) ||
           (i + 1 < x->versions.len && strcmp(v[i + 1].service, v[i].service) == 0);
}

/* Finds the new versions in the range, each with the one before it. */
static int find_pairs(struct searching *x, struct pairs *pairs)
{
    int e = 0;
    for (size_t i = 0; i < x->versions.len && e == 0; i++)
        if (has_siblings(x, i) && x->versions.data[i].from_s < INT64_MAX)
            e = refine(x, &x->versions.data[i]);
    for (size_t i = 0; i < x->versions.len && e == 0; i++) {
        const struct version_span *v = &x->versions.data[i], *base = version_before(x, v);
        if (base && v->from_s < INT64_MAX && v->from_s >= x->a->q->choice.from_s &&
            store_matches(x->a->q->choice.version, v->version))
            e = vec_push(&pairs->list, ((struct pair){base, v}));
    }
    return e;
}

/*
 * Reads the profiles of both versions: those of the new one since it appeared; those of the other
 * one in the same time, and in as much time before that.
 */
static int read_pair(struct searching *x, const struct pair *p, struct comparison *c)
{
    struct fleet_choice choice = x->a->q->choice;
    choice.service = p->new->service;
    choice.version = p->new->version;
    choice.from_s = p->new->from_s;
    int e = compare_read(c, 1, &choice);
    choice.version = p->base->version;
    choice.from_s = MAX(p->base->from_s, p->new->from_s - (p->new->to_s - p->new->from_s));
    return e < 0 ? e : compare_read(c, 0, &choice);
}

static bool is_regression(const struct compared *m)
{
    return (m->change[0].low > 0 && !m->few[0]) || (m->change[1].low > 0 && !m->few[1]);
}

static void put_version(struct json *j, const struct pair *p)
{
    json_key_string(j, "service", p->new->service);
    json_key_string(j, "version", p->new->version);
    json_key_string(j, "base", p->base->version);
    json_key_i64(j, "since", p->new->from_s);
}

/* Converts the change of a share into time of the new version. */
static void put_regression(struct asker *a, const struct pair *p, const struct comparison *c,
                           const struct compared *m)
{
    struct json *j = a->j;
    int part = m->change[1].low > 0 && !m->few[1] ? 1 : 0;
    char key[32];
    json_begin_object(j);
    json_key_string(j, "kind", "regression");
    put_version(j, p);
    json_key_string(j, "method", m->label);
    ask_put_change(j, c, m, 0);
    ask_put_change(j, c, m, 1);
    /*
     * If weights were compared, the share does not apply to samples. If samples were compared, it
     * includes samples without a time.
     */
    if (!c->weights)
        json_key_u64(j, "extra_samples",
                     (uint64_t)(m->change[part].change * (double)c->sides[1].all.samples));
    snprintf(key, sizeof(key), "extra_%s", ask_unit_of(a->q->metric));
    json_key_u64(j, key, (uint64_t)(m->change[part].change * (double)c->sides[1].all.weight));
    json_end_object(j);
}

static int put_pair(struct searching *x, const struct pair *p, double comparisons,
                    struct buf *compared, uint64_t *shown)
{
    _cleanup_(compare_release) struct comparison c = {
        .store = x->a->store, .why = x->a->why, .weights = ask_counts_weights(x->a->q->metric)};
    struct json list = {compared, compared->len > 0};
    uint64_t limit = x->a->q->limit, found = 0;
    int e = read_pair(x, p, &c);
    if (e < 0)
        return e;
    bool enough = c.sides[0].all.samples && c.sides[1].all.samples;
    if (enough)
        compare_methods(&c, 1 - false_alarm, comparisons);
    for (size_t i = 0; enough && i < c.methods.len; i++) {
        if (!is_regression(&c.methods.data[i]))
            continue;
        found++;
        if (!limit || *shown < limit)
            put_regression(x->a, p, &c, &c.methods.data[i]);
        ++*shown;
    }
    json_begin_object(&list);
    put_version(&list, p);
    json_key_u64(&list, "base_samples", c.sides[0].all.samples);
    json_key_u64(&list, "new_samples", c.sides[1].all.samples);
    json_key_u64(&list, "slower", found);
    json_key_string(&list, "verdict", !enough ? "no data" : found ? "slower" : "no regression");
    json_end_object(&list);
    return 0;
}

/* ---- what recordings report */

struct reported {
    const char *service, *version;
    char *kind, *text;
    uint64_t count, weight_ns;
    int64_t last_s;
    struct map series; /* the VMs for which it was reported */
};

struct all_reported {
    VEC(struct reported) list;
    struct map at;
    const char *request; /* only findings about requests of this name; NULL: all */
};

static void all_reported_release(struct all_reported *all)
{
    for (size_t i = 0; i < all->list.len; i++) {
        free(all->list.data[i].kind);
        free(all->list.data[i].text);
        map_release(&all->list.data[i].series);
    }
    vec_release(&all->list);
    map_release(&all->at);
}

static uint64_t hash_of(uint64_t h, const char *text)
{
    return hash_u64(h ^ hash_bytes(text, strlen(text)));
}

/* Returns whether a finding is about requests of the chosen name: its text is "NAME: CAUSE". */
static bool is_of_request(const struct store_finding *f, const char *wanted)
{
    if (!wanted)
        return true;
    for (const char *end = f->text; strcmp(f->kind, FLEET_SLOW_CAUSE) == 0; end++) {
        end = strstr(end, ": ");
        if (!end)
            return false;
        _cleanup_free_ char *name = strndup(f->text, (size_t)(end - f->text));
        if (name && store_matches(wanted, name))
            return true;
    }
    return false;
}

/* Called for each name of the chosen requests. */
static int on_request(void *context, const struct store_latency *l)
{
    *(bool *)context = true;
    return 0;
}

static int on_reported(void *context, const struct store_finding *f)
{
    struct all_reported *all = context;
    bool added = false;
    if (strcmp(f->kind, FLEET_SLOW_REQUEST) == 0 || !is_of_request(f, all->request))
        return 0; /* findings of a single VM are listed by `requests` */
    uint64_t key = hash_of(
        hash_of(hash_of(hash_of(0, f->series->service), f->series->version), f->kind), f->text);
    uint64_t *at = map_at(&all->at, key, all->list.len, &added);
    if (!at)
        return -ENOMEM;
    if (added) {
        struct reported one = {.service = f->series->service,
                               .version = f->series->version,
                               .kind = strdup(f->kind),
                               .text = strdup(f->text)};
        if (!one.kind || !one.text || vec_push(&all->list, one) < 0) {
            free(one.kind);
            free(one.text);
            return -ENOMEM;
        }
    }
    struct reported *r = &all->list.data[*at];
    r->count += f->count;
    r->weight_ns += f->weight_ns;
    r->last_s = MAX(r->last_s, f->start_s);
    return map_put(&r->series, f->series->id, 1);
}

static int by_weight(const void *left, const void *right)
{
    const struct reported *a = left, *b = right;
    if (a->weight_ns != b->weight_ns)
        return a->weight_ns < b->weight_ns ? 1 : -1;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : strcmp(a->text, b->text);
}

/* Writes a member "reported". */
static int put_reported(struct asker *a)
{
    _cleanup_(all_reported_release) struct all_reported all = {.request = a->q->choice.request};
    struct store_read *r = NULL;
    uint64_t limit = a->q->limit;
    bool any = !all.request;
    int e = store_begin(a->store, &a->q->choice, &r, a->why);
    if (e == 0)
        e = store_each_finding(a->store, r, on_reported, &all);
    if (e == 0 && !any)
        e = store_each_latency(a->store, r, on_request, &any);
    vec_sort(&all.list, by_weight);
    /* They are about requests, whatever the metric: one that the store lacks is not hidden. */
    a->found = (a->found && any) || (all.list.len && !a->q->metric_given);
    json_key_array(a->j, "reported");
    for (size_t i = 0; e == 0 && i < all.list.len && (!limit || i < limit); i++) {
        const struct reported *one = &all.list.data[i];
        json_begin_object(a->j);
        json_key_string(a->j, "kind", one->kind);
        json_key_string(a->j, "service", one->service);
        json_key_string(a->j, "version", one->version);
        json_key_string(a->j, "text", one->text);
        json_key_u64(a->j, "count", one->count);
        json_key_u64(a->j, "weight_ns", one->weight_ns);
        json_key_u64(a->j, "instances", one->series.len);
        json_key_i64(a->j, "last", one->last_s);
        json_end_object(a->j);
    }
    json_end_array(a->j);
    store_end(a->store, r);
    return e;
}

/* Returns whether a version ran in the range and has the requested name. */
static bool is_chosen(const struct asker *a, const struct version_span *v)
{
    return v->from_s < INT64_MAX && v->to_s > a->q->choice.from_s &&
           store_matches(a->q->choice.version, v->version);
}

int ask_findings(struct asker *a)
{
    struct searching x = {.a = a};
    struct pairs pairs = {0};
    _cleanup_(buf_release) struct buf compared = BUF(1 << 26);
    uint64_t shown = 0;
    int e = find_versions(&x);
    for (size_t i = 0; i < x.versions.len; i++)
        a->found = a->found || is_chosen(a, &x.versions.data[i]);
    if (e == 0)
        e = find_pairs(&x, &pairs);
    json_key_string(a->j, "metric", a->q->metric);
    ask_put_double(a->j, "false_alarm", false_alarm);
    json_key_array(a->j, "findings");
    for (size_t i = 0; i < pairs.list.len && e == 0; i++)
        e = put_pair(&x, &pairs.list.data[i], (double)pairs.list.len, &compared, &shown);
    json_end_array(a->j);
    json_key_array(a->j, "compared");
    buf_bytes(a->j->out, compared.data, compared.len);
    json_end_array(a->j);
    if (e == 0)
        e = put_reported(a);
    vec_release(&pairs.list);
    vec_release(&x.versions);
    map_release(&x.of_series);
    arena_release(&x.arena);
    return e < 0 ? e : buf_error(&compared);
}
