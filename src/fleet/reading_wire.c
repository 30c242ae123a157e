/* SPDX-License-Identifier: Apache-2.0 */
/* Turns profiles that other programs send (wire/batch.h) into batches, one for each origin. */
#include "fleet/reading.h"

#include "base/file.h"
#include "fleet/readings.h"
#include "profile/profile.h"
#include "wire/batch.h"
#include "wire/otlp.h"
#include "wire/pprof.h"

#include <errno.h>

/* Maps the numbers of the received batch to those of the batch that is being made. */
struct crossing {
    const struct wire_batch *w;
    const struct fleet_reading *how;
    struct batch *b;
    uint32_t *frames, *stacks; /* number + 1; 0: not yet */
    VEC(uint32_t) path;
    struct readings readings; /* of the current profile */
};

static enum fleet_kind kind_of(struct str kind)
{
    static const struct {
        const char *name;
        enum fleet_kind kind;
    } kinds[] = {{"native", FLEET_NATIVE},
                 {"kernel", FLEET_KERNEL},
                 {"stub", FLEET_STUB},
                 {"mark", FLEET_MARK}};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_is(kind, kinds[i].name))
            return kinds[i].kind;
    return FLEET_JAVA;
}

static int64_t frame_of(struct crossing *c, uint32_t frame)
{
    if (c->frames[frame])
        return c->frames[frame] - 1;
    const struct wire_frame *f = &c->w->frames.data[frame];
    struct str name = wire_text(c->w, f->name);
    int64_t at = batch_frame(c->b, kind_of(wire_text(c->w, f->kind)), name.data, name.len);
    if (at >= 0)
        c->frames[frame] = (uint32_t)at + 1;
    return at;
}

static int64_t stack_of(struct crossing *c, uint32_t node)
{
    if (c->stacks[node])
        return c->stacks[node] - 1;
    size_t depth = c->w->nodes.data[node].depth;
    vec_clear(&c->path);
    if (vec_extend(&c->path, depth) < 0)
        return -ENOMEM;
    for (uint32_t n = node; n && depth; n = c->w->nodes.data[n].parent) {
        int64_t frame = frame_of(c, c->w->nodes.data[n].frame);
        if (frame < 0)
            return frame;
        c->path.data[--depth] = (uint32_t)frame;
    }
    int64_t at = batch_stack(c->b, c->path.data, c->path.len);
    if (at >= 0)
        c->stacks[node] = (uint32_t)at + 1;
    return at;
}

/* The type in a store, and whether a value is a number of objects or their weight. */
struct target {
    const char *name, *unit;
    bool counts;  /* the value is a number of objects or waits, whose weights are another type */
    bool has_one; /* another type of the profile counts */
};

static bool has_metric(const struct wire_batch *w, const struct wire_profile *p,
                       enum wire_metric metric)
{
    for (uint32_t t = 0; t < p->types.len; t++)
        if (wire_meaning(w, p, t).metric == metric)
            return true;
    return false;
}

static struct target target_of(const struct crossing *c, const struct wire_profile *p,
                               const struct wire_sample *s, const struct wire_meaning *m)
{
    const struct wire_batch *w = c->w;
    switch (m->metric) {
    case WIRE_CPU:
        return (struct target){"cpu", m->ns ? "nanoseconds" : FLEET_TIMELESS, false, false};
    case WIRE_WALL:
        return (struct target){"wall", m->ns ? "nanoseconds" : FLEET_TIMELESS, false, false};
    case WIRE_ALLOC_BYTES:
        return (struct target){"allocations", c->readings.all ? FLEET_ESTIMATED : "bytes", false,
                               has_metric(w, p, WIRE_ALLOC_OBJECTS)};
    case WIRE_ALLOC_OBJECTS:
        return (struct target){"allocations", "bytes", true, false};
    case WIRE_LIVE_BYTES:
    case WIRE_LIVE_OBJECTS:
        return (struct target){"live",
                               wire_label(w, s->labels, WIRE_UNSURE).len ? FLEET_UNSURE : "bytes",
                               m->metric == WIRE_LIVE_OBJECTS,
                               m->metric == WIRE_LIVE_BYTES && has_metric(w, p, WIRE_LIVE_OBJECTS)};
    case WIRE_LOCK_NS:
        return (struct target){"locks", "nanoseconds", false, has_metric(w, p, WIRE_LOCK_COUNT)};
    case WIRE_LOCK_COUNT:
        return (struct target){"locks", "nanoseconds", true, false};
    case WIRE_EXACT_NS:
        return (struct target){"times", c->readings.all ? FLEET_READ : "nanoseconds", false, false};
    default:
        return (struct target){wire_text(w, p->types.data[s->type].name).data,
                               wire_text(w, p->types.data[s->type].unit).data, false, false};
    }
}

