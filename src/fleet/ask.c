/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/ask.h"

#include "base/clock.h"
#include "base/latency.h"
#include "base/parse.h"
#include "fleet/sums.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- parameters */

int ask_time(const char *text, int64_t now_s, int64_t *ret)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S",
                                        "%Y-%m-%d %H:%M", "%Y-%m-%d"};
    uint64_t n;
    if (strcmp(text, "now") == 0) {
        *ret = now_s;
        return 0;
    }
    if (parse_u64(text, 0, INT64_MAX / 4, &n) == 0) {
        *ret = (int64_t)n;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *end = strptime(text, forms[i], &tm);
        if (!end || (*end && strcmp(end, "Z") != 0))
            continue;
        *ret = *end ? (int64_t)timegm(&tm) : (int64_t)mktime(&tm);
        return 0;
    }
    if (parse_duration(text + (*text == '-'), 0, &n) == 0) {
        *ret = now_s - (int64_t)(n / NS_PER_SECOND);
        return 0;
    }
    return -EINVAL;
}

static int bad(struct buf *why, const char *key, const char *value)
{
    buf_printf(why, "%s: not a value it takes: %.200s", key, value);
    return -EINVAL;
}

/* Reads "key=value". with_names: a key for which the choice has a member sets that member. */
static int read_label(struct fleet_choice *c, struct fleet_label *labels, struct arena *arena,
                      const char *text, bool with_names, struct buf *why)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        buf_printf(why, "%s: expected KEY=VALUE, not '%.200s'", with_names ? "base" : "label",
                   text);
        return -EINVAL;
    }
    const char *key = arena_copy(arena, text, (size_t)(equals - text)), *value = equals + 1;

    const struct {
        const char *name;
        const char **to;
    } names[] = {{"service", &c->service},
                 {"version", &c->version},
                 {"host", &c->host},
                 {"instance", &c->instance},
                 {"request", &c->request}};

    for (size_t i = 0; key && with_names && i < ARRAY_SIZE(names); i++) {
        if (strcmp(key, names[i].name) == 0) {
            *names[i].to = value;
            return 0;
        }
    }
    int64_t now_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    if (key && with_names && strcmp(key, "from") == 0)
        return ask_time(value, now_s, &c->from_s) < 0 ? bad(why, "base", text) : 0;
    if (key && with_names && strcmp(key, "to") == 0)
        return ask_time(value, now_s, &c->to_s) < 0 ? bad(why, "base", text) : 0;
    if (!key || c->n_labels == ASK_LABELS)
        return key ? bad(why, with_names ? "base" : "label", "too many") : -ENOMEM;
    size_t at = c->n_labels;
    /* The base differs from the selection in this label. Without it, both values must be equal. */
    for (size_t i = 0; with_names && i < c->n_labels; i++)
        if (strcmp(labels[i].key, key) == 0)
            at = i;
    c->n_labels += at == c->n_labels;
    labels[at] = (struct fleet_label){key, value};
    c->labels = labels;
    return 0;
}

static int read_param(struct fleet_question *q, struct arena *arena, const struct ask_param *p,
                      struct buf *why)
{
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"service", &q->choice.service}, {"version", &q->choice.version},
                 {"host", &q->choice.host},       {"instance", &q->choice.instance},
                 {"request", &q->choice.request}, {"tenant", &q->choice.tenant},
                 {"metric", &q->metric},          {"method", &q->method}};

    int64_t now_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_SECOND);
    char *end;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (strcmp(p->key, texts[i].key) == 0) {
            *texts[i].to = p->value;
            return 0;
        }
    }
    if (strcmp(p->key, "from") == 0 || strcmp(p->key, "to") == 0)
        return ask_time(p->value, now_s, p->key[0] == 'f' ? &q->choice.from_s : &q->choice.to_s) < 0
                   ? bad(why, p->key, p->value)
                   : 0;
    if (strcmp(p->key, "label") == 0)
        return read_label(&q->choice, q->labels, arena, p->value, false, why);
    if (strcmp(p->key, "limit") == 0)
        return parse_u64(p->value, 0, INT64_MAX, &q->limit) < 0 ? bad(why, p->key, p->value) : 0;
    if (strcmp(p->key, "price") == 0) {
        q->price = strtod(p->value, &end);
        if (end == p->value || *end || !(q->price >= 0) || !isfinite(q->price))
            return bad(why, p->key, p->value);
        if (q->price == 0)
            buf_printf(why, "price: out of range: %.20s, not above 0", p->value);
        return q->price == 0 ? -EINVAL : 0;
    }
    if (strcmp(p->key, "base") == 0)
        return 0; /* it is read later, when the label in which the base differs is known */
    buf_printf(why, "%s: no such parameter", p->key);
    return -EINVAL;
}

