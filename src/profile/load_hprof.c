/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads HPROF's binary format: CPU SAMPLES and ALLOC SITES with the traces, frames, classes and
 * threads that they refer to.
 */
#include "profile/load.h"

#include "hprof/reader.h"
#include "profile/load_hprof.h"

#include <errno.h>

struct frame_record {
    uint64_t name, signature, source;
    uint32_t class_serial;
    int32_t line;
};

struct reading {
    struct load *l;
    unsigned id_size;
    /* by id: strings; by serial number: class names */
    struct map strings, classes;
    struct hprof_traces traces;
    struct map frames; /* by id: the position in frame_list */
    VEC(struct frame_record) frame_list;
    bool wall; /* samples are of elapsed time */
};

static uint32_t string_of(const struct reading *r, uint64_t id)
{
    uint64_t *n = map_get(&r->strings, id);
    return n ? (uint32_t)*n : 0;
}

static int read_string(struct reading *r, struct cursor *c)
{
    uint64_t id = hprof_id(c, r->id_size);
    int64_t n = c->failed ? 0 : profile_string(r->l->profile, (const char *)c->at, cursor_left(c));
    return n < 0 ? (int)n : map_put(&r->strings, id, (uint64_t)n);
}

static int read_class(struct reading *r, struct cursor *c)
{
    uint32_t serial = cursor_be32(c);
    hprof_id(c, r->id_size);
    cursor_be32(c);
    struct str name = profile_text(r->l->profile, string_of(r, hprof_id(c, r->id_size)));
    int64_t n = profile_class_name(r->l->profile, name.data, name.len);
    return n < 0 ? (int)n : map_put(&r->classes, serial, (uint64_t)n);
}

static int read_frame(struct reading *r, struct cursor *c)
{
    uint64_t id = hprof_id(c, r->id_size);
    struct frame_record f = {.name = hprof_id(c, r->id_size), .signature = hprof_id(c, r->id_size)};
    f.source = hprof_id(c, r->id_size);
    f.class_serial = cursor_be32(c);
    f.line = (int32_t)cursor_be32(c);
    int e = map_put(&r->frames, id, r->frame_list.len);
    return e < 0 ? e : vec_push(&r->frame_list, f);
}

static int64_t add_frame(struct reading *r, uint64_t id)
{
    struct profile *p = r->l->profile;
    uint64_t *at = map_get(&r->frames, id);
    if (!at)
        return profile_mark(p, "[frame not in the file]");
    const struct frame_record *f = &r->frame_list.data[*at];
    uint64_t *class_name = map_get(&r->classes, f->class_serial);
    int64_t method =
        profile_method(p, class_name ? (uint32_t)*class_name : 0, string_of(r, f->name),
                       string_of(r, f->signature), string_of(r, f->source));
    /* Instead of a frame there may be a mark, as convert writes it. */
    bool mark = (!class_name || !profile_text(p, (uint32_t)*class_name).len) &&
                profile_text(p, string_of(r, f->name)).data[0] == '[';
    enum frame_kind kind = f->line == HPROF_LINE_NATIVE ? FRAME_NATIVE
                           : mark                       ? FRAME_MARK
                                                        : FRAME_JAVA;
    return method < 0 ? method : profile_frame(p, (uint32_t)method, MAX(f->line, 0), kind);
}

static int read_trace(struct reading *r, struct cursor *c)
{
    uint32_t serial = cursor_be32(c), thread = cursor_be32(c), n = cursor_be32(c);
    /* The file has the innermost frame first. */
    const uint8_t *ids = cursor_take(c, (size_t)n * r->id_size);
    int64_t node = 0;
    for (uint32_t i = n; ids && i-- > 0;) {
        int64_t frame = add_frame(r, hprof_id_at(ids + (size_t)i * r->id_size, r->id_size));
        node = frame < 0 ? frame : profile_node(r->l->profile, (uint32_t)node, (uint32_t)frame);
        if (node < 0)
            return (int)node;
    }
    int e = map_put(&r->traces.nodes, serial, (uint64_t)node);
    return e < 0 || !thread ? e : map_put(&r->traces.threads, serial, thread);
}

static int read_thread(struct reading *r, struct cursor *c)
{
    uint32_t serial = cursor_be32(c);
    hprof_id(c, r->id_size);
    cursor_be32(c);
    struct str name = profile_text(r->l->profile, string_of(r, hprof_id(c, r->id_size)));
    int64_t n = profile_thread(r->l->profile, serial, name.data, name.len);
    return n < 0 ? (int)n : 0;
}

