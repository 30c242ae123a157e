/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two selections, and whether it is more than chance. */
#include "fleet/ask.h"
#include "fleet/stat.h"
#include "fleet/sums.h"

#include <errno.h>
#include <math.h>

static const double confidence = 0.95;

/* A method with a smaller share on both sides is not compared: there is nothing to be won. */
static const double least_share = 0.001;

/* Blocks of a cluster are at least so long, and there are about so many clusters in a range. */
enum { CLUSTERS_WANTED = 100 };

struct side {
    struct sum all;
    struct stat_side stat;
};

/* A method: self and total of one cluster, and the sums over clusters of each side. */
struct compared {
    const char *label;
    bool is_mark;
    double now[2];             /* of the cluster at hand: self, total */
    struct stat_part of[2][2]; /* by side; self, total */
    struct stat_change change[2];
};

struct comparing {
    struct asker *a;
    struct store_read *r;
    struct strpool labels;
    VEC(struct compared) methods;
    VEC(uint32_t) touched; /* methods of the cluster at hand */
    VEC(uint32_t) seen;    /* by method: the last stack that it was counted for, + 1 */
    struct side sides[2];
    int side;
    bool weights;
    /* Of this view: its frames and its stacks, as lists of methods. */
    struct map method_of_frame;
    struct map stack_at; /* stack: start << 32 | number of methods, the running one first */
    VEC(uint32_t) lists;
};

static int64_t method_of(struct comparing *c, uint32_t frame)
{
    const uint64_t *known = map_get(&c->method_of_frame, frame);
    struct store_frame f;
    if (known)
        return (int64_t)*known;
    int e = store_frame(c->a->store, c->r, frame, &f);
    int64_t at = e < 0 ? e : strpool_add(&c->labels, f.label, strlen(f.label));
    if (at < 0)
        return at;
    if ((size_t)at == c->methods.len) {
        struct compared m = {.label = strpool_get(&c->labels, (uint64_t)at).data,
                             .is_mark = f.kind == FLEET_MARK};
        e = vec_push(&c->methods, m);
        if (e == 0)
            e = vec_extend(&c->seen, 1);
    }
    if (e == 0)
        e = map_put(&c->method_of_frame, frame, (uint64_t)at);
    return e < 0 ? e : at;
}

/* The methods of a stack, each once, the running one first. */
static int methods_of_stack(struct comparing *c, uint64_t stack, uint64_t *ret)
{
    const uint64_t *known = map_get(&c->stack_at, stack);
    struct store_stack path;
    size_t start = c->lists.len;
    if (known) {
        *ret = *known;
        return 0;
    }
    int e = store_stack(c->a->store, c->r, stack, &path);
    for (size_t i = e == 0 ? path.depth : 0; i-- > 0 && e == 0;) {
        int64_t m = method_of(c, path.frames[i]);
        if (m < 0)
            return (int)m;
        bool again = c->seen.data[m] == (uint32_t)stack + 1;
        c->seen.data[m] = (uint32_t)stack + 1;
        e = again ? 0 : vec_push(&c->lists, (uint32_t)m);
    }
    *ret = (uint64_t)start << 32 | (c->lists.len - start);
    return e < 0 ? e : map_put(&c->stack_at, stack, *ret);
}

/* Adds what a cluster says to the sums of its side. */
static void end_cluster(struct comparing *c, double n)
{
    struct side *side = &c->sides[c->side];
    for (size_t i = 0; i < c->touched.len; i++) {
        struct compared *m = &c->methods.data[c->touched.data[i]];
        for (int k = 0; k < 2; k++) {
            struct stat_part *p = &m->of[c->side][k];
            p->x += m->now[k];
            p->xx += m->now[k] * m->now[k];
            p->xn += m->now[k] * n;
            m->now[k] = 0;
        }
    }
    vec_clear(&c->touched);
    side->stat.n += n;
    side->stat.nn += n * n;
    side->stat.clusters++;
}

