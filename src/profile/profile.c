/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/profile.h"

#include "profile/frame_role.h"

#include "base/buf.h"
#include "base/dotted.h"
#include "base/generated_name.h"
#include "base/hash.h"
#include "base/pattern.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { LABEL_MAX = 1 << 20 };

const struct profile_metric_info profile_metrics[PROFILE_METRICS] = {
    [PROFILE_CPU] = {"samples", "CPU samples", UNIT_SAMPLES},
    [PROFILE_WALL] = {"wall", "Wall-clock samples", UNIT_SAMPLES},
    [PROFILE_ALLOCATION] = {"allocations", "Allocated bytes", UNIT_BYTES},
    [PROFILE_LOCK] = {"locks", "Time blocked on locks", UNIT_NS},
    [PROFILE_EXACT] = {"times", "Time of counted calls", UNIT_NS},
};

const char *const frame_kind_names[FRAME_KINDS] = {
    [FRAME_JAVA] = "java",         [FRAME_INTERPRETED] = "interpreted",
    [FRAME_COMPILED] = "compiled", [FRAME_INLINED] = "inlined",
    [FRAME_NATIVE] = "native",     [FRAME_KERNEL] = "kernel",
    [FRAME_STUB] = "stub",         [FRAME_MARK] = "mark",
};

struct profile *profile_new(void)
{
    struct profile *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    /* Node 0, and the empty string as number 0, so that a zeroed name is empty. */
    if (strpool_add(&p->strings, "", 0) < 0 || vec_extend(&p->nodes, 1) < 0) {
        profile_free(p);
        return NULL;
    }
    return p;
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    strpool_release(&p->strings);
    vec_release(&p->methods);
    vec_release(&p->frames);
    vec_release(&p->nodes);
    vec_release(&p->threads);
    for (int i = 0; i < PROFILE_METRICS; i++) {
        vec_release(&p->series[i].samples);
        vec_release(&p->series[i].spread);
        vec_release(&p->series[i].merged);
    }
    strpool_release(&p->types);
    vec_release(&p->calls);
    vec_release(&p->left);
    vec_release(&p->sites);
    vec_release(&p->cpu_times);
    vec_release(&p->requests);
    vec_release(&p->vm.samples);
    map_release(&p->method_index);
    map_release(&p->frame_index);
    free(p->node_index);
    map_release(&p->thread_index);
    free(p);
}

/* Returns the number of a key: the one in the index, or `next`, which is then added. */
static int64_t number_of(struct map *index, uint64_t key, size_t next, bool *ret_added)
{
    if (next > UINT32_MAX)
        return -E2BIG;
    uint64_t *slot = map_at(index, key, next, ret_added);
    return slot ? (int64_t)*slot : -ENOMEM;
}

int64_t profile_string(struct profile *p, const char *text, size_t len)
{
    int64_t n = len ? strpool_add(&p->strings, text, len) : 0;
    return n > UINT32_MAX ? -E2BIG : n;
}

int64_t profile_class_name(struct profile *p, const char *internal, size_t len)
{
    _cleanup_(buf_release) struct buf text = BUF(LABEL_MAX);
    buf_bytes(&text, internal, len);
    if (buf_error(&text))
        return buf_error(&text);
    len = len ? generated_name_normalize((char *)text.data, len) : 0;
    dotted_in_place((char *)text.data, len);
    return profile_string(p, (const char *)text.data, len);
}

static int64_t add_label(struct profile *p, uint32_t class_name, uint32_t name)
{
    struct str c = profile_text(p, class_name), m = profile_text(p, name);
    if (!c.len)
        return name;
    _cleanup_(buf_release) struct buf b = BUF(LABEL_MAX);
    buf_bytes(&b, c.data, c.len);
    buf_u8(&b, '.');
    buf_bytes(&b, m.data, m.len);
    return buf_error(&b) ? buf_error(&b) : profile_string(p, (char *)b.data, b.len);
}