/* Refuses a second base= of one key. */
static int check_base_once(const struct ask_param *params, size_t which, struct buf *why)
{
    const char *text = params[which].value;
    size_t n = strcspn(text, "=");
    for (size_t i = 0; i < which; i++) {
        const char *other = params[i].value;
        if (strcmp(params[i].key, "base") == 0 && strcspn(other, "=") == n &&
            memcmp(other, text, n) == 0) {
            buf_printf(why, "base: given twice: %.200s and %.200s", other, text);
            return -EINVAL;
        }
    }
    return 0;
}

static int read_question(struct fleet_question *q, struct arena *arena,
                         const struct ask_param *params, size_t n, struct buf *why)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = read_param(q, arena, &params[i], why);
    if (r == 0 && q->choice.to_s && q->choice.from_s > q->choice.to_s) {
        buf_string(why, "from: it is after the end of the time");
        r = -EINVAL;
    }
    q->metric_given = q->metric != NULL;
    q->metric = q->metric_given ? ask_metric_name(q->metric) : "cpu";
    q->choice.type = q->metric;
    q->base = q->choice;
    memcpy(q->base_labels, q->labels, sizeof(q->labels));
    q->base.labels = q->base_labels;
    for (size_t i = 0; i < n && r == 0; i++)
        if (strcmp(params[i].key, "base") == 0 && (r = check_base_once(params, i, why)) == 0)
            r = read_label(&q->base, q->base_labels, arena, params[i].value, true, why);
    return r;
}

int ask_check(const struct ask_param *params, size_t n, struct buf *why)
{
    _cleanup_(arena_release) struct arena arena = {0};
    struct fleet_question q = {0};
    return read_question(&q, &arena, params, n, why);
}

/* ---- what answers have in common */

void ask_put_sums(struct json *j, const char *metric, struct sum sum)
{
    char key[64];
    snprintf(key, sizeof(key), "%.40s_samples", metric);
    json_key_u64(j, key, sum.samples);
    snprintf(key, sizeof(key), "%.40s_%s", metric, ask_unit_of(metric));
    json_key_u64(j, key, sum.weight);
    if (sum.timeless) {
        snprintf(key, sizeof(key), "%.40s_samples_without_time", metric);
        json_key_u64(j, key, sum.timeless);
    }
    if (sum.readings) {
        snprintf(key, sizeof(key), "%.40s_readings", metric);
        json_key_u64(j, key, sum.readings);
        snprintf(key, sizeof(key), "%.40s_%s_read", metric, ask_unit_of(metric));
        json_key_u64(j, key, sum.read);
    }
}

/* If no sample has a time, the cost is unknown. */
void ask_put_cost(struct asker *a, struct sum sum)
{
    bool known = sum.weight || !sum.samples;
    if (a->q->price > 0 && strcmp(a->q->metric, "cpu") == 0 && known)
        json_key_double(a->j, "cost", (double)sum.weight / 3600e9 * a->q->price);
}

const char *ask_unit_of(const char *metric)
{
    return strcmp(metric, "allocations") == 0 || strcmp(metric, "live") == 0 ? "bytes" : "ns";
}

bool ask_counts_weights(const char *metric)
{
    return strcmp(metric, "cpu") != 0 && strcmp(metric, "wall") != 0;
}

/* ---- methods */

static int answer_top_methods(struct asker *a)
{
    _cleanup_(stack_sums_release) struct stack_sums stacks = {0};
    _cleanup_(method_sums_release) struct method_sums methods = {0};
    struct store_read *r = NULL;
    bool weights = ask_counts_weights(a->q->metric);
    struct fleet_choice choice = a->q->choice;
    size_t shown = 0;
    choice.merged = true;
    int e = store_begin(a->store, &choice, &r, a->why);
    if (e == 0)
        e = stack_sums_read(&stacks, a->store, r);
    if (e == 0)
        e = method_sums_of(&methods, a->store, r, &stacks, weights);
    a->found = !a->q->method && (stacks.all.samples || stacks.all.weight);
    json_key_string(a->j, "metric", a->q->metric);
    ask_put_sums(a->j, a->q->metric, stacks.all);
    json_key_u64(a->j, "unattributed",
                 weights ? methods.unattributed.weight : methods.unattributed.samples);
    json_key_u64(a->j, "profiler", weights ? methods.profiler.weight : methods.profiler.samples);
    json_key_array(a->j, "methods");
    for (size_t i = 0; e == 0 && i < methods.list.len; i++) {
        const struct fleet_method_sum *m = &methods.list.data[i];
        if (a->q->method && !ask_method_matches(a, m->label))
            continue;
        a->found = true;
        if (a->q->limit && shown++ >= a->q->limit)
            continue;
        json_begin_object(a->j);
        json_key_string(a->j, "method", m->label);
        json_key_u64(a->j, "self", weights ? m->self.weight : m->self.samples);
        json_key_u64(a->j, "total", weights ? m->total.weight : m->total.samples);
        if (m->few && m->self.weight)
            json_key_bool(a->j, "few_readings", true);
        ask_put_cost(a, m->total);
        json_end_object(a->j);
    }
    json_end_array(a->j);
    store_end(a->store, r);
    return e;
}