int load_hprof_sample(struct profile *p, const struct hprof_traces *t, enum profile_metric metric,
                      uint64_t weight, uint32_t trace)
{
    uint64_t *of = map_get(&t->threads, trace), *node = map_get(&t->nodes, trace);
    int64_t thread = profile_thread(p, of ? *of : 0, "", 0);
    if (thread < 0)
        return (int)thread;
    struct profile_sample s = {
        .weight = weight, .thread = (uint32_t)thread, .node = node ? (uint32_t)*node : 0};
    return profile_sample(p, metric, s);
}

static int read_samples(struct reading *r, struct cursor *c)
{
    enum profile_metric metric = r->wall ? PROFILE_WALL : PROFILE_CPU;
    uint64_t all = cursor_be32(c), listed = 0;
    int e = 0;
    for (uint32_t n = cursor_be32(c); n-- > 0 && cursor_left(c) >= 8 && e == 0;) {
        uint32_t count = cursor_be32(c), trace = cursor_be32(c);
        e = load_hprof_sample(r->l->profile, &r->traces, metric, count, trace);
        listed += count;
    }
    /* These rows are below the file's cutoff. */
    return e < 0 ? e : load_unlisted(r->l->profile, metric, all > listed ? all - listed : 0);
}

/*
 * Returns how many of all allocated bytes, which the table's head gives, are missing from its
 * sites: those of sites below the cutoff, which usually have no live objects, and those that exceed
 * a site's 32 bits. A difference of one byte per site is ignored, because estimates are rounded
 * site by site.
 */
static uint64_t unlisted_sites(uint64_t all, uint64_t listed, uint32_t sites)
{
    return all <= listed || all - listed <= sites ? 0 : all - listed;
}

static int read_settings(struct reading *r, struct cursor *c)
{
    r->wall = cursor_be32(c) & HPROF_CONTROL_WALL_SAMPLING;
    return 0;
}

static int read_sites(struct reading *r, struct cursor *c)
{
    cursor_skip(c, 2 + 4 + 4 + 4);
    uint64_t all = cursor_be64(c), listed = 0;
    cursor_skip(c, 8);
    int e = 0;
    /* The tables are cumulative, so only the last one counts. */
    vec_clear(&r->l->profile->series[PROFILE_ALLOCATION].samples);
    uint32_t sites = cursor_be32(c);
    for (uint32_t n = sites; n-- > 0 && cursor_left(c) >= 25 && e == 0;) {
        cursor_skip(c, 5);
        uint32_t trace = cursor_be32(c);
        cursor_skip(c, 8);
        uint32_t bytes = cursor_be32(c);
        cursor_skip(c, 4);
        listed += bytes;
        e = load_hprof_sample(r->l->profile, &r->traces, PROFILE_ALLOCATION, bytes, trace);
    }
    return e < 0 ? e
                 : load_unlisted(r->l->profile, PROFILE_ALLOCATION,
                                 unlisted_sites(all, listed, sites));
}

static const struct {
    enum hprof_tag tag;
    int (*read)(struct reading *r, struct cursor *c);
} records[] = {
    {HPROF_UTF8, read_string},         {HPROF_LOAD_CLASS, read_class},
    {HPROF_FRAME, read_frame},         {HPROF_TRACE, read_trace},
    {HPROF_START_THREAD, read_thread}, {HPROF_CPU_SAMPLES, read_samples},
    {HPROF_ALLOC_SITES, read_sites},   {HPROF_CONTROL_SETTINGS, read_settings},
};

int load_hprof(struct load *l)
{
    struct hprof_reader reader;
    int e = hprof_reader_init(&reader, l->data, l->len);
    if (e < 0)
        return e;
    struct reading r = {.l = l, .id_size = reader.header.id_size};
    l->profile->start_epoch_ns = reader.header.time_ms * UINT64_C(1000000);
    struct hprof_record record;
    for (uint64_t n = 0; e == 0 && hprof_next(&reader, &record); n++) {
        struct cursor c = cursor_of(record.body, record.len);
        for (size_t i = 0; i < ARRAY_SIZE(records) && e == 0; i++) {
            if (records[i].tag == record.tag)
                e = records[i].read(&r, &c);
        }
        if (l->progress && n % 4096 == 0)
            l->progress(l->progress_context, record.offset, l->len);
    }
    if (e == 0 && reader.end != HPROF_END_CLEAN)
        buf_string(l->why, reader.end == HPROF_END_CUT ? "the file is cut short"
                                                       : "the file ends in what is not a record");
    map_release(&r.strings);
    map_release(&r.classes);
    map_release(&r.traces.nodes);
    map_release(&r.traces.threads);
    map_release(&r.frames);
    vec_release(&r.frame_list);
    return e;
}