int64_t profile_method(struct profile *p, uint32_t class_name, uint32_t name, uint32_t signature,
                       uint32_t file)
{
    int64_t label = add_label(p, class_name, name);
    if (label < 0)
        return label;
    /* The key has 64 of the identity's 128 bits; on a collision the next key is tried. */
    uint64_t key =
        hash_u64((uint64_t)class_name << 32 | name) ^ hash_u64(~((uint64_t)signature << 32 | file));
    for (;; key++) {
        bool added;
        int64_t n = number_of(&p->method_index, key, p->methods.len, &added);
        if (n < 0)
            return n;
        if (added) {
            struct profile_method m = {class_name, name, signature, file, (uint32_t)label};
            int r = vec_push(&p->methods, m);
            if (r < 0) {
                map_remove(&p->method_index, key);
                return r;
            }
            return n;
        }
        const struct profile_method *m = &p->methods.data[n];
        if (m->class_name == class_name && m->name == name && m->signature == signature &&
            m->file == file)
            return n;
    }
}

static uint64_t frame_key(uint32_t method, int32_t line, enum frame_kind kind)
{
    return (uint64_t)method << 32 | (uint64_t)line << 8 | kind;
}

void profile_frame_soon(const struct profile *p, uint32_t method, int32_t line,
                        enum frame_kind kind)
{
    map_soon(&p->frame_index, frame_key(method, line, kind));
}

int64_t profile_frame(struct profile *p, uint32_t method, int32_t line, enum frame_kind kind)
{
    if (line < 0 || line >= PROFILE_LINES)
        line = 0;
    uint64_t key = frame_key(method, line, kind);
    bool added;
    int64_t n = number_of(&p->frame_index, key, p->frames.len, &added);
    if (n >= 0 && added) {
        struct profile_frame f = {method, line, kind};
        int r = vec_push(&p->frames, f);
        if (r < 0) {
            map_remove(&p->frame_index, key);
            return r;
        }
    }
    return n;
}

int64_t profile_mark(struct profile *p, const char *text)
{
    int64_t name = profile_string(p, text, strlen(text));
    int64_t method = name < 0 ? name : profile_method(p, 0, (uint32_t)name, 0, 0);
    return method < 0 ? method : profile_frame(p, (uint32_t)method, 0, FRAME_MARK);
}

static const char not_returned[] = "[not returned]";

static const char profilers_own[] = "[jvmscope]";

int64_t profile_open_node(struct profile *p, uint32_t parent)
{
    int64_t frame = profile_mark(p, not_returned);
    return frame < 0 ? frame : profile_node(p, parent, (uint32_t)frame);
}

int64_t profile_own_frame(struct profile *p)
{
    return profile_mark(p, profilers_own);
}

int64_t profile_own_node(struct profile *p, uint32_t parent)
{
    int64_t frame = profile_own_frame(p);
    return frame < 0 ? frame : profile_node(p, parent, (uint32_t)frame);
}

bool profile_is_open(const struct profile *p, uint32_t label)
{
    return str_is(profile_text(p, label), not_returned);
}

/*
 * Returns the place of a node in the index, or the place where it belongs. There is always a free
 * place.
 */
static uint32_t *find_node(const struct profile *p, uint32_t parent, uint32_t frame)
{
    size_t i = hash_u64((uint64_t)parent << 32 | frame) & (p->node_cap - 1);
    for (; p->node_index[i]; i = (i + 1) & (p->node_cap - 1)) {
        const struct profile_node *n = &p->nodes.data[p->node_index[i]];
        if (n->parent == parent && n->frame == frame)
            break;
    }
    return &p->node_index[i];
}

/*
 * Adds a node to the index, which has only nodes with siblings; an only child is found without it.
 */
static int index_node(struct profile *p, uint32_t node)
{
    if (p->nodes_indexed >= p->node_cap / 4 * 3) {
        size_t cap = p->node_cap ? p->node_cap * 2 : 64;
        uint32_t *index = calloc(cap, sizeof(*index)), *old = p->node_index;
        if (!index)
            return -ENOMEM;
        size_t n = p->node_cap;
        p->node_index = index;
        p->node_cap = cap;
        for (size_t i = 0; i < n; i++) {
            if (old[i])
                *find_node(p, p->nodes.data[old[i]].parent, p->nodes.data[old[i]].frame) = old[i];
        }
        free(old);
    }
    uint32_t *at = find_node(p, p->nodes.data[node].parent, p->nodes.data[node].frame);
    p->nodes_indexed += !*at;
    *at = node;
    return 0;
}

