/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes HPROF's text and binary outputs: threads, traces, and CPU SAMPLES (or CPU TIME from exact
 * times). A trace is a node of the profile. Numbers begin at the same value as those of the
 * original agent.
 */
#include "base/parse.h"
#include "export/export.h"
#include "hprof/text.h"
#include "hprof/writer.h"

#include <errno.h>
#include <string.h>

enum {
    FIRST_TRACE = 300000,
    FIRST_THREAD = 200001,
    FIRST_CLASS = 100001,
    CLASS_OBJECTS = 0x50000000
};

static int to_stdio(void *context, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, context) == len ? 0 : -EIO;
}

static uint32_t trace_of(uint32_t node)
{
    return FIRST_TRACE + node;
}

struct ranked {
    uint64_t weight, count; /* count: the number of calls for exact times, otherwise the weight */
    uint32_t node;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return x->count != y->count ? (x->count < y->count ? 1 : -1)
                                : (x->node > y->node) - (x->node < y->node);
}

/* Nodes whose time, in ns, is left out because it is based on too few readings. */
struct left_out {
    uint64_t weight, nodes;
};

/*
 * Lists the nodes with a weight of their own, heaviest first; the caller frees *ret. Times that are
 * based on too few readings are unknown and treated as 0, as in the agent's own output.
 */
static int rank_nodes(const struct profile_view *v, struct ranked **ret, size_t *ret_n,
                      struct left_out *ret_left)
{
    const struct profile *p = v->profile;
    bool exact = v->metric == PROFILE_EXACT;
    uint64_t least = exact ? profile_least_weight(v) : 0;
    VEC(struct ranked) list = {0};
    _cleanup_free_ uint64_t *calls = exact ? calloc(p->nodes.len + 1, sizeof(*calls)) : NULL;
    if (exact && !calls)
        return -ENOMEM;
    for (size_t i = 0; exact && i < p->calls.len; i++) {
        const struct profile_calls *c = &p->calls.data[i];
        if ((!v->thread_counts || v->thread_counts[c->thread]) &&
            (!v->node_counts || v->node_counts[c->node]))
            calls[c->node] += c->calls;
    }
    for (size_t i = 0; i < p->nodes.len; i++) {
        uint64_t count = exact ? calls[i] : v->self[i];
        uint64_t self = v->self[i] < least ? 0 : v->self[i];
        ret_left->weight += v->self[i] - self;
        ret_left->nodes += v->self[i] > self;
        if ((self || count) && vec_push(&list, ((struct ranked){self, count, (uint32_t)i})) < 0) {
            vec_release(&list);
            return -ENOMEM;
        }
    }
    if (list.len)
        qsort(list.data, list.len, sizeof(*list.data), compare_ranked);
    *ret = list.data;
    *ret_n = list.len;
    return 0;
}

static void note_left_out(struct buf *note, const struct profile_view *v,
                          const struct left_out *left)
{
    char time[24], all[24];
    if (!note || !left->nodes)
        return;
    buf_printf(note,
               "the output lacks the time of %s, %s of %s: ", COUNT_TEXT(left->nodes, "stacks"),
               format_duration(time, left->weight), format_duration(all, v->weight));
    buf_printf(note, "each rests on fewer than %d readings of the CPU clock", FEWEST_READINGS);
}

static int open_view(struct profile_view *v, const struct export_source *s, struct buf *why)
{
    bool locks = s->metric == PROFILE_LOCK;
    if (locks || s->metric == PROFILE_ALLOCATION) {
        buf_printf(why,
                   "the table %s of HPROF lists classes and counts, which a profile of %s does not "
                   "keep; record it with run %s -o FILE.hprof.txt",
                   locks ? "MONITOR TIME" : "SITES", profile_metrics[s->metric].name,
                   locks ? "--monitors" : "--alloc=exact");
        return -ENOTSUP;
    }
    return profile_view_init(v, s->profile, s->metric, &s->filter);
}

static int32_t line_of(const struct profile_frame *f)
{
    return f->line ? f->line : f->kind == FRAME_NATIVE ? HPROF_LINE_NATIVE : HPROF_LINE_UNKNOWN;
}

static void text_trace(struct hprof_text *t, const struct profile *p, uint32_t node)
{
    hprof_text_trace(t, trace_of(node), 0);
    if (!node)
        hprof_text_trace_empty(t);
    for (uint32_t n = node; n; n = p->nodes.data[n].parent) {
        const struct profile_frame *f = profile_node_frame(p, n);
        const struct profile_method *m = &p->methods.data[f->method];
        struct str file = profile_text(p, m->file);
        hprof_text_frame(t, profile_text(p, m->label).data, file.len ? file.data : NULL,
                         line_of(f));
    }
}

