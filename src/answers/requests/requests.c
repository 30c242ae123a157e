/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/requests/requests.h"

#include "timeline/load.h"

#include <errno.h>
#include <stdlib.h>

int request_view_load(struct request_view *ret, const struct request_options *o, const char *path,
                      struct buf *why)
{
    struct request_filter filter = {
        .name = o->name, .thread = o->thread, .from_ns = o->from_ns, .to_ns = o->to_ns};
    *ret = (struct request_view){.path = path, .options = o};
    int e = requests_load(&ret->r, path, &filter, why);
    if (e == 0)
        e = ret->r.names.len ? timeline_load(&ret->t, path, why) : -ENODATA;
    if (e == 0)
        e = request_ledger_new(&ret->l, &ret->r, ret->t);
    if (e < 0)
        request_view_free(ret);
    return e;
}

void request_view_free(struct request_view *v)
{
    request_ledger_free(v->l);
    timeline_free(v->t);
    requests_release(&v->r);
}

void request_rows_release(struct request_rows *rows)
{
    free(rows->sums);
    free(rows->allocated);
}

enum request_cause request_most(const struct name_sums *s)
{
    enum request_cause best = CAUSE_CPU;
    for (int k = 0; k < REQUEST_CAUSES; k++)
        best = s->ns[k] > s->ns[best] ? (enum request_cause)k : best;
    return best;
}

double request_part_of(double ns, double whole)
{
    return whole > 0 ? ns / whole : 0;
}

uint64_t request_each(double sum, const struct name_sums *s)
{
    return s->weight > 0 ? (uint64_t)(sum / s->weight + 0.5) : 0;
}

int request_rows_of(struct request_view *v, struct request_rows *ret)
{
    int e = request_sums(v->l, &v->r, &ret->sums);
    return e ? e : request_allocated(&v->r, &ret->allocated);
}

double request_seconds(const struct request_view *v, bool counted)
{
    const struct request_options *o = v->options;
    int64_t until_ns = counted ? v->r.counted_ns : v->r.end_ns;
    uint64_t end = (uint64_t)MAX(until_ns - v->r.start_ns, INT64_C(0));
    uint64_t to = o->to_ns ? MIN(o->to_ns, end) : end;
    return to > o->from_ns ? (double)(to - o->from_ns) / 1e9 : 0;
}