static void weigh(struct fleet_sample *to, uint64_t value, const struct wire_meaning *m,
                  const struct target *t)
{
    if (m->metric == WIRE_CPU || m->metric == WIRE_WALL) {
        /* Without a sampling period it is unknown how many samples a time stands for. */
        to->count =
            m->count ? value / m->count + (value % m->count * 2 >= m->count && m->count > 1) : 1;
        to->weight = value * m->ns;
    } else if (t->counts) {
        to->count = value;
    } else {
        to->count = t->has_one ? 0 : 1;
        to->weight = value;
    }
}

static int add_trace(struct crossing *c, uint32_t link, struct fleet_sample *to)
{
    static const uint8_t none[16];
    struct fleet_hash trace;
    if (!link)
        return 0;
    memcpy(trace.bytes, c->w->links.data[link].trace, sizeof(trace.bytes));
    if (memcmp(trace.bytes, none, sizeof(none)) == 0)
        return 0;
    int64_t at = batch_trace(c->b, &trace);
    to->trace = at < 0 ? 0 : (uint32_t)at + 1;
    return at < 0 ? (int)at : 0;
}

/*
 * `convert` and `--push` name the request in which a sample was taken; Java agents of Pyroscope and
 * of OpenTelemetry name the span.
 */
static int add_request(struct crossing *c, uint32_t labels, struct fleet_sample *to)
{
    struct str name = wire_label(c->w, labels, "request");
    if (!name.len)
        name = wire_label(c->w, labels, "span_name");
    if (!name.len)
        return 0;
    int64_t at = batch_name(c->b, FLEET_REQUEST, name.data, name.len);
    to->request = at < 0 ? 0 : (uint32_t)at + 1;
    return at < 0 ? (int)at : 0;
}

/* Returns whether figures of a metric may be based on readings or samples. */
static bool is_read(enum wire_metric metric)
{
    return metric == WIRE_EXACT_NS || metric == WIRE_ALLOC_BYTES;
}

static int add_sample(struct crossing *c, const struct wire_profile *p, const struct wire_sample *s)
{
    struct wire_meaning m = wire_meaning(c->w, p, s->type);
    struct target t = target_of(c, p, s, &m);
    struct fleet_sample to = {.count = 0};
    if (m.repeated || s->value <= 0)
        return 0;
    weigh(&to, (uint64_t)s->value, &m, &t);
    if (is_read(m.metric) && c->readings.all)
        to.count = readings_next(&c->readings, to.weight);
    int64_t type = batch_type(c->b, t.name, t.unit);
    int64_t stack = type < 0 ? type : stack_of(c, s->node);
    if (stack < 0)
        return (int)stack;
    to.type = (uint32_t)type;
    to.stack = (uint32_t)stack;
    int r = add_trace(c, s->link, &to);
    if (r == 0)
        r = add_request(c, s->labels, &to);
    uint64_t time = s->time_ns ? s->time_ns : p->start_ns;
    return r < 0 ? r : batch_sample(c->b, time ? (int64_t)time : c->how->from_ns, to);
}

static int add_origin(struct batch *b, const struct wire_batch *w, uint32_t set)
{
    const struct wire_label_set *s = &w->sets.data[set];
    for (uint32_t i = 0; i < s->len; i++) {
        const struct wire_label *l = &w->labels.data[s->first + i];
        struct str key = wire_text(w, l->key), value = wire_text(w, l->value);
        int64_t k = strpool_add(&b->strings, key.data, key.len);
        int64_t v = k < 0 ? k : strpool_add(&b->strings, value.data, value.len);
        int r = v < 0
                    ? (int)v
                    : vec_push(&b->origin, ((struct fleet_origin_label){(uint32_t)k, (uint32_t)v}));
        if (r < 0)
            return r;
    }
    return 0;
}