static void text_table(struct hprof_text *t, const struct profile_view *v,
                       const struct ranked *list, size_t n, time_t when)
{
    bool exact = v->metric == PROFILE_EXACT;
    enum hprof_ranked kind = exact                       ? HPROF_RANKED_TIMES
                             : v->metric == PROFILE_WALL ? HPROF_RANKED_WALL
                                                         : HPROF_RANKED_SAMPLES;
    hprof_text_ranked_begin(t, kind, exact ? v->weight / 1000000 : v->weight, when);
    double accumulated = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t node = list[i].node;
        const struct profile *p = v->profile;
        double self = v->weight ? 100.0 * (double)list[i].weight / (double)v->weight : 0;
        accumulated += self;
        const char *name =
            node ? profile_text(p, p->methods.data[profile_node_frame(p, node)->method].label).data
                 : "<none>";
        hprof_text_ranked(t, kind, (uint32_t)i + 1, self, accumulated, list[i].count,
                          trace_of(node), name);
    }
    hprof_text_ranked_end(t, kind);
}

static int export_hprof_text(const struct export_source *s, FILE *out, struct buf *why)
{
    _cleanup_(profile_view_release) struct profile_view v = {0};
    _cleanup_free_ struct ranked *list = NULL;
    struct left_out left = {0};
    size_t n = 0;
    int r = open_view(&v, s, why);
    if (r == 0)
        r = rank_nodes(&v, &list, &n, &left);
    if (r < 0)
        return r;
    time_t when =
        s->profile->start_epoch_ns ? (time_t)(s->profile->start_epoch_ns / 1000000000) : time(NULL);
    struct hprof_text t;
    r = hprof_text_init(&t, (struct hprof_sink){to_stdio, out}, when);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->profile->threads.len; i++) {
        struct str name = profile_text(s->profile, s->profile->threads.data[i].name);
        struct str group = profile_text(s->profile, s->profile->threads.data[i].group);
        /* Figures of all threads together belong to a single thread without a name. */
        if (name.len)
            hprof_text_thread_start(&t, 0, FIRST_THREAD + (uint32_t)i, name.data, group.data);
    }
    for (size_t i = 0; i < n; i++)
        text_trace(&t, s->profile, list[i].node);
    text_table(&t, &v, list, n, when);
    r = hprof_text_flush(&t);
    hprof_text_release(&t);
    note_left_out(s->note, &v, &left);
    return r;
}

/* The binary stream needs strings and classes before the first record that refers to them. */
struct binary {
    struct hprof_writer w;
    const struct profile *p;
    /* What has been written; `classes` maps the number of a name to a serial number. */
    struct map strings, classes, frames;
    VEC(uint64_t) trace;
    int error;
};

static uint64_t put_string(struct binary *b, uint32_t string, uint8_t from, uint8_t to)
{
    bool added;
    uint64_t id = (uint64_t)string * 2 + 1 + (from != to);
    if (!map_at(&b->strings, id, 1, &added))
        b->error = -ENOMEM;
    else if (added) {
        struct str s = profile_text(b->p, string);
        _cleanup_(buf_release) struct buf text = BUF(1 << 24);
        buf_bytes(&text, s.data, s.len);
        for (size_t i = 0; i < text.len; i++) {
            if (text.data[i] == from)
                text.data[i] = to;
        }
        hprof_utf8(&b->w, id, (char *)text.data, text.len);
    }
    return id;
}

/*
 * Returns whether a frame belongs to a native library, such as libc.so.6: no part of the name of a
 * Java class begins with a digit. The dots of a library separate no packages, and as slashes they
 * would make a part such as /6 look like what a VM adds to the name of a hidden class.
 */
static bool is_of_library(const struct profile *p, const struct profile_frame *f)
{
    struct str name = profile_text(p, p->methods.data[f->method].class_name);
    bool is = name.len > 3 && memcmp(name.data + name.len - 3, ".so", 3) == 0;
    for (size_t i = 0; i + 1 < name.len && !is; i++)
        is = name.data[i] == '.' && name.data[i + 1] >= '0' && name.data[i + 1] <= '9';
    return is && f->kind == FRAME_NATIVE;
}

