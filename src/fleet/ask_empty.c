/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains why a query found nothing: it names the first filter that leaves nothing of what the
 * previous filters leave.
 */
#include "fleet/ask.h"

#include "base/strpool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FILTERS = 5 + ASK_LABELS, SHOWN = 8 };

struct filter {
    const char *key, *wanted;
    bool is_label;
};

struct explaining {
    struct asker *a;
    const struct fleet_choice *choice;
    struct filter filters[FILTERS];
    size_t n;
    bool any;             /* whether there are series at all */
    size_t passed;        /* the largest number of filters, in their order, that a series passes */
    struct strpool names; /* the names that exist, for the message about a name that does not */
    int64_t from_s, to_s; /* the time of the data that was seen; to_s is 0 if there was none */
};

static int names_add(struct strpool *n, const char *text)
{
    int64_t at = strpool_add(n, text, strlen(text));
    return at < 0 ? (int)at : 0;
}

/* Writes names; if there is a label, each of them is a value of that label. */
static void put_names(struct buf *to, const struct strpool *n, const char *label)
{
    for (size_t i = 0; i < n->strings.len && i < SHOWN; i++) {
        const char *text = n->strings.data[i].data;
        buf_string(to, i ? ", " : n->strings.len > 1 ? "; there are " : "; there is ");
        if (label)
            buf_printf(to, "%s=", label);
        buf_printf(to, "%.100s", *text ? text : "(none)");
    }
    if (n->strings.len > SHOWN)
        buf_printf(to, " and %zu more", n->strings.len - SHOWN);
}

/* ---- series */

static void add_filter(struct explaining *x, const char *key, const char *wanted, bool is_label)
{
    if (wanted && x->n < FILTERS)
        x->filters[x->n++] = (struct filter){key, wanted, is_label};
}

/* Returns the value to which a filter applies, or NULL if the series has no such label. */
static const char *value_of(const struct store_series *s, const struct filter *f)
{
    const char *const values[][2] = {{"tenant", s->tenant},
                                     {"service", s->service},
                                     {"version", s->version},
                                     {"host", s->host},
                                     {"instance", s->instance}};

    for (size_t i = 0; i < ARRAY_SIZE(values) && !f->is_label; i++)
        if (strcmp(f->key, values[i][0]) == 0)
            return values[i][1];
    for (size_t i = 0; i < s->n_labels && f->is_label; i++)
        if (strcmp(s->labels[i].key, f->key) == 0)
            return s->labels[i].value;
    return NULL;
}

static int on_series(void *context, const struct store_series *s)
{
    struct explaining *x = context;
    size_t passed = 0;
    const char *value = NULL;
    while (passed < x->n && (value = value_of(s, &x->filters[passed])) &&
           store_matches(x->filters[passed].wanted, value))
        passed++;
    x->any = true;
    if (passed > x->passed) {
        x->passed = passed;
        strpool_release(&x->names);
    }
    return passed == x->passed && passed < x->n && value ? names_add(&x->names, value) : 0;
}

/* Writes the filters that leave something, such as " of service shop, version 1.8". */
static void put_passed(struct buf *to, const struct explaining *x)
{
    for (size_t i = 0; i < x->passed; i++)
        buf_printf(to, "%s %s%s%c%.100s", i ? "," : " of", x->filters[i].is_label ? "label " : "",
                   x->filters[i].key, x->filters[i].is_label ? '=' : ' ', x->filters[i].wanted);
}

