/* SPDX-License-Identifier: Apache-2.0 */
/* Answers how many requests there were, how long they took, and where the slowest were recorded. */
#include "base/latency.h"
#include "fleet/ask.h"
#include "fleet/ask_causes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct request_sum {
    const char *service, *request;
    uint64_t count, errors, total_ns, max_ns;
    struct fleet_counts counts;
};

struct request_sums {
    VEC(struct request_sum) list;
};

static void request_sums_release(struct request_sums *s)
{
    for (size_t i = 0; i < s->list.len; i++)
        vec_release(&s->list.data[i].counts.list);
    vec_release(&s->list);
}

static int on_latency(void *context, const struct store_latency *l)
{
    struct request_sums *s = context;
    struct request_sum *at = NULL;
    for (size_t i = 0; i < s->list.len && !at; i++)
        if (strcmp(s->list.data[i].request, l->request) == 0 &&
            strcmp(s->list.data[i].service, l->series->service) == 0)
            at = &s->list.data[i];
    if (!at) {
        int r = vec_push(
            &s->list, ((struct request_sum){.service = l->series->service, .request = l->request}));
        if (r < 0)
            return r;
        at = &s->list.data[s->list.len - 1];
    }
    at->count += l->count;
    at->errors += l->errors;
    at->total_ns += l->total_ns;
    at->max_ns = MAX(at->max_ns, l->max_ns);
    return fleet_counts_add(&at->counts, l->counts, l->n_counts);
}

static int compare_requests(const void *left, const void *right)
{
    const struct request_sum *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return a->total_ns < b->total_ns ? 1 : -1;
    int c = strcmp(a->service, b->service);
    return c ? c : strcmp(a->request, b->request);
}

