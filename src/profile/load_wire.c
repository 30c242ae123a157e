/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads profiles as programs send them to each other, compressed or not: pprof and OTLP, as written
 * by export/pprof.c and export/otlp.c, and by other profilers.
 */
#include "profile/load.h"

#include "base/file_format.h"
#include "base/pattern.h"
#include "wire/otlp.h"
#include "wire/pprof.h"
#include "wire/unpack.h"

#include <errno.h>

enum { UNPACKED_MAX = 1 << 30 };

#define KINDS ": CPU or wall-clock samples, allocated bytes, times"

struct filling {
    struct load *l;
    const struct wire_batch *b;
    VEC(uint32_t) frames, nodes, threads; /* by number in the batch: the number here + 1 */
    VEC(uint32_t) requests;               /* of label sets: REQUEST_SELECTED or REQUEST_OTHER */
    VEC(uint32_t) path;                   /* of node_of */
    uint64_t start_ns;                    /* the time of the first profile since 1970 */
};

/* OpenTelemetry's names for kinds of frames. */
static const struct {
    const char *name;
    enum frame_kind kind;
} kinds[] = {{"jvm", FRAME_JAVA}, {"native", FRAME_NATIVE}, {"kernel", FRAME_KERNEL}};

static enum frame_kind kind_of(struct str name)
{
    for (int k = 0; k < FRAME_KINDS; k++)
        if (str_is(name, frame_kind_names[k]))
            return (enum frame_kind)k;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (str_is(name, kinds[i].name))
            return kinds[i].kind;
    return FRAME_JAVA;
}

static int64_t frame_of(struct filling *f, uint32_t number)
{
    uint32_t *known = &f->frames.data[number];
    if (*known)
        return *known - 1;
    const struct wire_frame *w = &f->b->frames.data[number];
    int64_t frame =
        load_frame(f->l->profile, wire_text(f->b, w->name), wire_text(f->b, w->signature),
                   wire_text(f->b, w->file), w->line, kind_of(wire_text(f->b, w->kind)));
    if (frame >= 0)
        *known = (uint32_t)frame + 1;
    return frame;
}

/* Returns the node of a stack, whose parents get theirs first. */
static int64_t node_of(struct filling *f, uint32_t number)
{
    uint32_t at = number;
    int r = 0;
    vec_clear(&f->path);
    for (; r == 0 && at && !f->nodes.data[at]; at = f->b->nodes.data[at].parent)
        r = vec_push(&f->path, at);
    int64_t node = r < 0 ? r : at ? f->nodes.data[at] - 1 : 0;
    while (f->path.len && node >= 0) {
        at = f->path.data[--f->path.len];
        int64_t frame = frame_of(f, f->b->nodes.data[at].frame);
        node = frame < 0 ? frame : profile_node(f->l->profile, (uint32_t)node, (uint32_t)frame);
        if (node >= 0)
            f->nodes.data[at] = (uint32_t)node + 1;
    }
    return node;
}

static int64_t thread_of(struct filling *f, uint32_t labels)
{
    uint32_t *known = &f->threads.data[labels];
    if (*known)
        return *known - 1;
    struct profile *p = f->l->profile;
    struct str name = wire_label(f->b, labels, WIRE_THREAD);
    int64_t text = profile_string(p, name.data, name.len);
    int64_t thread = text < 0 ? text : profile_thread(p, (uint64_t)text, name.data, name.len);
    if (thread >= 0)
        *known = (uint32_t)thread + 1;
    return thread;
}

enum { REQUEST_UNKNOWN, REQUEST_SELECTED, REQUEST_OTHER };

/*
 * Returns whether the filter selects the request that a set of labels names, or a negative errno.
 */