/* Sets *ret when a filter by name leaves nothing, or when there is nothing at all. */
static int explain_series(struct explaining *x, struct buf *to, bool *ret)
{
    const struct fleet_choice *c = x->choice;
    struct fleet_choice all = {.tenant = x->a->tenant};
    struct store_read *r = NULL;
    add_filter(x, "tenant", x->a->tenant ? NULL : c->tenant, false);
    add_filter(x, "service", c->service, false);
    add_filter(x, "version", c->version, false);
    add_filter(x, "host", c->host, false);
    add_filter(x, "instance", c->instance, false);
    for (size_t i = 0; i < c->n_labels; i++)
        add_filter(x, c->labels[i].key, c->labels[i].value, true);
    int e = store_begin(x->a->store, &all, &r, x->a->why);
    if (e == 0)
        e = store_each_series(x->a->store, r, on_series, x);
    store_end(x->a->store, r);
    if (e < 0 || (x->any && x->passed == x->n))
        return e;
    *ret = true;
    if (!x->any) {
        buf_string(to, "there are no profiles");
        return 0;
    }
    const struct filter *f = &x->filters[x->passed];
    buf_printf(to, f->is_label ? "label %s=%.200s matches nothing" : "%s %.200s matches nothing",
               f->key, f->wanted);
    put_passed(to, x);
    put_names(to, &x->names, f->is_label ? f->key : NULL);
    return 0;
}

/* ---- times, metrics and requests */

static void widen(struct explaining *x, int64_t from_s, int64_t length_s)
{
    x->from_s = x->to_s ? MIN(x->from_s, from_s) : from_s;
    x->to_s = MAX(x->to_s, from_s + length_s);
}

static int on_block(void *context, const struct store_block *b)
{
    struct explaining *x = context;
    widen(x, b->start_s, b->length_s);
    return names_add(&x->names, b->type);
}

static int on_latency(void *context, const struct store_latency *l)
{
    struct explaining *x = context;
    widen(x, l->start_s, l->length_s);
    return names_add(&x->names, l->request);
}

/* Adds the types, or the names of requests, that exist for any metric and request in a time. */
static int check_span(struct explaining *x, int64_t from_s, int64_t to_s, int64_t step_s,
                      bool requests)
{
    struct fleet_choice any = *x->choice;
    struct store_read *r = NULL;
    any.type = any.request = NULL;
    any.names = x->a->about == ASK_ABOUT_VM ? FLEET_FIGURE : FLEET_REQUEST;
    any.from_s = from_s;
    any.to_s = to_s;
    any.step_s = step_s;
    int e = store_begin(x->a->store, &any, &r, x->a->why);
    if (e == 0)
        e = requests ? store_each_latency(x->a->store, r, on_latency, x)
                     : store_each_block(x->a->store, r, false, on_block, x);
    store_end(x->a->store, r);
    return e;
}

/* Collects the names again, in the chosen time or at any time. */
static int check_range(struct explaining *x, bool in_range, bool requests)
{
    const struct fleet_choice *c = x->choice;
    strpool_release(&x->names);
    x->from_s = x->to_s = 0;
    return check_span(x, in_range ? c->from_s : 0, in_range ? c->to_s : 0, c->step_s, requests);
}

/*
 * Determines the times of the first and the last profile. Blocks of whole hours give only their
 * hours; finer blocks give the times.
 */
static int refine_times(struct explaining *x, bool requests)
{
    const int64_t hour_s = store_resolution_s[STORE_RESOLUTIONS - 1];
    int64_t from_s = x->from_s, to_s = x->to_s;
    int64_t first_s = fleet_floor(from_s, hour_s), last_s = fleet_floor(to_s - 1, hour_s);
    x->from_s = x->to_s = 0;
    int e = check_span(x, first_s, first_s + hour_s, store_resolution_s[0], requests);
    if (e == 0 && last_s != first_s)
        e = check_span(x, last_s, last_s + hour_s, store_resolution_s[0], requests);
    if (!x->to_s) {
        x->from_s = from_s;
        x->to_s = to_s;
    }
    return e;
}