const struct request_quantile_row request_quantiles[REQUEST_QUANTILES] = {
    {"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}, {"p999_ns", 0.999}};

double request_rate(const struct request_view *v, const struct request_name *n)
{
    double time = request_seconds(v, n->exact);
    return time > 0 ? (double)n->all / time : 0;
}

void request_example_json(const struct request_view *v, const struct request_name *n,
                          struct json *j)
{
    json_key(j, "example");
    if (n->example == REQUEST_NONE)
        json_null(j);
    else
        json_string(j, requests_text(&v->r, n->example));
}

static void row_json(const struct request_view *v, const struct request_name *n,
                     const struct request_rows *rows, struct json *j)
{
    size_t at = (size_t)(n - v->r.names.data);
    const struct name_sums *s = &rows->sums[at];
    json_begin_object(j);
    json_key_string(j, "name", requests_text(&v->r, n->name));
    request_example_json(v, n, j);
    json_key_string(j, "kind", requests_text(&v->r, n->kind));
    json_key_u64(j, "count", n->all);
    json_key_u64(j, "kept", n->count);
    json_key_u64(j, "causes_of", s->requests);
    json_key_bool(j, "exact", !requests_are_some(&v->r, n));
    json_key_double(j, "rate", request_rate(v, n));
    json_key_u64(j, "errors", n->errors);
    uint64_t ns[REQUEST_QUANTILES];
    for (size_t k = 0; k < REQUEST_QUANTILES; k++)
        json_key_u64(j, request_quantiles[k].key,
                     ns[k] = request_quantile(&v->r, n, request_quantiles[k].share));
    json_key_array(j, "upper_bounds");
    for (size_t k = 0; k < REQUEST_QUANTILES; k++)
        if (request_quantile_is_bound(n, ns[k]))
            json_string(j, request_quantiles[k].key);
    json_end_array(j);
    json_key_array(j, "uncertain_percentiles");
    for (size_t k = 0; k < REQUEST_QUANTILES; k++)
        if (request_quantile_is_uncertain(&v->r, n, request_quantiles[k].share))
            json_string(j, request_quantiles[k].key);
    json_end_array(j);
    json_key_u64(j, "max_ns", n->max_ns);
    json_key_u64(j, "total_ns", n->total_ns);
    json_key_u64(j, "cpu_ns", request_each(s->cpu_ns, s));
    json_key_u64(j, "cpu_error_ns", (uint64_t)s->cpu_error_ns);
    if (v->r.allocations_counted) {
        json_key(j, "alloc_bytes");
        json_null(j);
        json_key_string(j, "alloc_note", REQUEST_COUNTED_BY_SITE);
    } else if (v->r.allocations.len) {
        json_key_u64(j, "alloc_bytes", request_each(rows->allocated[at].bytes, s));
        json_key_u64(j, "alloc_error_bytes", request_each(rows->allocated[at].error, s));
        json_key_u64(j, "alloc_samples", rows->allocated[at].samples);
    }
    json_key_double(j, "unknown_share", request_part_of(s->ns[CAUSE_UNKNOWN], s->latency_ns));
    json_key_string(j, "most", request_cause_name(request_most(s)));
    json_key_object(j, "causes");
    double sum = 0;
    for (int k = 0; k < REQUEST_CAUSES; k++) {
        uint64_t before = request_each(sum, s); /* the rounded parts add up like the exact ones */
        sum += s->ns[k];
        json_key_u64(j, request_cause_name((enum request_cause)k), request_each(sum, s) - before);
    }
    json_end_object(j);
    json_key_object(j, "causes_error");
    for (int k = 0; k < REQUEST_CAUSES; k++)
        json_key_u64(j, request_cause_name((enum request_cause)k), (uint64_t)s->error_ns[k]);
    json_end_object(j);
    json_key_array(j, "uncertain");
    for (int k = 0; k < REQUEST_CAUSES; k++)
        if (s->weight > 0 && s->with[k] &&
            estimate_is_uncertain(s->ns[k] / s->weight,
                                  k == CAUSE_CPU ? s->cpu_doubt_ns : s->error_ns[k], s->with[k]))
            json_string(j, request_cause_name((enum request_cause)k));
    json_end_array(j);
    json_end_object(j);
}

const char *request_cpu_note(const struct request_view *v)
{
    if (v->t->instrumented == TL_NONE)
        return "includes the time in which a ready thread had no processor, which this recording "
               "does not show";
    return v->t->uncounted
               ? "includes page faults, because the system does not let threads read how long they "
                 "had no processor (/proc/thread-self/schedstat); time without CPU samples is "
                 "unknown"
               : NULL;
}

void request_cpu_note_json(const struct request_view *v, struct json *j)
{
    json_key_string(j, "cpu_note", request_cpu_note(v));
}

int requests_names_json(struct request_view *v, struct json *j)
{
    _cleanup_(request_rows_release) struct request_rows rows = {0};
    int e = request_rows_of(v, &rows);
    json_begin_array(j);
    for (size_t i = 0; e == 0 && i < v->r.names.len; i++)
        row_json(v, &v->r.names.data[i], &rows, j);
    json_end_array(j);
    return e;
}

int request_part_own(struct request_view *v, const struct request_part *p,
                     struct group_culprit *ret)
{
    struct thread_activities own = {0};
    const struct thread_activity *most = NULL;
    int e = request_part_stacks(v->l, p, &own);
    *ret = (struct group_culprit){0};
    for (size_t i = 0; e == 0 && i < own.rows.len; i++)
        most = !most || own.rows.data[i].ns > most->ns ? &own.rows.data[i] : most;
    if (most)
        *ret = (struct group_culprit){.method = frames_ref_program(v->l, &most->frames),
                                      .frames = most->frames,
                                      .kind = most->kind,
                                      .ns = (double)most->ns};
    vec_release(&own.rows);
    return e;
}