static int answer_top(struct asker *a)
{
    return a->q->choice.service || a->q->method ? answer_top_methods(a) : ask_top_services(a);
}

/* ---- flame graph */

struct flame_node {
    uint32_t first_child, next_sibling;
    uint32_t label;
    enum fleet_kind kind;
    struct sum self, total;
};

struct flame {
    struct asker *a;
    struct store_read *r;
    VEC(struct flame_node) nodes;
    struct map children; /* parent << 32 | frame: node */
    bool weights;
    uint64_t least; /* sum_least */
};

static int64_t child_of(struct flame *f, uint32_t parent, uint32_t frame)
{
    bool is_new;
    uint64_t *at = map_at(&f->children, (uint64_t)parent << 32 | frame, f->nodes.len, &is_new);
    if (!at)
        return -ENOMEM;
    if (!is_new)
        return (int64_t)*at;
    struct flame_node n = {.label = frame, .next_sibling = f->nodes.data[parent].first_child};
    int r = vec_push(&f->nodes, n);
    if (r < 0)
        return r;
    f->nodes.data[parent].first_child = (uint32_t)f->nodes.len - 1;
    return (int64_t)f->nodes.len - 1;
}

static int add_to_flame(struct flame *f, uint64_t stack, struct sum sum)
{
    struct store_stack path;
    int64_t node = 0;
    int e = store_stack(f->a->store, f->r, stack, &path);
    for (size_t i = 0; e == 0; i++) {
        struct flame_node *n = &f->nodes.data[node];
        n->total.samples += sum.samples;
        n->total.weight += sum.weight;
        if (i == path.depth) {
            n->self.samples += sum.samples;
            n->self.weight += sum.weight;
            n->self.read += sum.read;
            break;
        }
        node = child_of(f, (uint32_t)node, path.frames[i]);
        e = node < 0 ? (int)node : 0;
    }
    return e;
}

static void open_node(struct flame *f, const struct flame_node *n, const char *name)
{
    json_begin_object(f->a->j);
    json_key_string(f->a->j, "name", name);
    json_key_u64(f->a->j, "self", f->weights ? n->self.weight : n->self.samples);
    json_key_u64(f->a->j, "total", f->weights ? n->total.weight : n->total.samples);
    if (n->self.weight && sum_is_few(n->self, f->least))
        json_key_bool(f->a->j, "few_readings", true);
    json_key_array(f->a->j, "children");
}

/* Writes the tree without recursion: stacks of thousands of frames are allowed. */
static int put_flame(struct flame *f)
{
    VEC(uint32_t) open = {0};
    int e = vec_push(&open, 0);
    json_key(f->a->j, "root");
    open_node(f, &f->nodes.data[0], "all");
    uint32_t next = f->nodes.data[0].first_child;
    while (e == 0 && open.len) {
        if (!next) {
            json_end_array(f->a->j);
            json_end_object(f->a->j);
            next = f->nodes.data[open.data[--open.len]].next_sibling;
            continue;
        }
        struct store_frame frame;
        e = store_frame(f->a->store, f->r, f->nodes.data[next].label, &frame);
        if (e == 0)
            e = vec_push(&open, next);
        if (e == 0) {
            open_node(f, &f->nodes.data[next], frame.label);
            next = f->nodes.data[next].first_child;
        }
    }
    vec_release(&open);
    return e;
}