int64_t profile_node(struct profile *p, uint32_t parent, uint32_t frame)
{
    uint32_t sibling = p->nodes.data[parent].first_child;
    if (sibling && p->nodes.data[sibling].frame == frame)
        return sibling;
    if (sibling && !p->nodes.data[sibling].next_sibling && index_node(p, sibling) < 0)
        return -ENOMEM;
    uint32_t known = sibling ? *find_node(p, parent, frame) : 0;
    if (known)
        return known;
    if (p->nodes.len > UINT32_MAX)
        return -E2BIG;
    struct profile_node node = {.parent = parent, .frame = frame, .next_sibling = sibling};
    int r = vec_push(&p->nodes, node);
    if (r < 0)
        return r;
    if (sibling && index_node(p, (uint32_t)p->nodes.len - 1) < 0) {
        p->nodes.len--;
        return -ENOMEM;
    }
    return p->nodes.data[parent].first_child = (uint32_t)p->nodes.len - 1;
}

int64_t profile_thread(struct profile *p, uint64_t id, const char *name, size_t len)
{
    int64_t text = profile_string(p, name, len);
    if (text < 0)
        return text;
    bool added;
    int64_t n = number_of(&p->thread_index, id, p->threads.len, &added);
    if (n < 0)
        return n;
    if (added) {
        struct profile_thread t = {.id = id, .name = (uint32_t)text};
        int r = vec_push(&p->threads, t);
        if (r < 0) {
            map_remove(&p->thread_index, id);
            return r;
        }
    } else if (text) {
        p->threads.data[n].name = (uint32_t)text;
    }
    return n;
}

int profile_sample(struct profile *p, enum profile_metric metric, struct profile_sample sample)
{
    if (sample.time_ns > p->duration_ns)
        p->duration_ns = sample.time_ns;
    if (sample.thread < p->threads.len)
        p->threads.data[sample.thread].metrics |= 1u << metric;
    return vec_push(&p->series[metric].samples, sample);
}

/*
 * Finds the nodes that have a frame of a matching class in their stack; *ret is NULL when there is
 * no pattern.
 */
static int match_nodes(const struct profile *p, const char *pattern, uint8_t **ret)
{
    *ret = NULL;
    if (!pattern)
        return 0;
    _cleanup_free_ uint8_t *methods = calloc(p->methods.len + 1, 1);
    uint8_t *nodes = calloc(p->nodes.len, 1);
    if (!methods || !nodes) {
        free(nodes);
        return -ENOMEM;
    }
    for (size_t i = 0; i < p->methods.len; i++) {
        struct str name = profile_text(p, p->methods.data[i].class_name);
        methods[i] = name.len && pattern_match(pattern, name.data, name.len);
    }
    for (size_t i = 1; i < p->nodes.len; i++) {
        const struct profile_node *n = &p->nodes.data[i];
        nodes[i] = nodes[n->parent] || methods[p->frames.data[n->frame].method];
    }
    *ret = nodes;
    return 0;
}

static int match_threads(const struct profile *p, const char *pattern, uint8_t **ret)
{
    *ret = NULL;
    if (!pattern)
        return 0;
    uint8_t *threads = calloc(p->threads.len + 1, 1);
    if (!threads)
        return -ENOMEM;
    for (size_t i = 0; i < p->threads.len; i++) {
        struct str name = profile_text(p, p->threads.data[i].name);
        threads[i] = pattern_match(pattern, name.data, name.len);
    }
    *ret = threads;
    return 0;
}

uint64_t profile_span(const struct profile *p, const struct profile_filter *f)
{
    uint64_t to = f->to_ns ? MIN(f->to_ns, p->duration_ns) : p->duration_ns;
    return to > f->from_ns ? to - f->from_ns : 0;
}

bool profile_view_passes(const struct profile_view *v, const struct profile_sample *s)
{
    return (!v->thread_counts || v->thread_counts[s->thread]) &&
           (!v->node_counts || v->node_counts[s->node]);
}

