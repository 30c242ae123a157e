/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads HPROF's text output. Samples and times start from zero at each dump, so dumps are added up.
 * Sites are cumulative, so only the last table is used.
 */
#include "profile/load.h"

#include "hprof/text_reader.h"
#include "profile/load_hprof.h"

#include <errno.h>

struct reading {
    struct load *l;
    struct hprof_traces traces;
    uint64_t total;     /* the total of the ranked table that is being read */
    uint64_t listed;    /* the sum of its rows' counts */
    double accumulated; /* the accumulated percentage in its last row */
};

/* Adds a frame, whose method is "pkg.Class.name". */
static int64_t add_frame(struct profile *p, const struct hprof_item_frame *f)
{
    /* "[truncated]" and the like are marks in place of a frame, as convert writes them. */
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

static int add_trace(struct reading *r, const struct hprof_text_item *item)
{
    int64_t node = 0;
    for (size_t i = item->n_frames; i-- > 0;) {
        int64_t frame = add_frame(r->l->profile, &item->frames[i]);
        node = frame < 0 ? frame : profile_node(r->l->profile, (uint32_t)node, (uint32_t)frame);
        if (node < 0)
            return (int)node;
    }
    int e = map_put(&r->traces.nodes, item->serial, (uint64_t)node);
    return e < 0 || !item->thread ? e : map_put(&r->traces.threads, item->serial, item->thread);
}

/* Adds counted calls and their time. */
static int add_calls(struct reading *r, uint32_t thread, uint32_t node, uint64_t calls,
                     uint64_t self_ns)
{
    struct profile *p = r->l->profile;
    p->times_rounded = true;
    int64_t number = profile_thread(p, thread, "", 0);
    if (number < 0)
        return (int)number;
    struct profile_calls c = {
        .node = node, .thread = (uint32_t)number, .calls = calls, .self_ns = (int64_t)self_ns};
    int e = vec_push(&p->calls, c);
    struct profile_sample s = {.weight = self_ns, .thread = c.thread, .node = node};
    return e < 0 || !self_ns ? e : profile_sample(p, PROFILE_EXACT, s);
}

/*
 * Returns the time of a row in ns. The tables of times give percentages of a total in milliseconds.
 */
static uint64_t share_ns(const struct reading *r, double percent)
{
    return percent > 0 ? (uint64_t)(percent / 100 * (double)r->total * 1e6 + 0.5) : 0;
}

static int add_ranked(struct reading *r, const struct hprof_text_item *item)
{
    r->listed += item->count;
    r->accumulated = item->accumulated;
    switch (item->ranked) {
    case HPROF_RANKED_SAMPLES:
        return load_hprof_sample(r->l->profile, &r->traces, PROFILE_CPU, item->count, item->trace);
    case HPROF_RANKED_WALL:
        return load_hprof_sample(r->l->profile, &r->traces, PROFILE_WALL, item->count, item->trace);
    case HPROF_RANKED_MONITORS:
        return load_hprof_sample(r->l->profile, &r->traces, PROFILE_LOCK, share_ns(r, item->self),
                                 item->trace);
    case HPROF_RANKED_TIMES:
        break;
    }
    uint64_t *of = map_get(&r->traces.threads, item->trace),
             *node = map_get(&r->traces.nodes, item->trace);
    return add_calls(r, of ? (uint32_t)*of : 0, node ? (uint32_t)*node : 0, item->count,
                     share_ns(r, item->self));
}

/*
 * Adds what the total has in addition to the rows: rows below the file's cutoff, and times that no
 * row has.
 */
static int end_ranked(struct reading *r, const struct hprof_text_item *item)
{
    struct profile *p = r->l->profile;
    uint64_t samples = r->total > r->listed ? r->total - r->listed : 0;
    uint64_t ns = share_ns(r, 100 - r->accumulated);
    switch (item->ranked) {
    case HPROF_RANKED_SAMPLES:
        return load_unlisted(p, PROFILE_CPU, samples);
    case HPROF_RANKED_WALL:
        return load_unlisted(p, PROFILE_WALL, samples);
    case HPROF_RANKED_MONITORS:
        return load_unlisted(p, PROFILE_LOCK, ns);
    case HPROF_RANKED_TIMES:
        break;
    }
    int64_t node = ns ? load_unlisted_node(p) : 0;
    return !ns ? 0 : node < 0 ? (int)node : add_calls(r, 0, (uint32_t)node, 0, ns);
}

/* Adds "pkg.Class.name(descriptor)", a frame in a table of callers and callees. */
static int64_t add_old_node(struct reading *r, int64_t parent, struct str name)
{
    const char *paren = memchr(name.data, '(', name.len);
    size_t len = paren ? (size_t)(paren - name.data) : name.len;
    struct str descriptor = {name.data + len, name.len - len}, none = {"", 0};
    int64_t frame = parent < 0 ? parent
                               : load_frame(r->l->profile, (struct str){name.data, len}, descriptor,
                                            none, 0, FRAME_JAVA);
    return frame < 0 ? frame : profile_node(r->l->profile, (uint32_t)parent, (uint32_t)frame);
}

static int add_old(struct reading *r, const struct hprof_text_item *item)
{
    int64_t node = item->caller.len ? add_old_node(r, 0, item->caller) : 0;
    node = add_old_node(r, node, item->name);
    return node < 0 ? (int)node
                    : add_calls(r, 0, (uint32_t)node, item->count, item->total * UINT64_C(1000000));
}

static int add_item(void *context, const struct hprof_text_item *item)
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
        r->listed = 0;
        r->accumulated = 0;
        return 0;
    case HPROF_ITEM_RANKED_END:
        return end_ranked(r, item);
    case HPROF_ITEM_OLD:
        return add_old(r, item);
    case HPROF_ITEM_RANKED:
        return add_ranked(r, item);
    case HPROF_ITEM_SITES_BEGIN:
        vec_clear(&r->l->profile->series[PROFILE_ALLOCATION].samples);
        r->l->profile->series[PROFILE_ALLOCATION].listed_only = true;
        return 0;
    case HPROF_ITEM_LEFT_OUT:
        r->l->profile->series[PROFILE_ALLOCATION].listed_only = false;
        return load_unlisted(r->l->profile, PROFILE_ALLOCATION, item->total);
    case HPROF_ITEM_SITE:
        return load_hprof_sample(r->l->profile, &r->traces, PROFILE_ALLOCATION,
                                 item->site.alloc_bytes, item->site.trace);
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
    map_release(&r.traces.nodes);
    map_release(&r.traces.threads);
    return e;
}