/* A block is a cluster: samples of one series and one stretch of time. */
static int on_block(void *context, const struct store_block *b)
{
    struct comparing *c = context;
    struct side *side = &c->sides[c->side];
    int e = 0;
    for (size_t i = 0; i < b->entries->list.len && e == 0; i++) {
        const struct fleet_entry *entry = &b->entries->list.data[i];
        double value = (double)(c->weights ? entry->weight : entry->count);
        uint64_t list = 0;
        e = methods_of_stack(c, entry->stack, &list);
        for (uint64_t k = 0; k < (list & UINT32_MAX) && e == 0; k++) {
            uint32_t number = c->lists.data[(list >> 32) + k];
            struct compared *m = &c->methods.data[number];
            if (m->now[1] == 0)
                e = vec_push(&c->touched, number);
            m->now[0] += k == 0 ? value : 0;
            m->now[1] += value;
        }
    }
    side->all.samples += b->samples;
    side->all.weight += b->weight;
    if (e == 0)
        end_cluster(c, (double)(c->weights ? b->weight : b->samples));
    return e;
}

struct extent {
    int64_t from_s, to_s;
};

static int on_extent(void *context, const struct store_block *b)
{
    struct extent *x = context;
    x->from_s = x->to_s ? MIN(x->from_s, b->start_s) : b->start_s;
    x->to_s = MAX(x->to_s, b->start_s + b->length_s);
    return 0;
}

static int read_extent(struct asker *a, const struct fleet_choice *choice, struct extent *ret)
{
    struct store_read *r = NULL;
    struct fleet_choice any = *choice;
    any.request = NULL;
    any.step_s = store_resolution_s[0];
    int e = store_begin(a->store, &any, &r, a->why);
    if (e == 0)
        e = store_each_block(a->store, r, false, on_extent, ret);
    store_end(a->store, r);
    return e;
}

/* The resolution in which a side is divided into enough clusters, but not too many. */
static int64_t step_for(const struct extent *x)
{
    int i = 0;
    while (i < STORE_RESOLUTIONS - 1 &&
           (x->to_s - x->from_s) / store_resolution_s[i + 1] >= CLUSTERS_WANTED)
        i++;
    return store_resolution_s[i];
}

static void forget_view(struct comparing *c)
{
    map_release(&c->method_of_frame);
    map_release(&c->stack_at);
    vec_release(&c->lists);
    if (c->seen.len)
        memset(c->seen.data, 0, c->seen.len * sizeof(*c->seen.data));
}

static int read_side(struct comparing *c, int side, const struct fleet_choice *choice)
{
    struct fleet_choice stepped = *choice;
    struct extent extent = {0};
    int e = read_extent(c->a, choice, &extent);
    stepped.step_s = step_for(&extent);
    c->side = side;
    if (e == 0)
        e = store_begin(c->a->store, &stepped, &c->r, c->a->why);
    if (e == 0)
        e = store_each_block(c->a->store, c->r, true, on_block, c);
    store_end(c->a->store, TAKE(c->r));
    forget_view(c);
    return e;
}

/* ---- the answer */

static bool is_compared(const struct comparing *c, const struct compared *m)
{
    for (int side = 0; side < 2; side++)
        if (m->of[side][1].x >= least_share * c->sides[side].stat.n && c->sides[side].stat.n > 0)
            return !m->is_mark;
    return false;
}

static double evidence(const struct stat_change *x)
{
    return x->low > 0 ? x->low : x->high < 0 ? -x->high : 0;
}

/* What is certain to have changed comes first, by how much it changed at least. */
static int compare_rows(const void *left, const void *right)
{
    const struct compared *a = left, *b = right;
    double x = MAX(evidence(&a->change[0]), evidence(&a->change[1])),
           y = MAX(evidence(&b->change[0]), evidence(&b->change[1]));
    if (x != y)
        return x < y ? 1 : -1;
    x = MAX(fabs(a->change[0].change), fabs(a->change[1].change));
    y = MAX(fabs(b->change[0].change), fabs(b->change[1].change));
    if (x != y)
        return x < y ? 1 : -1;
    return strcmp(a->label, b->label);
}