static void put_time(struct buf *to, const char *before, int64_t seconds)
{
    char text[32];
    struct tm tm;
    time_t t = (time_t)seconds;
    gmtime_r(&t, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    buf_printf(to, "%s %s", before, text);
}

static void put_range(struct explaining *x, struct buf *to)
{
    const struct fleet_choice *c = x->choice;
    buf_string(to, "the time");
    if (c->from_s)
        put_time(to, " from", c->from_s);
    if (c->to_s)
        put_time(to, " to", c->to_s);
    buf_string(to, " matches nothing");
    put_passed(to, x);
}

static bool has_name(const struct strpool *n, const char *name)
{
    for (size_t i = 0; i < n->strings.len; i++)
        if (store_matches(name, n->strings.data[i].data))
            return true;
    return false;
}

/* Reports what is left when names of services, hosts and labels have selected something. */
static int explain_rest(struct explaining *x, struct buf *to)
{
    const struct asker *a = x->a;
    bool requests = a->about == ASK_ABOUT_REQUESTS || a->about == ASK_ABOUT_VM,
         ranged = x->choice->from_s || x->choice->to_s;
    int e = check_range(x, true, requests);
    if (e == 0 && !x->to_s && ranged) {
        e = check_range(x, false, requests);
        if (e == 0 && x->to_s) {
            e = refine_times(x, requests);
            put_range(x, to);
            put_time(to, "; there are profiles from", x->from_s);
            put_time(to, " to", x->to_s);
            return e;
        }
    }
    if (e < 0)
        return e;
    if (!x->to_s) {
        buf_printf(to, "there are no %s",
                   a->about == ASK_ABOUT_VM ? "figures of the VM"
                   : requests               ? "requests"
                                            : "samples");
        put_passed(to, x);
    } else if (a->about == ASK_ABOUT_METRIC && !has_name(&x->names, a->q->metric)) {
        buf_printf(to, "metric %.100s matches nothing", a->q->metric);
        put_passed(to, x);
        put_names(to, &x->names, NULL);
    } else if (x->choice->request && !a->seen) {
        buf_printf(to, "request %.200s matches nothing", x->choice->request);
        e = check_range(x, true, true);
        put_passed(to, x);
        put_names(to, &x->names, NULL);
    } else if (a->q->method) {
        buf_printf(to, "method %.200s matches nothing", a->q->method);
        put_passed(to, x);
    } else {
        buf_string(to, "no profile matches all of these together");
        put_passed(to, x);
    }
    return e;
}

int ask_empty(struct asker *a, const struct fleet_choice *choice, struct buf *to)
{
    struct explaining x = {.a = a, .choice = choice};
    bool done = false;
    int e = explain_series(&x, to, &done);
    if (e == 0 && !done)
        e = explain_rest(&x, to);
    strpool_release(&x.names);
    return e;
}

/* ---- lists of names */

struct name_search {
    const char *wanted, *list; /* a name, and the list in which it stands */
    size_t which;              /* the index of the filter */
    bool found;
};

static int on_named_series(void *context, const struct store_series *s)
{
    struct name_search *n = context;
    const char *const names[] = {s->service, s->version, s->host, s->instance};
    /* A name may contain a comma, and then the list is that name. */
    n->found |= store_matches(n->wanted, names[n->which]) || strcmp(n->list, names[n->which]) == 0;
    return 0;
}

static int find_name(struct asker *a, struct name_search *n)
{
    struct fleet_choice all = {.tenant = a->tenant};
    struct store_read *r = NULL;
    int e = store_begin(a->store, &all, &r, a->why);
    if (e == 0)
        e = store_each_series(a->store, r, on_named_series, n);
    store_end(a->store, r);
    return e;
}

static int on_any_block(void *context, const struct store_block *b)
{
    *(bool *)context = true;
    return 0;
}

/* A request has latencies, or samples that carry its name. */
static int find_request(struct asker *a, struct name_search *n)
{
    struct fleet_choice all = {.tenant = a->tenant};
    struct explaining x = {.a = a, .choice = &all};
    struct store_read *r = NULL;
    int e = check_range(&x, false, true);
    n->found = e == 0 && has_name(&x.names, n->wanted);
    for (size_t i = 0; i < x.names.strings.len && !n->found; i++)
        n->found = strcmp(x.names.strings.data[i].data, n->list) == 0;
    strpool_release(&x.names);
    if (e < 0 || n->found)
        return e;
    all.request = n->wanted;
    all.names = FLEET_REQUEST;
    e = store_begin(a->store, &all, &r, a->why);
    if (e == 0)
        e = store_each_block(a->store, r, false, on_any_block, &n->found);
    store_end(a->store, r);
    return e;
}

/* Returns the next name of a list, not its end, or NULL if there is no memory or none is left. */
static const char *next_name(const char **at, struct arena *arena)
{
    *at += strspn(*at, ", ");
    size_t len = strcspn(*at, ",");
    const char *name = len ? arena_copy(arena, *at, len) : NULL;
    *at += len;
    return name;
}

bool ask_method_matches(struct asker *a, const char *method)
{
    const char *list = a->q->method;
    size_t bit = 0;
    if (!store_matches(list, method))
        return false;
    if (!strchr(list, ',') || strcmp(list, method) == 0) {
        a->seen = UINT64_MAX;
        return true;
    }
    _cleanup_(arena_release) struct arena arena = {0};
    for (const char *at = list, *name; a->seen != UINT64_MAX && bit < 64;) {
        name = next_name(&at, &arena);
        if (!name)
            break;
        if (store_matches(name, method))
            a->seen |= UINT64_C(1) << bit;
        bit++;
    }
    return true;
}

const char *ask_unseen_method(const struct asker *a, struct arena *arena)
{
    const char *list = a->q->method, *name;
    size_t bit = 0;
    if (!list || !strchr(list, ','))
        return NULL;
    for (const char *at = list; bit < 64 && (name = next_name(&at, arena)); bit++)
        if (!(a->seen >> bit & 1))
            return name;
    return NULL;
}

int ask_narrow(struct asker *a, struct fleet_choice *choice, struct arena *arena)
{
    enum { REQUEST = 4 };

    const char **const filters[] = {&choice->service, &choice->version, &choice->host,
                                    &choice->instance, &choice->request};
    int e = 0;
    for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
        const char *list = *filters[i];
        for (const char *at = list && strchr(list, ',') ? list : ""; *at && e == 0;) {
            size_t len = strcspn(at, ",");
            struct name_search n = {arena_copy(arena, at, len), list, i, false};
            e = !n.wanted ? -ENOMEM : i == REQUEST ? find_request(a, &n) : find_name(a, &n);
            if (e == 0 && !n.found && len)
                *filters[i] = n.wanted;
            at += len;
            at += strspn(at, ", ");
        }
    }
    return e;
}

