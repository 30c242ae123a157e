/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope's querier.v1.QuerierService, which Grafana's data source for profiles uses. The answers
 * are made from the store's series, blocks and stacks.
 */
#include "base/clock.h"
#include "base/file.h"
#include "collect/collector.h"
#include "fleet/sums.h"
#include "wire/pyroscope.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>

enum { QUERY_MAX = 1 << 20, ANSWER_MAX = 64 << 20, LABELS_MAX = 48, NODES_DEFAULT = 16384 };

/* Pyroscope's name for a type of the store, and which of a block's two sums has its values. */
static const struct {
    const char *type, *id;
    bool counts;
} types[] = {
    {"cpu", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", false},
    {"cpu", "process_cpu:samples:count:cpu:nanoseconds", true},
    {"wall", "wall:wall:nanoseconds:wall:nanoseconds", false},
    {"allocations", "memory:alloc_in_new_tlab_bytes:bytes:space:bytes", false},
    {"allocations", "memory:alloc_in_new_tlab_objects:count:space:bytes", true},
    {"live", "memory:live:bytes:space:bytes", false},
    {"locks", "mutex:delay:nanoseconds:mutex:count", false},
    {"locks", "mutex:contentions:count:mutex:count", true},
    {"times", "times:times:nanoseconds:times:nanoseconds", false},
};

struct querying {
    struct collector *c;
    struct pyroscope_query query;
    struct fleet_choice choice;
    struct store_read *r;
    regex_t patterns[64];
    bool counts, json;
    struct buf *to, *why;
};

/* ---- labels of a series, under Pyroscope's names */

struct own_labels {
    struct pyroscope_label list[LABELS_MAX];
    size_t n;
};

static void put_label(struct own_labels *to, const char *name, const char *value)
{
    if (*value && to->n < LABELS_MAX)
        to->list[to->n++] = (struct pyroscope_label){name, value};
}

static void labels_of(struct own_labels *to, const struct store_series *s)
{
    to->n = 0;
    put_label(to, "service_name", s->service);
    put_label(to, "version", s->version);
    put_label(to, "hostname", s->host);
    put_label(to, "instance", s->instance);
    for (size_t i = 0; i < s->n_labels; i++)
        put_label(to, s->labels[i].key, s->labels[i].value);
}

static const char *value_of(const struct own_labels *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->list[i].name, name) == 0)
            return l->list[i].value;
    return "";
}

/* ---- matchers */

/* A pattern must match the whole value, as in Prometheus. */
static int compile(struct querying *x, size_t i)
{
    _cleanup_(buf_release) struct buf whole = BUF(1 << 16);
    char reason[200];
    buf_printf(&whole, "^(%s)$", x->query.matchers.data[i].value);
    int r = buf_error(&whole) ? REG_ESPACE
                              : regcomp(&x->patterns[i], buf_str(&whole), REG_EXTENDED | REG_NOSUB);
    if (r == 0)
        return 0;
    regerror(r, NULL, reason, sizeof(reason));
    buf_printf(x->why, "%s: %s", x->query.matchers.data[i].value, reason);
    return -EINVAL;
}

static bool is_pattern(const struct pyroscope_matcher *m)
{
    return m->how == MATCH_REGEX || m->how == MATCH_NOT_REGEX;
}

static bool holds(const struct querying *x, size_t i, const struct own_labels *l)
{
    const struct pyroscope_matcher *m = &x->query.matchers.data[i];
    const char *value = value_of(l, m->label);
    if (strcmp(m->label, "__profile_type__") == 0)
        return true; /* read by read_type */
    bool equal = is_pattern(m) ? regexec(&x->patterns[i], value, 0, NULL, 0) == 0
                               : strcmp(m->value, value) == 0;
    return equal == (m->how == MATCH_EQUAL || m->how == MATCH_REGEX);
}

static bool is_chosen(const struct querying *x, const struct store_series *s)
{
    struct own_labels labels;
    labels_of(&labels, s);
    for (size_t i = 0; i < x->query.matchers.len; i++)
        if (!holds(x, i, &labels))
            return false;
    return true;
}

/* ---- names */