static int answer_flame(struct asker *a)
{
    _cleanup_(stack_sums_release) struct stack_sums stacks = {0};
    struct flame f = {.a = a, .weights = ask_counts_weights(a->q->metric)};
    struct fleet_choice choice = a->q->choice;
    choice.merged = true;
    int e = store_begin(a->store, &choice, &f.r, a->why);
    if (e == 0)
        e = stack_sums_read(&stacks, a->store, f.r);
    f.least = sum_least(stacks.all);
    if (e == 0)
        e = vec_push(&f.nodes, ((struct flame_node){0}));
    for (size_t i = 0; e == 0 && i < stacks.by_stack.len; i++)
        if (stacks.by_stack.data[i].samples || stacks.by_stack.data[i].weight)
            e = add_to_flame(&f, i, stacks.by_stack.data[i]);
    json_key_string(a->j, "metric", a->q->metric);
    ask_put_sums(a->j, a->q->metric, stacks.all);
    a->found = stacks.all.samples || stacks.all.weight;
    if (e == 0)
        e = put_flame(&f);
    vec_release(&f.nodes);
    map_release(&f.children);
    store_end(a->store, f.r);
    return e;
}

static const struct ask_verb {
    const char *name;
    enum ask_about about;
    /* writes members of the open object, and sets `found` */
    int (*answer)(struct asker *a);
} verbs[] = {{"services", ASK_ABOUT_SERVICES, ask_services},
             {"top", ASK_ABOUT_METRIC, answer_top},
             {"flame", ASK_ABOUT_METRIC, answer_flame},
             {"diff", ASK_ABOUT_METRIC, ask_diff},
             {"requests", ASK_ABOUT_REQUESTS, ask_requests},
             {"findings", ASK_ABOUT_METRIC, ask_findings},
             {"query", ASK_ABOUT_METRIC, ask_query},
             {"vm", ASK_ABOUT_VM, ask_vm},
             {0}};

static int put_nothing(struct asker *a)
{
    _cleanup_(buf_release) struct buf text = BUF(8192);
    if (a->base_lacks)
        buf_string(&text, "base: ");
    int r = ask_empty(a, a->base_lacks ? &a->q->base : &a->q->choice, &text);
    json_key_string(a->j, "nothing", buf_str(&text));
    return r;
}

/* Removes the answer so far, which began at this length of the output. */
static void begin_afresh(struct asker *a, size_t at)
{
    a->j->out->len = at;
    *a->j = (struct json){.out = a->j->out};
    json_begin_object(a->j);
}

/*
 * Returns whether the question, whose answer is empty, names no metric and another one has samples.
 * The question is then about that one, and the answer starts afresh. Returns 1, 0 or a negative
 * errno.
 */
static int take_other_metric(struct asker *a, struct fleet_question *q, size_t at)
{
    const char *other = NULL;
    int r = a->found || q->metric_given || a->about != ASK_ABOUT_METRIC
                ? 0
                : ask_first_metric(a, &other);
    if (r < 0 || !other || strcmp(other, q->metric) == 0)
        return MIN(r, 0);
    q->metric = q->choice.type = q->base.type = other;
    a->base_lacks = false;
    begin_afresh(a, at);
    return 1;
}

int ask_answer(struct store *s, const char *verb, const char *tenant,
               const struct ask_param *params, size_t n, const struct ask_kept *kept,
               struct buf *out, struct buf *why)
{
    struct fleet_question q = {0};
    struct arena arena = {0};
    struct json j = {out, false};
    struct asker a = {.store = s, .q = &q, .j = &j, .why = why, .tenant = tenant, .kept = kept};
    const struct ask_verb *v = verbs;
    while (v->name && strcmp(v->name, verb) != 0)
        v++;
    if (!v->name) {
        buf_printf(why, "%s: no such query", verb);
        return -ENOENT;
    }
    int r = read_question(&q, &arena, params, n, why);
    if (tenant)
        q.choice.tenant = q.base.tenant = tenant;
    a.about = v->about;
    if (r == 0 && v->about == ASK_ABOUT_METRIC)
        r = ask_check_metric(&a);
    if (r == 0)
        r = ask_narrow(&a, &q.choice, &arena);
    if (r == 0) {
        size_t at = out->len;
        json_begin_object(&j);
        r = v->answer(&a);
        int again = r == 0 ? take_other_metric(&a, &q, at) : r;
        r = again > 0 ? v->answer(&a) : again;
        const char *unseen = r == 0 && a.found ? ask_unseen_method(&a, &arena) : NULL;
        if (unseen) {
            begin_afresh(&a, at);
            json_key_string(&j, "metric", q.metric);
            q.method = unseen;
            a.found = false;
        }
        if (r == 0 && !a.found)
            r = put_nothing(&a);
        json_end_object(&j);
    }
    arena_release(&arena);
    return r < 0 ? r : buf_error(out);
}
