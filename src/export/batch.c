/* SPDX-License-Identifier: Apache-2.0 */
#include "export/batch.h"

#include "export/batch_requests.h"
#include "profile/load.h"

#include <errno.h>
#include <stdio.h>

struct filling {
    struct wire_batch *b;
    const struct batch_source *source;
    const struct profile *p;
    struct wire_profile *to;
    struct batch_requests *requests;
    bool timed; /* the samples of the metric that is added have times */
    /* by node of the profile: its number in the batch + 1; 0: not needed yet */
    VEC(uint32_t) nodes;
    struct map labels; /* thread and name of a request to a set */
};

static int64_t text_of(struct filling *f, uint32_t string)
{
    struct str s = profile_text(f->p, string);
    return wire_string(f->b, s.data, s.len);
}

static int64_t frame_of(struct filling *f, uint32_t number)
{
    const struct profile_frame *frame = &f->p->frames.data[number];
    const struct profile_method *m = &f->p->methods.data[frame->method];
    const char *kind = frame_kind_names[frame->kind];
    int64_t name = text_of(f, m->label), signature = text_of(f, m->signature),
            file = text_of(f, m->file), k = wire_string(f->b, kind, strlen(kind));
    int64_t worst = MIN(MIN(name, signature), MIN(file, k));
    if (worst < 0)
        return worst;
    struct wire_frame w = {.name = (uint32_t)name,
                           .signature = (uint32_t)signature,
                           .file = (uint32_t)file,
                           .kind = (uint32_t)k,
                           .line = frame->line};
    return wire_frame(f->b, &w);
}

/* Returns the stack of a node, whose parents get theirs first. */
static int64_t node_of(struct filling *f, uint32_t node)
{
    VEC(uint32_t) path = {0};
    int r = 0;
    for (; r == 0 && node && !f->nodes.data[node]; node = f->p->nodes.data[node].parent)
        r = vec_push(&path, node);
    int64_t at = r < 0 ? r : node ? f->nodes.data[node] - 1 : 0;
    while (path.len && at >= 0) {
        node = path.data[--path.len];
        int64_t frame = frame_of(f, f->p->nodes.data[node].frame);
        at = frame < 0 ? frame : wire_node(f->b, (uint32_t)at, (uint32_t)frame);
        if (at >= 0)
            f->nodes.data[node] = (uint32_t)at + 1;
    }
    vec_release(&path);
    return at;
}

static int64_t add_label(struct filling *f, int64_t set, const char *key, const char *value,
                         size_t len)
{
    int64_t k = set < 0 ? set : wire_string(f->b, key, strlen(key));
    int64_t v = k < 0 ? k : wire_string(f->b, value, len);
    struct wire_label l = {(uint32_t)k, (uint32_t)v};
    return v < 0 ? v : wire_labels_with(f->b, (uint32_t)set, &l, 1);
}

static int64_t labels_of(struct filling *f, uint32_t thread, const struct batch_request *q)
{
    bool added = false;
    uint64_t *known = map_at(&f->labels, (uint64_t)thread << 32 | (q ? q->name + 1 : 0), 0, &added);
    if (!known)
        return -ENOMEM;
    if (!added)
        return (int64_t)*known;
    struct str name = thread < f->p->threads.len
                          ? profile_text(f->p, f->p->threads.data[thread].name)
                          : (struct str){"", 0};
    int64_t set = add_label(f, 0, WIRE_THREAD, name.data, name.len);
    const char *request = q ? batch_requests_name(f->requests, q) : NULL;
    if (request && set >= 0)
        set = add_label(f, set, WIRE_REQUEST, request, strlen(request));
    /* The map may have moved, but nothing was added to it meanwhile. */
    if (set >= 0)
        *known = (uint64_t)set;
    return set;
}

static int add_sample(void *context, const struct profile_sample *s)
{
    struct filling *f = context;
    uint64_t time = f->p->start_epoch_ns && f->timed ? f->p->start_epoch_ns + s->time_ns : 0;
    const struct batch_request *q = NULL;
    struct wire_link trace = {0};
    if (f->requests && s->thread < f->p->threads.len) {
        uint64_t thread = f->p->threads.data[s->thread].id;
        q = batch_requests_at(f->requests, thread, (int64_t)time);
        trace = batch_requests_link(f->requests, thread, (int64_t)time, q);
    }
    int64_t node = node_of(f, s->node);
    int64_t labels = node < 0 ? node : labels_of(f, s->thread, q);
    int64_t link = labels < 0 ? labels : wire_link(f->b, &trace);
    if (link < 0)
        return (int)link;
    return wire_sample(f->b, f->to,
                       &(struct wire_sample){.time_ns = time,
                                             .value = (int64_t)MIN(s->weight, (uint64_t)INT64_MAX),
                                             .node = (uint32_t)node,
                                             .labels = (uint32_t)labels,
                                             .link = (uint32_t)link});
}

static int begin_profile(struct filling *f, const char *type, const char *unit)
{
    const struct profile_filter *filter = &f->source->filter;
    int64_t n = wire_profile(f->b);
    if (n < 0)
        return (int)n;
    f->to = &f->b->profiles.data[n];
    f->to->resource = f->source->resource;
    if (f->p->start_epoch_ns)
        f->to->start_ns = f->p->start_epoch_ns + filter->from_ns;
    f->to->duration_ns = profile_span(f->p, filter);
    n = wire_type(f->b, f->to, type, unit);
    return n < 0 ? (int)n : 0;
}