static int request_selected(struct filling *f, uint32_t labels)
{
    uint32_t *known = &f->requests.data[labels];
    struct profile *p = f->l->profile;
    struct str name = wire_label(f->b, labels, WIRE_REQUEST);
    if (*known)
        return *known == REQUEST_SELECTED;
    int64_t text = name.len ? profile_string(p, name.data, name.len) : 0;
    if (text < 0 || (text && vec_push(&p->requests, (uint32_t)text) < 0))
        return -ENOMEM;
    const char *wanted = f->l->filter ? f->l->filter->request : NULL;
    bool selected = !wanted || (name.len && pattern_match(wanted, name.data, name.len));
    *known = selected ? REQUEST_SELECTED : REQUEST_OTHER;
    return selected;
}

/* What a type is read as: nothing (PROFILE_METRICS), or a metric with a unit. */
struct reading {
    enum profile_metric metric;
    uint64_t divisor;
};

static struct reading reading_of(const struct wire_batch *b, const struct wire_profile *p,
                                 uint32_t type, bool allocations)
{
    struct wire_meaning m = wire_meaning(b, p, type);

    static const enum profile_metric metrics[] = {[WIRE_CPU] = PROFILE_CPU,
                                                  [WIRE_WALL] = PROFILE_WALL,
                                                  [WIRE_LOCK_NS] = PROFILE_LOCK,
                                                  [WIRE_EXACT_NS] = PROFILE_EXACT,
                                                  [WIRE_ALLOC_BYTES] = PROFILE_ALLOCATION};

    if (m.metric == WIRE_LIVE_BYTES && !allocations)
        return (struct reading){PROFILE_ALLOCATION, 1};
    bool none = m.repeated || m.metric == WIRE_ALLOC_OBJECTS || m.metric == WIRE_LIVE_BYTES ||
                m.metric == WIRE_LIVE_OBJECTS || m.metric == WIRE_LOCK_COUNT ||
                m.metric == WIRE_OTHER;
    return none ? (struct reading){PROFILE_METRICS, 1}
                : (struct reading){metrics[m.metric], MAX(m.count, UINT64_C(1))};
}

static bool has_metric(const struct wire_batch *b, enum wire_metric metric)
{
    for (size_t i = 0; i < b->profiles.len; i++) {
        const struct wire_profile *p = &b->profiles.data[i];
        for (uint32_t t = 0; t < p->types.len; t++)
            if (wire_meaning(b, p, t).metric == metric)
                return true;
    }
    return false;
}

static int add_sample(struct filling *f, const struct wire_profile *p, const struct wire_sample *s,
                      struct reading r)
{
    uint64_t weight = s->value > 0 ? (uint64_t)s->value : 0;
    weight = weight / r.divisor + (weight % r.divisor * 2 >= r.divisor && r.divisor > 1);
    int selected = request_selected(f, s->labels);
    int64_t node = node_of(f, s->node), thread = thread_of(f, s->labels);
    if (node < 0 || thread < 0 || selected < 0)
        return -ENOMEM;
    if (!weight || !selected)
        return 0;
    struct profile *to = f->l->profile;
    uint64_t time = s->time_ns > f->start_ns ? s->time_ns - f->start_ns : 0;
    if (!s->time_ns && p->start_ns > f->start_ns)
        time = p->start_ns - f->start_ns;
    to->duration_ns = MAX(to->duration_ns, time);
    to->series[r.metric].untimed |= !s->time_ns;
    return profile_sample(
        to, r.metric,
        (struct profile_sample){
            .time_ns = time, .weight = weight, .thread = (uint32_t)thread, .node = (uint32_t)node});
}