/* ---- names of metrics */

static const char *const metrics[] = {"cpu",
                                      "wall",
                                      "allocations",
                                      "locks",
                                      "times",
                                      "live",
                                      FLEET_LATENCY,
                                      FLEET_LATENCY_SLOW,
                                      FLEET_LATENCY_TYPICAL};

const char *ask_metric_name(const char *name)
{
    return strcmp(name, "samples") == 0 ? "cpu" : name;
}

int ask_first_metric(struct asker *a, const char **ret)
{
    struct explaining x = {.a = a, .choice = &a->q->choice};
    int e = check_range(&x, true, false);
    *ret = NULL;
    for (size_t i = 0; e == 0 && !*ret && strcmp(metrics[i], FLEET_LATENCY) != 0; i++)
        if (has_name(&x.names, metrics[i]))
            *ret = metrics[i];
    strpool_release(&x.names);
    return e;
}

/* Other programs may send types with other names, which exist if the store has them. */
int ask_check_metric(struct asker *a)
{
    struct fleet_choice all = {.tenant = a->tenant};
    struct explaining x = {.a = a, .choice = &all};
    const char *name = a->q->metric;
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
        if (strcmp(name, metrics[i]) == 0)
            return 0;
    int e = check_range(&x, false, false);
    bool known = e == 0 && has_name(&x.names, name);
    if (e == 0 && !known) {
        buf_printf(a->why, "metric: unknown: %.100s; known are", name);
        for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
            buf_printf(a->why, "%s %s", i ? "," : "", metrics[i]);
        for (size_t i = 0; i < x.names.strings.len && i < SHOWN; i++) {
            const char *other = x.names.strings.data[i].data;
            bool is_ours = false;
            for (size_t k = 0; k < ARRAY_SIZE(metrics); k++)
                is_ours = is_ours || strcmp(other, metrics[k]) == 0;
            if (!is_ours)
                buf_printf(a->why, ", %.100s", other);
        }
        e = -EINVAL;
    }
    strpool_release(&x.names);
    return e;
}