static int put_request(struct asker *a, const struct request_sum *s,
                       const struct cause_sums *causes)
{
    static const struct {
        const char *key;
        double share;
    } quantiles[] = {{"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}, {"p999_ns", 0.999}};

    struct json *j = a->j;
    json_begin_object(j);
    json_key_string(j, "service", s->service);
    json_key_string(j, "request", s->request);
    json_key_u64(j, "count", s->count);
    json_key_u64(j, "errors", s->errors);
    json_key_u64(j, "mean_ns", s->count ? s->total_ns / s->count : 0);
    uint64_t ns[ARRAY_SIZE(quantiles)];
    for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++) {
        ns[i] = fleet_counts_quantile(&s->counts, quantiles[i].share, s->max_ns);
        json_key_u64(j, quantiles[i].key, ns[i]);
    }
    json_key_array(j, "upper_bounds");
    for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
        if (s->count && latency_is_bound(ns[i]))
            json_string(j, quantiles[i].key);
    json_end_array(j);
    json_key_u64(j, "max_ns", s->max_ns);
    json_key_array(j, "histogram");
    for (size_t i = 0; i < s->counts.list.len; i++) {
        json_begin_array(j);
        json_u64(j, latency_least_ns(s->counts.list.data[i].bucket));
        json_u64(j, s->counts.list.data[i].count);
        json_end_array(j);
    }
    json_end_array(j);
    int e = cause_sums_put(a, causes, s->service, s->request, s->count);
    json_end_object(j);
    return e;
}

/* ---- the slowest whose recordings were kept */

enum { SLOWEST = 20 };

struct slow_request {
    const char *tenant, *service, *version, *host, *instance;
    char *text;                    /* "UPLOAD TRACE ID NAME" */
    const char *trace, *id, *name; /* pieces of the text above */
    int64_t at_s;
    uint64_t duration_ns;
};

struct slow_requests {
    VEC(struct slow_request) list; /* the slowest first */
    const char *name;              /* the name that is requested; NULL: any */
    size_t max;
};

static void slow_requests_release(struct slow_requests *s)
{
    for (size_t i = 0; i < s->list.len; i++)
        free(s->list.data[i].text);
    vec_release(&s->list);
}

/* Cuts off the next word and returns it, or NULL if there is none. */
static char *next_word(char **rest)
{
    char *word = *rest;
    char *space = word ? strchr(word, ' ') : NULL;
    *rest = space ? space + 1 : NULL;
    if (space)
        *space = 0;
    return space ? word : NULL;
}

static int on_finding(void *context, const struct store_finding *f)
{
    struct slow_requests *s = context;
    size_t at = s->list.len;
    while (at && s->list.data[at - 1].duration_ns < f->weight_ns)
        at--;
    if (strcmp(f->kind, FLEET_SLOW_REQUEST) != 0 || at == s->max)
        return 0;
    struct slow_request one = {.tenant = f->series->tenant,
                               .service = f->series->service,
                               .version = f->series->version,
                               .host = f->series->host,
                               .instance = f->series->instance,
                               .text = strdup(f->text),
                               .at_s = f->start_s,
                               .duration_ns = f->weight_ns};
    char *rest = one.text;
    if (!rest)
        return -ENOMEM;
    (void)next_word(&rest);
    one.trace = next_word(&rest);
    one.id = next_word(&rest);
    one.name = rest;
    bool wanted = one.trace && one.id && one.name && store_matches(s->name, one.name);
    int r = wanted ? vec_push(&s->list, one) : 0;
    if (!wanted || r < 0) {
        free(one.text);
        return r;
    }
    for (size_t i = s->list.len - 1; i > at; i--)
        s->list.data[i] = s->list.data[i - 1];
    s->list.data[at] = one;
    if (s->list.len > s->max)
        free(s->list.data[--s->list.len].text);
    return 0;
}

/* Writes a slow request. If its recording was removed, null stands for it. */
static void put_slow(struct asker *a, const struct slow_request *s)
{
    const struct ask_kept *kept = a->kept;
    bool exists = !kept || kept->exists(kept->context, s->tenant, s->text);
    struct json *j = a->j;
    json_begin_object(j);
    json_key_string(j, "service", s->service);
    json_key_string(j, "version", s->version);
    json_key_string(j, "host", s->host);
    json_key_string(j, "instance", s->instance);
    json_key_string(j, "request", s->name);
    json_key_string(j, "id", s->id);
    if (strcmp(s->trace, "-") != 0)
        json_key_string(j, "trace", s->trace);
    json_key_i64(j, "at", s->at_s);
    json_key_u64(j, "duration_ns", s->duration_ns);
    json_key_string(j, "recording", exists ? s->text : NULL);
    json_end_object(j);
}

int ask_requests(struct asker *a)
{
    _cleanup_(request_sums_release) struct request_sums sums = {0};
    _cleanup_(slow_requests_release) struct slow_requests slow = {
        .name = a->q->choice.request, .max = a->q->limit ? a->q->limit : SLOWEST};
    _cleanup_(cause_sums_release) struct cause_sums causes = {0};
    struct fleet_choice choice = a->q->choice;
    struct store_read *r = NULL;
    int e = 0;
    /* The last read covers everything else as well. */
    for (int g = FLEET_GROUPS - 1; g >= 0 && e == 0; g--) {
        store_end(a->store, r);
        r = NULL;
        choice.type = fleet_latency_types[g];
        e = store_begin(a->store, &choice, &r, a->why);
        if (e == 0)
            e = cause_sums_read(&causes, (enum fleet_group)g, a->store, r);
    }
    cause_sums_sort(&causes);
    if (e == 0)
        e = store_each_latency(a->store, r, on_latency, &sums);
    if (e == 0)
        e = store_each_finding(a->store, r, on_finding, &slow);
    a->found = sums.list.len || slow.list.len;
    vec_sort(&sums.list, compare_requests);
    json_key_array(a->j, "requests");
    for (size_t i = 0; e == 0 && i < sums.list.len; i++)
        if (!a->q->limit || i < a->q->limit)
            e = put_request(a, &sums.list.data[i], &causes);
    json_end_array(a->j);
    json_key_array(a->j, "slowest");
    for (size_t i = 0; e == 0 && i < slow.list.len; i++)
        put_slow(a, &slow.list.data[i]);
    json_end_array(a->j);
    json_key_string(a->j, "note",
                    "VMs that jvmscope host records count only requests whose details the ring "
                    "kept; at high rates there were more");
    store_end(a->store, r);
    return e;
}