static int each_of(const struct profile_view *v, const struct profile_samples *samples,
                   int (*visit)(void *context, const struct profile_sample *s), void *context)
{
    uint64_t from = v->filter.from_ns;
    uint64_t to = v->filter.to_ns ? v->filter.to_ns : UINT64_MAX;
    for (size_t i = 0; i < samples->len; i++) {
        const struct profile_sample *s = &samples->data[i];
        if (s->time_ns < from || s->time_ns >= to || !profile_view_passes(v, s))
            continue;
        int r = visit(context, s);
        if (r)
            return r;
    }
    return 0;
}

int profile_view_each(const struct profile_view *v,
                      int (*visit)(void *context, const struct profile_sample *s), void *context)
{
    int r = each_of(v, &v->profile->series[v->metric].samples, visit, context);
    return r == 0 && v->filter.with_vm && v->metric == PROFILE_CPU
               ? each_of(v, &v->profile->vm.samples, visit, context)
               : r;
}

int profile_view_each_merged(const struct profile_view *v,
                             int (*visit)(void *context, const struct profile_sample *s),
                             void *context)
{
    const struct profile_series *series = &v->profile->series[v->metric];
    if (!series->merged.len)
        return profile_view_each(v, visit, context);
    int r = each_of(v, &series->merged, visit, context);
    return r == 0 && v->filter.with_vm && v->metric == PROFILE_CPU
               ? each_of(v, &v->profile->vm.samples, visit, context)
               : r;
}

/* Returns the sum that a row stands for, or NULL for a single sample. */
static const struct profile_spread *spread_of(const struct profile_view *v,
                                              const struct profile_sample *s)
{
    const struct profile_series *series = &v->profile->series[v->metric];
    return series->spread.len ? &series->spread.data[s - series->samples.data] : NULL;
}

struct squares {
    const struct profile_view *view;
    double sum;
};

static int add_square(void *context, const struct profile_sample *s)
{
    struct squares *to = context;
    const struct profile_spread *spread = spread_of(to->view, s);
    to->sum += spread ? spread->squares : (double)s->weight * (double)s->weight;
    return 0;
}

double profile_standard_error(const struct profile_view *v)
{
    struct squares squares = {v, 0};
    double kept = v->profile->series[v->metric].kept_squares;
    if (kept > 0)
        return sqrt(kept * (double)v->weight);
    (void)profile_view_each(v, add_square, &squares);
    return sqrt(squares.sum);
}

static int add_to_view(void *context, const struct profile_sample *s)
{
    struct profile_view *v = context;
    v->self[s->node] += s->weight;
    v->weight += s->weight;
    const struct profile_spread *spread = spread_of(v, s);
    v->samples += spread ? spread->samples : 1;
    return 0;
}

/*
 * Computes totals from self weights, and the weight without a method or without the beginning of
 * the stack.
 */
static void sum_up(struct profile_view *v)
{
    const struct profile *p = v->profile;
    memcpy(v->total, v->self, p->nodes.len * sizeof(*v->self));
    for (size_t i = p->nodes.len; i-- > 1;)
        v->total[p->nodes.data[i].parent] += v->total[i];
    v->unattributed = v->self[0];
    for (size_t i = 1; i < p->nodes.len; i++) {
        const struct profile_frame *f = profile_node_frame(p, (uint32_t)i);
        if (f->kind != FRAME_MARK)
            continue;
        if (v->metric == PROFILE_EXACT && profile_is_open(p, p->methods.data[f->method].label)) {
            v->open += v->self[i];
            continue;
        }
        if (str_is(profile_text(p, p->methods.data[f->method].label), profilers_own)) {
            v->own += v->self[i];
            continue;
        }
        v->unattributed += v->self[i];
        if (p->nodes.data[i].parent == 0)
            v->truncated += v->total[i] - v->self[i];
    }
}

/*
 * Returns whether the thread of a stack that ends at a node waits for work. roles is indexed by the
 * strings of methods.
 */
static bool node_is_idle(const struct profile *p, const uint8_t *roles, uint32_t node)
{
    const char *callee = "";
    for (uint32_t n = node; n; n = p->nodes.data[n].parent) {
        uint32_t label = p->methods.data[profile_node_frame(p, n)->method].label;
        const char *name = profile_text(p, label).data;
        if (roles[label] == ROLE_IDLE || frame_role_is_idle_worker(callee, name))
            return true;
        /*
         * Above the JDK's frames of a sample there are frames of libraries and the kernel, which
         * have no package.
         */
        if (roles[label] == ROLE_PROGRAM && profile_node_frame(p, n)->kind < FRAME_NATIVE)
            return false;
        callee = name;
    }
    return false;
}