static const char *verdict(const struct stat_change *x)
{
    return x->low > 0 ? "more" : x->high < 0 ? "less" : "no change";
}

static void put_side(struct json *j, const char *key, const struct side *s)
{
    json_key(j, key);
    json_begin_object(j);
    json_key_u64(j, "samples", s->all.samples);
    json_key_u64(j, "weight", s->all.weight);
    json_key_u64(j, "clusters", (uint64_t)s->stat.clusters);
    json_end_object(j);
}

static void put_double(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_double(j, v);
}

static void put_part(struct json *j, const struct comparing *c, const struct compared *m, int part)
{
    static const char *const names[] = {"self", "total"};
    const struct stat_change *x = &m->change[part];
    json_key(j, names[part]);
    json_begin_object(j);
    json_key_u64(j, "base", (uint64_t)m->of[0][part].x);
    json_key_u64(j, "new", (uint64_t)m->of[1][part].x);
    put_double(j, "base_share", c->sides[0].stat.n > 0 ? m->of[0][part].x / c->sides[0].stat.n : 0);
    put_double(j, "new_share", c->sides[1].stat.n > 0 ? m->of[1][part].x / c->sides[1].stat.n : 0);
    put_double(j, "change", x->change);
    put_double(j, "low", x->low);
    put_double(j, "high", x->high);
    json_key_string(j, "verdict", verdict(x));
    json_end_object(j);
}

static void compare_methods(struct comparing *c)
{
    size_t kept = 0;
    double tests = 0;
    for (size_t i = 0; i < c->methods.len; i++)
        tests += is_compared(c, &c->methods.data[i]) ? 2 : 0;
    for (size_t i = 0; i < c->methods.len; i++) {
        struct compared m = c->methods.data[i];
        if (!is_compared(c, &m))
            continue;
        for (int part = 0; part < 2; part++) {
            struct stat_share a = stat_share_of(&c->sides[0].stat, &m.of[0][part]);
            struct stat_share b = stat_share_of(&c->sides[1].stat, &m.of[1][part]);
            m.change[part] = stat_compare(&a, &b, confidence, tests);
        }
        c->methods.data[kept++] = m;
    }
    c->methods.len = kept;
    vec_sort(&c->methods, compare_rows);
}

static void put_answer(struct comparing *c)
{
    struct json *j = c->a->j;
    bool enough = c->sides[0].all.samples && c->sides[1].all.samples, changed = false;
    if (enough)
        compare_methods(c);
    else
        c->methods.len = 0;
    for (size_t i = 0; i < c->methods.len; i++)
        changed = changed || evidence(&c->methods.data[i].change[0]) > 0 ||
                  evidence(&c->methods.data[i].change[1]) > 0;
    json_key_string(j, "metric", c->a->q->metric);
    put_side(j, "base", &c->sides[0]);
    put_side(j, "new", &c->sides[1]);
    json_key_string(j, "verdict", !enough ? "no data" : changed ? "changed" : "no change");
    put_double(j, "confidence", confidence);
    json_key(j, "methods");
    json_begin_array(j);
    for (size_t i = 0; i < c->methods.len; i++) {
        const struct compared *m = &c->methods.data[i];
        if (c->a->q->limit && i >= c->a->q->limit)
            break;
        json_begin_object(j);
        json_key_string(j, "method", m->label);
        put_part(j, c, m, 0);
        put_part(j, c, m, 1);
        json_end_object(j);
    }
    json_end_array(j);
}

int ask_diff(struct asker *a)
{
    struct comparing c = {
        .a = a, .weights = strcmp(a->q->metric, "cpu") != 0 && strcmp(a->q->metric, "wall") != 0};
    int e = read_side(&c, 0, &a->q->base);
    if (e == 0)
        e = read_side(&c, 1, &a->q->choice);
    if (e == 0)
        put_answer(&c);
    strpool_release(&c.labels);
    vec_release(&c.methods);
    vec_release(&c.touched);
    vec_release(&c.seen);
    return e;
}
