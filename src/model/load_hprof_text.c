/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HPROF's text output. Samples and times start from zero at each dump, so dumps add up; sites are
 * cumulative, so the last table counts.
 */
#include "model/load.h"

#include "hprof/text_reader.h"

#include <errno.h>

struct reading {
    struct load *l;
    struct map traces, threads_of; /* trace number to node; to thread */
    uint64_t total;                /* of the ranked table that is being read */
};

/* A frame's method is "pkg.Class.name". */
static int64_t add_frame(struct profile *p, const struct hprof_item_frame *f)
{
    /* "[truncated]": a remark that stands for a frame, as convert writes it. */
    bool mark = f->method.len && f->method.data[0] == '[';
    const char *dot = mark ? NULL : memrchr(f->method.data, '.', f->method.len);
    const char *name = dot ? dot + 1 : f->method.data;
    int64_t class_name =
        dot ? profile_class_name(p, f->method.data, (size_t)(dot - f->method.data)) : 0;
    int64_t method_name = profile_string(p, name, f->method.len - (size_t)(name - f->method.data));
    int64_t file = f->source.len ? profile_string(p, f->source.data, f->source.len) : 0;
    if (class_name < 0 || method_name < 0 || file < 0)
        return -ENOMEM;
    int64_t method =
        profile_method(p, (uint32_t)class_name, (uint32_t)method_name, 0, (uint32_t)file);
    return method < 0 ? method
                      : profile_frame(p, (uint32_t)method, MAX(f->line, 0),
                                      mark ? FRAME_MARK : FRAME_JAVA);
}

static int add_trace(struct reading *r, const struct hprof_item *item)
{
    int64_t node = 0;
    for (size_t i = item->n_frames; i-- > 0;) {
        int64_t frame = add_frame(r->l->profile, &item->frames[i]);
        node = frame < 0 ? frame : profile_node(r->l->profile, (uint32_t)node, (uint32_t)frame);
        if (node < 0)
            return (int)node;
    }
    int e = map_put(&r->traces, item->serial, (uint64_t)node);
    return e < 0 || !item->thread ? e : map_put(&r->threads_of, item->serial, item->thread);
}

static int add_sample(struct reading *r, enum profile_metric metric, uint64_t weight,
                      uint32_t trace)
{
    uint64_t *of = map_get(&r->threads_of, trace), *node = map_get(&r->traces, trace);
    int64_t thread = profile_thread(r->l->profile, of ? *of : 0, "", 0);
    if (thread < 0)
        return (int)thread;
    struct profile_sample s = {
        .weight = weight, .thread = (uint32_t)thread, .node = node ? (uint32_t)*node : 0};
    return profile_sample(r->l->profile, metric, s);
}

static int add_item(void *context, const struct hprof_item *item)
{
    struct reading *r = context;
    int64_t n;
    switch (item->kind) {
    case HPROF_ITEM_THREAD_START:
        n = profile_thread(r->l->profile, item->serial, item->name.data, item->name.len);
        return n < 0 ? (int)n : 0;
    case HPROF_ITEM_TRACE:
        return add_trace(r, item);
    case HPROF_ITEM_RANKED_BEGIN:
        r->total = item->total;
        return 0;
    case HPROF_ITEM_RANKED:
        if (item->ranked == HPROF_RANKED_SAMPLES)
            return add_sample(r, PROFILE_CPU, item->count, item->trace);
        /*
         * The table has a share of the total in milliseconds, and a count of calls or of
         * contentions.
         */
        return add_sample(r, item->ranked == HPROF_RANKED_TIMES ? PROFILE_EXACT : PROFILE_LOCK,
                          (uint64_t)(item->self / 100 * (double)r->total * 1e6 + 0.5), item->trace);
    case HPROF_ITEM_SITES_BEGIN:
        vec_clear(&r->l->profile->series[PROFILE_ALLOCATION].samples);
        r->l->profile->series[PROFILE_ALLOCATION].listed_only = true;
        return 0;
    case HPROF_ITEM_SITE:
        return add_sample(r, PROFILE_ALLOCATION, item->site.alloc_bytes, item->site.trace);
    default:
        return 0;
    }
}

int load_hprof_text(struct load *l)
{
    struct reading r = {.l = l};
    struct hprof_text_summary summary = {0};
    int e = hprof_text_read(l->data, l->len, add_item, &r, &summary);
    if (e == 0 && summary.cut)
        buf_string(l->why, "the text ends within a table");
    map_release(&r.traces);
    map_release(&r.threads_of);
    return e;
}