struct idling {
    struct profile_view *view;
    uint8_t *threads; /* 1: a thread of the VM */
};

static int add_idle(void *context, const struct profile_sample *s)
{
    struct idling *i = context;
    i->view->idle += i->view->self[s->node] || i->threads[s->thread] ? s->weight : 0;
    return 0;
}

/* Makes an array in which all elements are set, unless there is one. */
static int all_pass(uint8_t **counts, size_t n)
{
    if (*counts)
        return 0;
    *counts = malloc(n + 1);
    if (*counts)
        memset(*counts, 1, n + 1);
    return *counts ? 0 : -ENOMEM;
}

/* Excludes idle samples and counts them. */
static int leave_idle_out(struct profile_view *v)
{
    const struct profile *p = v->profile;
    uint8_t *roles = calloc(p->strings.strings.len + 1, 1);
    struct idling idling = {v, calloc(p->threads.len + 1, 1)};
    int r = roles && idling.threads ? all_pass(&v->node_counts, p->nodes.len) : -ENOMEM;
    if (r == 0)
        r = all_pass(&v->thread_counts, p->threads.len);
    for (size_t i = 0; r == 0 && i < p->methods.len; i++)
        roles[p->methods.data[i].label] =
            (uint8_t)frame_role(profile_text(p, p->methods.data[i].label).data);
    for (size_t i = 0; r == 0 && i < p->threads.len; i++)
        idling.threads[i] = frame_role_is_vm_thread(profile_text(p, p->threads.data[i].name).data);
    /* `self` temporarily marks the nodes that are idle. */
    for (size_t i = 1; r == 0 && i < p->nodes.len; i++)
        v->self[i] = node_is_idle(p, roles, (uint32_t)i);
    if (r == 0)
        profile_view_each(v, add_idle, &idling);
    for (size_t i = 1; r == 0 && i < p->nodes.len; i++) {
        v->node_counts[i] = v->node_counts[i] && !v->self[i];
        v->self[i] = 0;
    }
    for (size_t i = 0; r == 0 && i < p->threads.len; i++)
        v->thread_counts[i] = v->thread_counts[i] && !idling.threads[i];
    free(idling.threads);
    free(roles);
    return r;
}

int profile_view_init(struct profile_view *ret, const struct profile *p, enum profile_metric metric,
                      const struct profile_filter *filter)
{
    if (!p->series[metric].samples.len)
        return -ENODATA;
    struct profile_view v = {.profile = p, .metric = metric};
    if (filter)
        v.filter = *filter;
    v.self = calloc(p->nodes.len, sizeof(*v.self));
    v.total = calloc(p->nodes.len, sizeof(*v.total));
    int r = v.self && v.total ? 0 : -ENOMEM;
    if (r == 0)
        r = match_threads(p, v.filter.thread, &v.thread_counts);
    if (r == 0)
        r = match_nodes(p, v.filter.class_name, &v.node_counts);
    if (r == 0 && v.filter.without_idle && metric == PROFILE_WALL)
        r = leave_idle_out(&v);
    if (r < 0) {
        profile_view_release(&v);
        return r;
    }
    profile_view_each(&v, add_to_view, &v);
    sum_up(&v);
    *ret = v;
    return 0;
}

void profile_view_release(struct profile_view *v)
{
    free(v->self);
    free(v->total);
    free(v->thread_counts);
    free(v->node_counts);
    *v = (struct profile_view){0};
}

bool profile_is_counted(const struct profile *p, enum profile_metric metric)
{
    return (metric == PROFILE_EXACT && p->calls.len) ||
           (metric == PROFILE_ALLOCATION && p->sites.len && !p->series[metric].estimated);
}

bool profile_is_timed(const struct profile *p, enum profile_metric metric)
{
    return !profile_is_counted(p, metric) && !p->series[metric].untimed;
}

bool profile_has_samples(const struct profile *p)
{
    for (int m = 0; m < PROFILE_METRICS; m++) {
        if (p->series[m].samples.len)
            return true;
    }
    return false;
}