/* The names of the metrics in profiles that are sent; other programs use the same names. */
static const struct {
    const char *type, *unit, *period; /* period: the type of the sampling interval */
} names[PROFILE_METRICS] = {
    [PROFILE_CPU] = {"samples", "count", "cpu"},
    [PROFILE_WALL] = {"samples", "count", "wall"},
    [PROFILE_ALLOCATION] = {"alloc_space", "bytes", NULL},
    [PROFILE_LOCK] = {"delay", "nanoseconds", NULL},
    [PROFILE_EXACT] = {"times", "nanoseconds", NULL},
};

static int set_period(struct filling *f, enum profile_metric metric)
{
    int64_t name = wire_string(f->b, names[metric].period, strlen(names[metric].period)),
            unit = wire_string(f->b, "nanoseconds", strlen("nanoseconds"));
    if (name < 0 || unit < 0)
        return (int)MIN(name, unit);
    f->to->period_type = (struct wire_type){(uint32_t)name, (uint32_t)unit};
    f->to->period = f->p->series[metric].interval_ns;
    return 0;
}

static int set_note(struct filling *f, const struct profile_view *v)
{
    _cleanup_(buf_release) struct buf note = BUF(4096);
    profile_note(v, &note);
    int64_t set = note.len ? add_label(f, 0, WIRE_NOTE, buf_str(&note), note.len) : 0;
    if (set > 0)
        f->to->labels = (uint32_t)set;
    return set < 0 ? (int)set : 0;
}

static int add_metric(struct filling *f, enum profile_metric metric)
{
    _cleanup_(profile_view_release) struct profile_view v = {0};
    int r = profile_view_init(&v, f->p, metric, &f->source->filter);
    if (r == -ENODATA)
        return 0;
    /* If there is no interval, only the name shows that the samples do not measure CPU time. */
    f->timed = profile_is_timed(f->p, metric);
    bool nameless = metric == PROFILE_WALL && !f->p->series[metric].interval_ns;
    if (r == 0)
        r = begin_profile(f, nameless ? "wall" : names[metric].type, names[metric].unit);
    if (r == 0 && names[metric].period && f->p->series[metric].interval_ns)
        r = set_period(f, metric);
    if (r == 0)
        r = set_note(f, &v);
    return r < 0 ? r : profile_view_each(&v, add_sample, f);
}

static uint64_t alloc_objects(const struct profile_site *s)
{
    return s->objects;
}

static uint64_t live_objects(const struct profile_site *s)
{
    return s->live_known ? s->live_objects : 0;
}

static uint64_t live_bytes(const struct profile_site *s)
{
    return s->live_known ? s->live_bytes : 0;
}

/*
 * Adds the figures of allocation sites except for allocated bytes: sums over the recording, without
 * times and threads.
 */
static int add_sites(struct filling *f, const char *type, const char *unit, bool live,
                     uint64_t (*value)(const struct profile_site *s))
{
    uint64_t all = 0;
    for (size_t i = 0; i < f->p->sites.len; i++)
        all |= value(&f->p->sites.data[i]);
    int r = all ? begin_profile(f, type, unit) : 0;
    for (size_t i = 0; all && r == 0 && i < f->p->sites.len; i++) {
        const struct profile_site *s = &f->p->sites.data[i];
        uint64_t n = MIN(value(s), (uint64_t)INT64_MAX);
        bool unsure = live && profile_site_unsure(s);
        int64_t node = n ? node_of(f, s->node) : 0;
        int64_t set = n && unsure && node >= 0 ? add_label(f, 0, WIRE_UNSURE, "true", 4) : 0;
        r = (int)MIN(MIN(node, set), 0);
        if (n && r == 0)
            r = wire_sample(f->b, f->to,
                            &(struct wire_sample){.value = (int64_t)n,
                                                  .node = (uint32_t)node,
                                                  .labels = (uint32_t)set});
    }
    return r;
}

static int add_all(struct filling *f)
{
    const struct profile_filter *filter = &f->source->filter;
    bool whole = !filter->thread && !filter->class_name && !filter->from_ns && !filter->to_ns;
    int r = 0;
    for (int m = 0; r == 0 && m < PROFILE_METRICS; m++)
        if ((!f->source->only_metric || f->source->metric == (enum profile_metric)m) &&
            ((!filter->from_ns && !filter->to_ns) ||
             profile_is_timed(f->p, (enum profile_metric)m)))
            r = add_metric(f, (enum profile_metric)m);
    bool sites = whole && (!f->source->only_metric || f->source->metric == PROFILE_ALLOCATION);
    if (r == 0 && sites)
        r = add_sites(f, "alloc_objects", "count", false, alloc_objects);
    if (r == 0 && sites)
        r = add_sites(f, "inuse_objects", "count", true, live_objects);
    if (r == 0 && sites)
        r = add_sites(f, "inuse_space", "bytes", true, live_bytes);
    return r;
}

int batch_add(struct wire_batch *b, const struct batch_source *s, struct buf *why)
{
    struct batch_requests requests = {0};
    struct filling f = {.b = b, .source = s, .p = s->profile};
    int r = vec_extend(&f.nodes, s->profile->nodes.len + 1);
    if (r == 0 && s->path && s->profile->start_epoch_ns) {
        r = batch_requests_load(&requests, s->path, why);
        f.requests = r > 0 ? &requests : NULL;
        r = MIN(r, 0);
    }
    if (r == 0)
        r = add_all(&f);
    if (r == -E2BIG && !why->len)
        buf_printf(why, "beyond the limits: %s", b->beyond ? b->beyond : "too large");
    vec_release(&f.nodes);
    map_release(&f.labels);
    batch_requests_release(&requests);
    return r;
}