static uint32_t put_class(struct binary *b, uint32_t name, bool library)
{
    bool added;
    uint64_t *serial = map_at(&b->classes, name, FIRST_CLASS + b->classes.len, &added);
    if (!serial) {
        b->error = -ENOMEM;
        return 0;
    }
    uint32_t n = (uint32_t)*serial;
    if (added)
        hprof_load_class(&b->w, n, CLASS_OBJECTS + n, FIRST_TRACE,
                         library ? put_string(b, name, 0, 0) : put_string(b, name, '.', '/'));
    return n;
}

static void put_trace(struct binary *b, uint32_t node)
{
    vec_clear(&b->trace);
    for (uint32_t n = node; n; n = b->p->nodes.data[n].parent) {
        uint32_t number = b->p->nodes.data[n].frame;
        const struct profile_frame *f = &b->p->frames.data[number];
        const struct profile_method *m = &b->p->methods.data[f->method];
        bool added;
        if (!map_at(&b->frames, number, 1, &added) ||
            vec_push(&b->trace, (uint64_t)number + 1) < 0) {
            b->error = -ENOMEM;
            return;
        }
        if (!added)
            continue;
        uint64_t name = put_string(b, m->name, 0, 0), signature = put_string(b, m->signature, 0, 0);
        uint64_t file = put_string(b, m->file, 0, 0);
        hprof_frame(&b->w, (uint64_t)number + 1, name, signature, file,
                    put_class(b, m->class_name, is_of_library(b->p, f)), line_of(f));
    }
    hprof_trace(&b->w, trace_of(node), 0, b->trace.data, (uint32_t)b->trace.len);
}

static int put_samples(struct binary *b, const struct profile_view *v, const struct ranked *list,
                       size_t n)
{
    _cleanup_free_ struct hprof_sample *samples = calloc(n + 1, sizeof(*samples));
    if (!samples)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        samples[i] = (struct hprof_sample){list[i].weight, trace_of(list[i].node)};
    hprof_cpu_samples(&b->w, v->weight, samples, (uint32_t)n);
    return 0;
}

static int export_hprof(const struct export_source *s, FILE *out, struct buf *why)
{
    _cleanup_(profile_view_release) struct profile_view v = {0};
    _cleanup_free_ struct ranked *list = NULL;
    struct left_out left = {0};
    size_t n = 0;
    if (s->metric == PROFILE_EXACT) {
        buf_string(why, "HPROF's binary format has no record for exact times; .hprof.txt has");
        return -ENOTSUP;
    }
    int r = open_view(&v, s, why);
    if (r == 0)
        r = rank_nodes(&v, &list, &n, &left);
    if (r < 0)
        return r;
    struct binary b = {.p = s->profile};
    r = hprof_writer_init(&b.w, (struct hprof_sink){to_stdio, out}, HPROF_MAGIC_1_0_2, 8,
                          s->profile->start_epoch_ns / 1000000);
    if (r < 0)
        return r;
    hprof_control_settings(
        &b.w, s->metric == PROFILE_WALL ? HPROF_CONTROL_WALL_SAMPLING : HPROF_CONTROL_CPU_SAMPLING,
        0);
    put_trace(&b, 0);
    for (size_t i = 0; i < s->profile->threads.len; i++) {
        if (!profile_text(s->profile, s->profile->threads.data[i].name).len)
            continue;
        uint64_t name = put_string(&b, s->profile->threads.data[i].name, 0, 0);
        uint64_t group = put_string(&b, s->profile->threads.data[i].group, 0, 0);
        hprof_start_thread(&b.w, FIRST_THREAD + (uint32_t)i, 0, FIRST_TRACE, name, group, 0);
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].node)
            put_trace(&b, list[i].node);
    }
    r = put_samples(&b, &v, list, n);
    if (r == 0)
        r = b.error;
    if (r == 0)
        r = hprof_flush(&b.w);
    hprof_writer_release(&b.w);
    map_release(&b.strings);
    map_release(&b.classes);
    map_release(&b.frames);
    vec_release(&b.trace);
    return r;
}

const struct export_format export_format_hprof_text = {
    .extension = ".hprof.txt",
    .what = "HPROF's text: traces and ranked samples",
    .one_metric = true,
    .holds = HOLDS_STACKS | HOLDS_CALLS,
    .follows = FOLLOWS_SAMPLES,
    .write = export_hprof_text,
    .detail = LOAD_SUMS,
};

const struct export_format export_format_hprof = {
    .extension = ".hprof",
    .what = "HPROF's binary records",
    .one_metric = true,
    .holds = HOLDS_STACKS,
    .follows = FOLLOWS_SAMPLES,
    .write = export_hprof,
    .detail = LOAD_SUMS,
};