struct names {
    struct strpool pool;
    struct querying *x;
};

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int add_names(void *context, const struct store_series *s)
{
    struct names *n = context;
    struct own_labels labels;
    bool values = n->x->query.kind == PYROSCOPE_LABEL_VALUES;
    labels_of(&labels, s);
    if (!is_chosen(n->x, s))
        return 0;
    for (size_t i = 0; i < labels.n; i++) {
        const char *text = values ? labels.list[i].value : labels.list[i].name;
        if (values && strcmp(labels.list[i].name, n->x->query.name) != 0)
            continue;
        if (strpool_add(&n->pool, text, strlen(text)) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int answer_names(struct querying *x)
{
    struct names n = {.x = x};
    VEC(const char *) list = {0};
    bool wants_types = x->query.kind == PYROSCOPE_LABEL_VALUES &&
                       strcmp(x->query.name ? x->query.name : "", "__profile_type__") == 0;
    if (x->query.kind == PYROSCOPE_LABEL_VALUES && (!x->query.name || !*x->query.name)) {
        buf_string(x->why, "name: which label");
        return -EINVAL;
    }
    int e = wants_types ? 0 : store_each_series(x->c->store, x->r, add_names, &n);
    for (size_t i = 0; i < n.pool.strings.len && e == 0; i++)
        e = vec_push(&list, strpool_get(&n.pool, i).data);
    for (size_t i = 0; i < ARRAY_SIZE(types) && e == 0 && wants_types; i++)
        e = vec_push(&list, types[i].id);
    vec_sort(&list, compare_texts);
    if (e == 0)
        e = pyroscope_put_names(list.data, list.len, x->json, x->to);
    vec_release(&list);
    strpool_release(&n.pool);
    return e;
}

/* ---- profile types: those for which there are samples */

static int mark_type(void *context, const struct store_block *b)
{
    bool *found = context;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        found[i] = found[i] || strcmp(types[i].type, b->type) == 0;
    return 0;
}

static int answer_types(struct querying *x)
{
    bool found[ARRAY_SIZE(types)] = {false};
    struct pyroscope_profile_type list[ARRAY_SIZE(types)];
    size_t n = 0;
    int e = store_each_block(x->c->store, x->r, false, mark_type, found);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (found[i])
            list[n++] = (struct pyroscope_profile_type){types[i].id};
    return e < 0 ? e : pyroscope_put_profile_types(list, n, x->json, x->to);
}

/* ---- series, as sets of labels or as points over time */

/* One line of the answer: the requested labels, and its points by time. */
struct line {
    struct own_labels labels;
    VEC(struct pyroscope_point) points;
};

struct lines {
    VEC(struct line) list;
    struct map of_series;
    struct querying *x;
};

static void lines_release(struct lines *l)
{
    for (size_t i = 0; i < l->list.len; i++)
        vec_release(&l->list.data[i].points);
    vec_release(&l->list);
    map_release(&l->of_series);
}

/* Keeps only the labels that the query names; a Series request that names none keeps all. */
static void keep_requested(const struct querying *x, struct own_labels *l)
{
    size_t kept = 0;
    if (!x->query.group_by.len && x->query.kind == PYROSCOPE_SERIES)
        return;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < x->query.group_by.len; k++)
            if (strcmp(l->list[i].name, x->query.group_by.data[k]) == 0) {
                l->list[kept++] = l->list[i];
                break;
            }
    l->n = kept;
}

static bool same_labels(const struct own_labels *a, const struct own_labels *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(value_of(b, a->list[i].name), a->list[i].value) != 0)
            return false;
    return true;
}

static int add_line(void *context, const struct store_series *s)
{
    struct lines *l = context;
    struct line line = {0};
    if (!is_chosen(l->x, s))
        return 0;
    labels_of(&line.labels, s);
    keep_requested(l->x, &line.labels);
    for (size_t i = 0; i < l->list.len; i++)
        if (same_labels(&l->list.data[i].labels, &line.labels))
            return map_put(&l->of_series, s->id, i);
    int e = map_put(&l->of_series, s->id, l->list.len);
    return e < 0 ? e : vec_push(&l->list, line);
}

static int answer_series(struct querying *x)
{
    _cleanup_(lines_release) struct lines l = {.x = x};
    VEC(struct pyroscope_labels) sets = {0};
    int e = store_each_series(x->c->store, x->r, add_line, &l);
    for (size_t i = 0; i < l.list.len && e == 0; i++) {
        const struct own_labels *o = &l.list.data[i].labels;
        e = vec_push(&sets, ((struct pyroscope_labels){o->list, o->n}));
    }
    if (e == 0)
        e = pyroscope_put_label_sets(sets.data, sets.len, x->json, x->to);
    vec_release(&sets);
    return e;
}

/* A block counts in the step in which it begins; steps are counted from the start of the range. */
static int add_point(void *context, const struct store_block *b)
{
    struct lines *l = context;
    struct querying *x = l->x;
    const uint64_t *at = map_get(&l->of_series, b->series->id);
    if (!at)
        return 0;
    int64_t step_ms = MAX((int64_t)(x->query.step_s * 1000), INT64_C(1000));
    int64_t behind = b->start_s * 1000 - x->query.start_ms;
    int64_t time_ms = x->query.start_ms + MAX(behind, INT64_C(0)) / step_ms * step_ms;
    double value = (double)(x->counts ? b->samples : b->weight);
    struct line *line = &l->list.data[*at];
    struct pyroscope_point *last =
        line->points.len ? &line->points.data[line->points.len - 1] : NULL;
    if (last && last->time_ms == time_ms) {
        last->value += value;
        return 0;
    }
    return vec_push(&line->points, ((struct pyroscope_point){time_ms, value}));
}

static int compare_points(const void *left, const void *right)
{
    const struct pyroscope_point *a = left, *b = right;
    return (a->time_ms > b->time_ms) - (a->time_ms < b->time_ms);
}

/* Blocks come series by series, but a line of several series has one point for each time. */
static void order_points(struct line *line)
{
    struct pyroscope_point *p = line->points.data;
    size_t kept = 0;
    vec_sort(&line->points, compare_points);
    for (size_t i = 0; i < line->points.len; i++) {
        if (kept && p[kept - 1].time_ms == p[i].time_ms)
            p[kept - 1].value += p[i].value;
        else
            p[kept++] = p[i];
    }
    line->points.len = kept;
}

static int answer_points(struct querying *x)
{
    _cleanup_(lines_release) struct lines l = {.x = x};
    VEC(struct pyroscope_series) list = {0};
    int e = store_each_series(x->c->store, x->r, add_line, &l);
    if (e == 0)
        e = store_each_block(x->c->store, x->r, false, add_point, &l);
    for (size_t i = 0; i < l.list.len && e == 0; i++) {
        struct line *line = &l.list.data[i];
        order_points(line);
        struct pyroscope_series one = {.labels = {line->labels.list, line->labels.n},
                                       .points = line->points.data,
                                       .len = line->points.len};
        if (one.len)
            e = vec_push(&list, one);
    }
    if (e == 0)
        e = pyroscope_put_series(list.data, list.len, x->json, x->to);
    vec_release(&list);
    return e;
}

/* ---- flame graph */

struct flame {
    struct querying *x;
    struct stack_sums sums;
    VEC(struct pyroscope_node) nodes;
    VEC(const char *) names;
    struct map children; /* parent and frame to node */
    struct map of_frame; /* to name */
};

static int sum_chosen(void *context, const struct store_block *b)
{
    struct flame *f = context;
    return is_chosen(f->x, b->series) ? stack_sums_add(&f->sums, b) : 0;
}

static int64_t name_of(struct flame *f, uint32_t frame)
{
    bool added;
    struct store_frame of;
    const uint64_t *at = map_at(&f->of_frame, frame, f->names.len, &added);
    if (!at)
        return -ENOMEM;
    uint64_t number = *at;
    if (!added)
        return (int64_t)number;
    int e = store_frame(f->x->c->store, f->x->r, frame, &of);
    if (e == 0)
        e = vec_push(&f->names, of.label);
    return e < 0 ? e : (int64_t)number;
}

static int add_path(struct flame *f, uint64_t stack, int64_t value)
{
    struct store_stack path;
    uint32_t at = 0;
    int e = store_stack(f->x->c->store, f->x->r, stack, &path);
    for (size_t i = 0; i < path.depth && e == 0; i++) {
        int64_t name = name_of(f, path.frames[i]);
        bool added;
        if (name < 0)
            return (int)name;
        const uint64_t *child =
            map_at(&f->children, (uint64_t)at << 32 | (uint64_t)name, f->nodes.len, &added);
        if (!child)
            return -ENOMEM;
        uint32_t next = (uint32_t)*child;
        if (added)
            e = vec_push(&f->nodes,
                         ((struct pyroscope_node){.parent = at, .name = (uint32_t)name}));
        at = next;
    }
    if (e == 0)
        f->nodes.data[at].self += value;
    return e;
}

static int answer_flame(struct querying *x)
{
    struct flame f = {.x = x};
    int e = store_each_block(x->c->store, x->r, true, sum_chosen, &f);
    if (e == 0)
        e = vec_push(&f.names, "total");
    if (e == 0)
        e = vec_push(&f.nodes, ((struct pyroscope_node){0}));
    for (size_t i = 0; i < f.sums.by_stack.len && e == 0; i++) {
        const struct sum *s = &f.sums.by_stack.data[i];
        uint64_t value = x->counts ? s->samples : s->weight;
        if (value)
            e = add_path(&f, i, (int64_t)value);
    }
    struct pyroscope_flame flame = {f.nodes.data, f.nodes.len, f.names.data, f.names.len};
    if (e == 0)
        e = pyroscope_put_flame(&flame, x->query.max_nodes > 0 ? x->query.max_nodes : NODES_DEFAULT,
                                x->json, x->to);
    stack_sums_release(&f.sums);
    vec_release(&f.nodes);
    vec_release(&f.names);
    map_release(&f.children);
    map_release(&f.of_frame);
    return e;
}

/* ---- requests */

/* Returns the store's type for the requested profile type. */
static int read_type(struct querying *x)
{
    const char *id = x->query.profile_type;
    bool needed = x->query.kind == PYROSCOPE_SELECT_SERIES ||
                  x->query.kind == PYROSCOPE_SELECT_MERGE_STACKTRACES;
    if (!needed)
        return 0;
    for (size_t i = 0; id && i < ARRAY_SIZE(types); i++)
        if (strcmp(types[i].id, id) == 0) {
            x->choice.type = types[i].type;
            x->counts = types[i].counts;
            return 0;
        }
    buf_printf(x->why, "profileTypeID: no such type: %s", id ? id : "");
    return -EINVAL;
}

static int answer(struct querying *x)
{
    static int (*const answers[PYROSCOPE_QUERIES])(struct querying *) = {
        [PYROSCOPE_PROFILE_TYPES] = answer_types,
        [PYROSCOPE_LABEL_NAMES] = answer_names,
        [PYROSCOPE_LABEL_VALUES] = answer_names,
        [PYROSCOPE_SERIES] = answer_series,
        [PYROSCOPE_SELECT_MERGE_STACKTRACES] = answer_flame,
        [PYROSCOPE_SELECT_SERIES] = answer_points,
    };

    x->choice.from_s = x->query.start_ms / 1000;
    x->choice.to_s = (x->query.end_ms + 999) / 1000;
    if (x->query.kind == PYROSCOPE_SELECT_SERIES)
        x->choice.step_s = MAX((int64_t)x->query.step_s, INT64_C(10));
    int e = read_type(x);
    size_t compiled = 0;
    for (; compiled < x->query.matchers.len && e == 0; compiled++) {
        if (is_pattern(&x->query.matchers.data[compiled]))
            e = compile(x, compiled);
        if (e < 0)
            break;
    }
    if (e == 0)
        e = store_begin(x->c->store, &x->choice, &x->r, x->why);
    if (e == 0)
        e = answers[x->query.kind](x);
    store_end(x->c->store, x->r);
    for (size_t i = 0; i < compiled; i++)
        if (is_pattern(&x->query.matchers.data[i]))
            regfree(&x->patterns[i]);
    return e;
}

static int refuse(struct intake_reply *reply, int status, const char *code, const char *message)
{
    buf_clear(&reply->body);
    reply->type = "application/json";
    pyroscope_put_error(code, message, &reply->body);
    return status;
}

int collector_query(struct collector *c, const struct tenant *t, const struct intake_request *q,
                    const char *method, struct intake_reply *reply)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    _cleanup_free_ uint8_t *body = NULL;
    size_t len = 0;
    const char *type = intake_header(q, "Content-Type");
    struct querying x = {.c = c, .why = &why, .to = &reply->body};
    x.json = type && strncasecmp(type, "application/json", strlen("application/json")) == 0;
    enum pyroscope_query_kind kind = pyroscope_query_kind(method);
    if (kind == PYROSCOPE_QUERIES)
        return refuse(reply, 404, "unimplemented", method);
    if (q->body >= 0 &&
        (lseek(q->body, 0, SEEK_SET) < 0 || file_read_all(q->body, QUERY_MAX, &body, &len) < 0))
        return refuse(reply, 413, "resource_exhausted", "the query is too large");
    x.choice.tenant = c->open ? NULL : t->name;
    reply->body = BUF(ANSWER_MAX);
    pthread_mutex_lock(&c->asking);
    int r = pyroscope_query(&x.query, kind, x.json, body ? body : (uint8_t *)"", len, &why);
    if (r == 0)
        r = answer(&x);
    pyroscope_query_release(&x.query);
    pthread_mutex_unlock(&c->asking);
    const char *text = why.len ? buf_str(&why) : strerror(-r);
    if (r == -EINVAL || r == -EPROTO)
        return refuse(reply, 400, "invalid_argument", text);
    if (r < 0)
        return refuse(reply, r == -EBUSY ? 503 : 500, r == -EBUSY ? "unavailable" : "internal",
                      text);
    reply->type = x.json ? "application/json" : "application/proto";
    return 200;
}