static int add_profile(struct filling *f, const struct wire_profile *p, bool allocations,
                       bool *ret_any)
{
    struct profile *to = f->l->profile;
    struct str note = wire_label(f->b, p->labels, WIRE_NOTE);
    int64_t text = note.len ? profile_string(to, note.data, note.len) : 0;
    VEC(struct reading) readings = {0};
    int r = text < 0 ? (int)text : 0;
    for (uint32_t t = 0; r == 0 && t < p->types.len; t++) {
        struct reading reading = reading_of(f->b, p, t, allocations);
        r = vec_push(&readings, reading);
        if (r < 0 || reading.metric == PROFILE_METRICS)
            continue;
        struct wire_meaning m = wire_meaning(f->b, p, t);
        *ret_any = true;
        to->series[reading.metric].stated = true;
        if (text)
            to->series[reading.metric].note = (uint32_t)text;
        if (profile_metrics[reading.metric].unit == UNIT_SAMPLES && m.count)
            to->series[reading.metric].interval_ns = m.ns * m.count;
    }
    for (size_t i = 0; r == 0 && i < p->samples.len; i++) {
        const struct wire_sample *s = &p->samples.data[i];
        if (readings.data[s->type].metric != PROFILE_METRICS)
            r = add_sample(f, p, s, readings.data[s->type]);
        if (f->l->progress && i % 65536 == 0)
            f->l->progress(f->l->progress_context, i, p->samples.len);
    }
    vec_release(&readings);
    return r;
}

static int fill(struct filling *f, const char *unknown)
{
    struct profile *to = f->l->profile;
    /* If there are no allocations, live objects are read in their place. */
    bool any = false, allocations = has_metric(f->b, WIRE_ALLOC_BYTES);
    int r = vec_extend(&f->frames, f->b->frames.len);
    if (r == 0)
        r = vec_extend(&f->nodes, f->b->nodes.len);
    if (r == 0)
        r = vec_extend(&f->threads, f->b->sets.len);
    if (r == 0)
        r = vec_extend(&f->requests, f->b->sets.len);
    for (size_t i = 0; i < f->b->profiles.len; i++) {
        uint64_t start = f->b->profiles.data[i].start_ns;
        f->start_ns = start && (!f->start_ns || start < f->start_ns) ? start : f->start_ns;
    }
    to->start_epoch_ns = f->start_ns;
    to->is_sent = true;
    to->only_live = !allocations;
    to->has_live = has_metric(f->b, WIRE_LIVE_BYTES) || has_metric(f->b, WIRE_LIVE_OBJECTS);
    for (size_t i = 0; r == 0 && i < f->b->profiles.len; i++) {
        const struct wire_profile *p = &f->b->profiles.data[i];
        uint64_t begin = p->start_ns > f->start_ns ? p->start_ns - f->start_ns : 0;
        to->duration_ns = MAX(to->duration_ns, begin + p->duration_ns);
        r = add_profile(f, p, allocations, &any);
    }
    if (r == 0 && !any) {
        buf_string(f->l->why, unknown);
        r = -ENOTSUP;
    }
    return r;
}

static int load_batch(struct load *l, const struct wire_batch *b, const char *unknown)
{
    struct filling f = {.l = l, .b = b};
    int r = fill(&f, unknown);
    vec_release(&f.frames);
    vec_release(&f.nodes);
    vec_release(&f.threads);
    vec_release(&f.requests);
    vec_release(&f.path);
    return r;
}

int load_wire(struct load *l)
{
    _cleanup_(wire_batch_release) struct wire_batch b = {.limits = wire_limits_wide};
    _cleanup_(buf_release) struct buf unpacked = BUF(UNPACKED_MAX + 1);
    const void *data = l->data;
    size_t len = l->len;
    int r = 0;
    if (unpack_is_packed(data, len)) {
        r = unpack_bytes(data, len, UNPACKED_MAX, &unpacked, l->why);
        data = unpacked.data;
        len = unpacked.len;
    }
    bool otlp = r == 0 && otlp_is(data, len);
    if (r == 0 && file_format_of(data, len) == FORMAT_JFR) {
        buf_string(l->why, "a compressed flight recording: unpack it with gunzip or unzstd first");
        r = -ENOTSUP;
    }
    if (r == 0)
        r = otlp ? otlp_decode(&b, data, len, l->why) : pprof_decode(&b, data, len, 0, l->why);
    buf_release(&unpacked);
    return r < 0 ? r
                 : load_batch(l, &b,
                              otlp ? "OTLP profiles of unknown kinds only" KINDS
                                   : "a pprof profile of unknown kinds only" KINDS);
}
