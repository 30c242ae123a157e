/* SPDX-License-Identifier: Apache-2.0 */
#include "page/data.h"

#include "page/cells.h"

#include "profile/call_interval.h"

#include <errno.h>

enum { NODE_BITS = 32 };

void page_json_base64(struct json *j, const struct buf *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    _cleanup_(buf_release) struct buf text = BUF(SIZE_MAX / 2);
    uint8_t *to = buf_add(&text, (bytes->len + 2) / 3 * 4);
    for (size_t i = 0; to && i < bytes->len; i += 3, to += 4) {
        size_t n = MIN(bytes->len - i, (size_t)3);
        uint32_t v = (uint32_t)bytes->data[i] << 16;
        v |= n > 1 ? (uint32_t)bytes->data[i + 1] << 8 : 0;
        v |= n > 2 ? bytes->data[i + 2] : 0;
        to[0] = (uint8_t)digits[v >> 18];
        to[1] = (uint8_t)digits[v >> 12 & 63];
        to[2] = (uint8_t)(n > 1 ? digits[v >> 6 & 63] : '=');
        to[3] = (uint8_t)(n > 2 ? digits[v & 63] : '=');
    }
    json_string_n(j, buf_str(&text), text.len);
}

static int compare_totals(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/*
 * Determines the total below which nodes are left out so that at most PAGE_NODES remain; 0 when all
 * fit.
 */
static int pruning_limit(const struct profile_view *v, uint64_t *ret)
{
    size_t n = v->profile->nodes.len, used = 0;
    *ret = 1;
    uint64_t *totals = malloc(n * sizeof(*totals));
    if (!totals)
        return -ENOMEM;
    for (size_t i = 1; i < n; i++) {
        if (v->total[i])
            totals[used++] = v->total[i];
    }
    if (used > PAGE_NODES) {
        qsort(totals, used, sizeof(*totals), compare_totals);
        *ret = totals[PAGE_NODES] + 1;
    }
    free(totals);
    return 0;
}

/*
 * Merges the children of a node that have the same method. Parents precede children, as in the
 * profile.
 */
static int merge(struct page_tree *t, const struct profile_view *v, uint64_t limit)
{
    const struct profile *p = v->profile;
    struct map index = {0};
    int r = vec_extend(&t->nodes, 1);
    t->of_node = calloc(p->nodes.len, sizeof(*t->of_node));
    if (!t->of_node)
        r = -ENOMEM;
    for (size_t i = 1; i < p->nodes.len && r == 0; i++) {
        uint32_t parent = t->of_node[p->nodes.data[i].parent];
        if (v->total[i] < limit) {
            t->of_node[i] = parent;
            t->pruned += v->total[i] != 0;
            continue;
        }
        const struct profile_frame *f = profile_node_frame(p, (uint32_t)i);
        uint32_t label = p->methods.data[f->method].label;
        bool added;
        uint64_t *slot =
            map_at(&index, (uint64_t)parent << NODE_BITS | label, t->nodes.len, &added);
        struct profile_tree_node node = {.parent = parent, .label = label, .kind = f->kind};
        r = !slot ? -ENOMEM : added ? vec_push(&t->nodes, node) : 0;
        if (r < 0)
            break;
        struct profile_tree_node *to = &t->nodes.data[*slot];
        t->of_node[i] = (uint32_t)*slot;
        /* The node gets the kind of its heaviest part; `self` temporarily holds that weight. */
        if (v->total[i] > to->self) {
            to->self = v->total[i];
            to->kind = f->kind;
        }
    }
    map_release(&index);
    return r;
}

/* The labels in use, numbered in the order of their first use. */
struct labels {
    struct map index;
    VEC(uint32_t) strings;
};

static int64_t label_number(struct labels *l, uint32_t string)
{
    bool added;
    uint64_t *slot = map_at(&l->index, string, l->strings.len, &added);
    if (!slot || (added && vec_push(&l->strings, string) < 0))
        return -ENOMEM;
    return (int64_t)*slot;
}

static int tree_json(struct json *j, const struct page_tree *t, struct labels *labels,
                     struct buf *blob)
{
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    for (size_t i = 1; i < t->nodes.len; i++) {
        const struct profile_tree_node *n = &t->nodes.data[i];
        int64_t label = label_number(labels, n->label);
        if (label < 0)
            return (int)label;
        buf_varint(&bytes, i - n->parent);
        buf_varint(&bytes, (uint64_t)label);
        buf_u8(&bytes, (uint8_t)n->kind);
    }
    json_key_u64(j, "nodes", t->nodes.len);
    json_key_u64(j, "pruned", t->pruned);
    json_key(j, "tree");
    page_put_bytes(j, &bytes, blob);
    return buf_error(&bytes);
}

/* A method of counted calls. mark: 1 + the last row of calls for which `whole` was counted. */
struct counted {
    uint32_t label, mark;
    uint64_t calls;
    struct call_sum own, whole;
};

/*
 * Writes a row (label, calls, own, whole, known) for each method. `calls` is how often it was
 * called. If the times are estimated from readings of the CPU clock, `own` and `whole` are the
 * numbers of readings for its own and its whole time, and `known` states which of the two times is
 * known (1: its own, 2: its whole). Returns 0 or -ENOMEM.
 */
static int calls_json(struct json *j, const struct profile *p, const struct profile_view *v,
                      struct labels *labels)
{
    struct map index = {0};
    VEC(struct counted) rows = {0};
    int r = 0;
    for (uint32_t i = 0; i < p->calls.len && r == 0; i++) {
        const struct profile_calls *c = &p->calls.data[i];
        struct profile_sample of = {.thread = c->thread, .node = c->node};
        if (!profile_view_passes(v, &of))
            continue;
        for (uint32_t n = c->node; n && r == 0; n = p->nodes.data[n].parent) {
            uint32_t label = p->methods.data[profile_node_frame(p, n)->method].label;
            bool added;
            uint64_t *at = map_at(&index, label, rows.len, &added);
            r = at && (!added || vec_push(&rows, ((struct counted){.label = label})) == 0)
                    ? 0
                    : -ENOMEM;
            if (r < 0)
                break;
            struct counted *row = &rows.data[*at];
            if (n == c->node) {
                row->calls += c->calls;
                call_sum_add(&row->own, c);
            }
            if (row->mark != i + 1)
                call_sum_add(&row->whole, c);
            row->mark = i + 1;
        }
    }
    json_key_bool(j, "by_readings", p->timed_by_readings);
    json_key_array(j, "calls");
    for (size_t i = 0; i < rows.len && r == 0; i++) {
        int64_t label = label_number(labels, rows.data[i].label);
        r = label < 0 ? (int)label : 0;
        json_u64(j, label < 0 ? 0 : (uint64_t)label);
        json_u64(j, rows.data[i].calls);
        const struct call_sum *own = &rows.data[i].own, *whole = &rows.data[i].whole;
        json_u64(j, own->readings);
        json_u64(j, whole->readings);
        json_u64(j, (call_time_is_known(own) ? 1 : 0) | (call_time_is_known(whole) ? 2 : 0));
    }
    json_end_array(j);
    vec_release(&rows);
    map_release(&index);
    return r;
}

/*
 * Writes the labels of the methods whose allocations are estimated from samples because exact
 * counts leave them out.
 */
static int estimated_json(struct json *j, const struct profile *p, struct labels *labels)
{
    struct map known = {0};
    int r = 0;
    json_key_array(j, "estimated");
    for (size_t i = 0; i < p->sites.len && r == 0; i++) {
        const struct profile_site *s = &p->sites.data[i];
        bool added = false;
        if (!s->estimated || !s->node)
            continue;
        uint32_t label = p->methods.data[profile_node_frame(p, s->node)->method].label;
        r = map_at(&known, label, 1, &added) ? 0 : -ENOMEM;
        int64_t number = added ? label_number(labels, label) : 0;
        r = r == 0 && number < 0 ? (int)number : r;
        if (r == 0 && added)
            json_u64(j, (uint64_t)number);
    }
    json_end_array(j);
    map_release(&known);
    return r;
}

static void note_json(struct json *j, const struct profile_view *v)
{
    _cleanup_(buf_release) struct buf note = BUF(4096);
    size_t head = profile_note(v, &note);
    json_key_string_n(j, "note", buf_str(&note), note.len);
    json_key_string_n(j, "note_short", buf_str(&note), MIN(head, note.len));
    json_key_u64(j, "rough_below", v->metric == PROFILE_EXACT ? 0 : profile_least_weight(v));
}

/* How a metric that is not one of the profile's own is shown. */
struct shown {
    const char *name, *title, *note, *note_short;
};

static void shown_note_json(struct json *j, const struct shown *shown)
{
    json_key_string(j, "note", shown->note);
    json_key_string(j, "note_short", shown->note_short);
}

static int metric_json(struct json *j, const struct profile *p, enum profile_metric metric,
                       const struct shown *shown, const struct profile_filter *filter,
                       struct labels *labels, struct page_sets *sets, struct buf *blob)
{
    static const char *const units[] = {
        [UNIT_SAMPLES] = "samples", [UNIT_BYTES] = "bytes", [UNIT_NS] = "ns"};
    _cleanup_(profile_view_release) struct profile_view v = {0}, plain = {0};
    struct page_tree tree = {0};
    uint64_t limit;
    struct profile_filter all = *filter;
    all.with_vm = true;
    int r = profile_view_init(&v, p, metric, &all);
    all.with_vm = false;
    all.without_idle = true;
    if (r == 0 && (metric == PROFILE_WALL || metric == PROFILE_CPU))
        r = profile_view_init(&plain, p, metric, &all);
    if (r == 0)
        r = pruning_limit(&v, &limit);
    if (r == 0)
        r = merge(&tree, &v, limit);
    if (r == 0) {
        json_begin_object(j);
        json_key_string(j, "name", shown ? shown->name : profile_metrics[metric].name);
        json_key_string(j, "title", shown ? shown->title : profile_metrics[metric].title);
        json_key_string(j, "unit", units[profile_metrics[metric].unit]);
        json_key_u64(j, "interval_ns", p->series[metric].interval_ns);
        if (!profile_is_timed(p, metric))
            json_key_bool(j, "untimed", true);
        if (shown)
            shown_note_json(j, shown);
        else
            note_json(j, &v);
        r = tree_json(j, &tree, labels, blob);
    }
    if (r == 0)
        r = page_cells_json(j, &v, &plain, &tree, blob);
    if (r == 0 && !shown)
        r = page_by_request_json(j, &v, &plain, &tree, sets, blob);
    if (r == 0 && metric == PROFILE_EXACT && p->calls.len)
        r = calls_json(j, p, &v, labels);
    if (r == 0 && metric == PROFILE_ALLOCATION && p->sites.len)
        r = estimated_json(j, p, labels);
    if (r == 0)
        json_end_object(j);
    vec_release(&tree.nodes);
    free(tree.of_node);
    return r;
}

static void strings_json(struct json *j, const struct profile *p, const struct labels *l)
{
    json_key_array(j, "labels");
    for (size_t i = 0; i < l->strings.len; i++) {
        struct str s = profile_text(p, l->strings.data[i]);
        json_string_n(j, s.data, s.len);
    }
    json_end_array(j);
    json_key_array(j, "threads");
    for (size_t i = 0; i < p->threads.len; i++) {
        struct str s = profile_text(p, p->threads.data[i].name);
        json_string_n(j, s.data, s.len);
    }
    json_end_array(j);
}

/*
 * Writes the bytes that were live at the end, by site: they replace the allocated ones in a profile
 * that shares everything else with this one.
 */
static int live_json(struct json *j, const struct profile *p, const struct profile_filter *filter,
                     struct labels *labels, struct page_sets *sets, struct buf *blob)
{
    struct profile live = *p;
    struct profile_series *s = &live.series[PROFILE_ALLOCATION];
    bool estimated = false;
    int r = 0;
    *s = (struct profile_series){0};
    for (size_t i = 0; i < p->sites.len && r == 0; i++) {
        const struct profile_site *site = &p->sites.data[i];
        if (site->live_known && site->live_bytes)
            r = vec_push(&s->samples,
                         ((struct profile_sample){.weight = site->live_bytes, .node = site->node}));
        estimated |= site->live_bytes_error != 0;
    }
    live.allocated = 0;
    live.threads.len = MIN(live.threads.len, (size_t)1);
    const char *note = estimated         ? "estimated: report shows the error of each site"
                       : p->only_counted ? "counted: what was reachable at the end, without what "
                                           "the VM itself and code that is not changed allocated"
                                         : "counted: what was reachable at the end";
    const struct shown shown = {"live", "Live bytes", note, estimated ? "estimated" : "counted"};
    if (r == 0 && s->samples.len)
        r = metric_json(j, &live, PROFILE_ALLOCATION, &shown, filter, labels, sets, blob);
    vec_release(&s->samples);
    return r;
}

int page_profile_json(struct json *j, const struct profile *p, const struct profile_filter *filter,
                      const struct request_fields *fields, struct buf *blob)
{
    struct labels labels = {0};
    struct page_sets sets = {.fields = fields && fields->sets.len ? fields : NULL};
    int r = 0;
    if (sets.fields && !(sets.number = calloc(fields->sets.len, sizeof(*sets.number))))
        return -ENOMEM;
    json_key_array(j, "metrics");
    for (int m = 0; m < PROFILE_METRICS && r == 0; m++) {
        if (p->series[m].samples.len)
            r = metric_json(j, p, (enum profile_metric)m, NULL, filter, &labels, &sets, blob);
        if (r == 0 && m == PROFILE_ALLOCATION && !filter->thread)
            r = live_json(j, p, filter, &labels, &sets, blob);
    }
    json_end_array(j);
    if (r == 0)
        strings_json(j, p, &labels);
    if (r == 0 && sets.fields)
        r = page_sets_json(j, &sets, blob);
    free(sets.number);
    vec_release(&sets.used);
    map_release(&labels.index);
    vec_release(&labels.strings);
    return r;
}