/* In our own formats a note has the number of readings or samples on which a profile is based. */
static struct readings readings_of(const struct wire_batch *w, const struct wire_profile *p)
{
    struct readings r = {.all = profile_readings_noted(wire_label(w, p->labels, WIRE_NOTE))};
    double whole = 0;
    for (size_t i = 0; i < p->samples.len && r.all; i++) {
        const struct wire_sample *s = &p->samples.data[i];
        if (is_read(wire_meaning(w, p, s->type).metric) && s->value > 0)
            whole += (double)s->value;
    }
    r.each = whole > 0 ? (double)r.all / whole : 0;
    return r;
}

/* Makes one batch of the profiles of one resource. */
static int cross(struct fleet_batches *to, const struct wire_batch *w, uint32_t resource,
                 const struct fleet_reading *how)
{
    struct crossing c = {.w = w,
                         .how = how,
                         .frames = calloc(w->frames.len + 1, sizeof(uint32_t)),
                         .stacks = calloc(w->nodes.len + 1, sizeof(uint32_t))};
    int r = c.frames && c.stacks ? vec_extend(&to->list, 1) : -ENOMEM;
    if (r == 0) {
        c.b = &to->list.data[to->list.len - 1];
        r = add_origin(c.b, w, resource);
    }
    for (size_t i = 0; i < w->profiles.len && r == 0; i++) {
        const struct wire_profile *p = &w->profiles.data[i];
        c.readings = readings_of(w, p);
        for (size_t k = 0; p->resource == resource && k < p->samples.len && r == 0; k++)
            r = add_sample(&c, p, &p->samples.data[k]);
    }
    free(c.frames);
    free(c.stacks);
    vec_release(&c.path);
    return r;
}

static int add_live(struct crossing *c)
{
    int r = 0;
    for (size_t i = 0; i < c->w->profiles.len && r == 0; i++) {
        const struct wire_profile *p = &c->w->profiles.data[i];
        for (size_t k = 0; k < p->samples.len && r == 0; k++) {
            const struct wire_sample *s = &p->samples.data[k];
            enum wire_metric m = wire_meaning(c->w, p, s->type).metric;
            int64_t time_ns = (int64_t)(s->time_ns ? s->time_ns : p->start_ns);
            if ((m == WIRE_LIVE_BYTES || m == WIRE_LIVE_OBJECTS) &&
                fleet_reading_includes(c->how, time_ns ? time_ns : c->how->from_ns))
                r = add_sample(c, p, s);
        }
    }
    return r;
}

int reading_wire_live(struct batch *b, const char *path, const struct fleet_reading *how,
                      struct buf *why)
{
    _cleanup_(wire_batch_release) struct wire_batch w = {.limits = wire_limits_wide};
    struct file_map file = {0};
    int r = file_map_open(&file, path);
    if (r == 0)
        r = otlp_is(file.data, file.len) ? otlp_decode(&w, file.data, file.len, why)
                                         : pprof_decode(&w, file.data, file.len, 0, why);
    struct crossing c = {.w = &w, .how = how, .b = b};
    c.frames = r < 0 ? NULL : calloc(w.frames.len + 1, sizeof(uint32_t));
    c.stacks = r < 0 ? NULL : calloc(w.nodes.len + 1, sizeof(uint32_t));
    if (r == 0)
        r = c.frames && c.stacks ? add_live(&c) : -ENOMEM;
    free(c.frames);
    free(c.stacks);
    vec_release(&c.path);
    file_map_release(&file);
    return r;
}

int fleet_batches_of_wire(struct fleet_batches *to, const struct wire_batch *w,
                          const struct fleet_reading *how)
{
    int r = 0;
    for (size_t i = 0; i < w->profiles.len && r == 0; i++) {
        bool done = false;
        for (size_t k = 0; k < i && !done; k++)
            done = w->profiles.data[k].resource == w->profiles.data[i].resource;
        if (!done)
            r = cross(to, w, w->profiles.data[i].resource, how);
    }
    return r;
}
