/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/compare.h"

#include <errno.h>
#include <math.h>

/*
 * A method with a smaller share on both sides is not compared, because improving it would gain
 * nothing.
 */
static const double least_share = 0.001;

/* A side is divided into at least this many clusters if it can be. */
enum { CLUSTERS_WANTED = 100 };

static int64_t method_of(struct comparison *c, uint32_t frame)
{
    const uint64_t *known = map_get(&c->method_of_frame, frame);
    struct store_frame f;
    if (known)
        return (int64_t)*known;
    int e = store_frame(c->store, c->r, frame, &f);
    int64_t at = e < 0 ? e : strpool_add(&c->labels, f.label, strlen(f.label));
    if (at < 0)
        return at;
    if ((size_t)at == c->methods.len) {
        struct compared m = {.label = strpool_get(&c->labels, (uint64_t)at).data,
                             .is_mark = f.kind == FLEET_MARK};
        e = vec_push(&c->methods, m);
        if (e == 0)
            e = vec_extend(&c->seen, 1);
        if (e == 0)
            e = vec_push(&c->now, (struct compare_now){0});
    }
    if (e == 0)
        e = map_put(&c->method_of_frame, frame, (uint64_t)at);
    return e < 0 ? e : at;
}

/* Finds the methods of a stack, each once, the running one first. */
static int methods_of_stack(struct comparison *c, uint64_t stack, struct compare_list *ret)
{
    struct store_stack path;
    size_t start = c->lists.len;
    int e = stack < c->stack_at.len ? 0 : vec_extend(&c->stack_at, stack + 1 - c->stack_at.len);
    if (e < 0)
        return e;
    *ret = c->stack_at.data[stack];
    if (ret->n)
        return 0;
    e = store_stack(c->store, c->r, stack, &path);
    for (size_t i = e == 0 ? path.depth : 0; i-- > 0 && e == 0;) {
        int64_t m = method_of(c, path.frames[i]);
        if (m < 0)
            return (int)m;
        bool again = c->seen.data[m] == (uint32_t)stack + 1;
        c->seen.data[m] = (uint32_t)stack + 1;
        e = again ? 0 : vec_push(&c->lists, (uint32_t)m);
    }
    *ret = (struct compare_list){(uint32_t)start, (uint32_t)(c->lists.len - start) + 1};
    if (e == 0)
        c->stack_at.data[stack] = *ret;
    return e;
}

static int add_to_instance(struct comparison *c, uint32_t instance, uint32_t method,
                           const double x[2])
{
    bool added;
    uint64_t key = (uint64_t)instance << 32 | method;
    const uint64_t *at = map_at(&c->cell_of, key, c->cells.len, &added);
    if (!at)
        return -ENOMEM;
    if (added) {
        int r = vec_push(&c->cells, ((struct compare_cell){instance, method, {0, 0}}));
        if (r < 0)
            return r;
    }
    c->cells.data[*at].x[0] += x[0];
    c->cells.data[*at].x[1] += x[1];
    return 0;
}

static int64_t instance_of(struct comparison *c, uint64_t series)
{
    bool added;
    const uint64_t *at = map_at(&c->instance_of, series, c->instance_n.len, &added);
    int r = !at ? -ENOMEM : added ? vec_push(&c->instance_n, 0.0) : 0;
    return r < 0 ? r : (int64_t)*at;
}

static void add_part(struct stat_part *p, double x, double n)
{
    p->x += x;
    p->xx += x * x;
    p->xn += x * n;
}

static void add_cluster(struct stat_side *s, double n)
{
    s->n += n;
    s->nn += n * n;
    s->clusters++;
}

/* Adds a block to the sums of its side and of its instance. */
static int end_block(struct comparison *c, uint64_t series, double n, bool is_read)
{
    int64_t instance = instance_of(c, series);
    int e = instance < 0 ? (int)instance : 0;
    for (size_t i = 0; i < c->touched.len; i++) {
        struct compared *m = &c->methods.data[c->touched.data[i]];
        struct compare_now *now = &c->now.data[c->touched.data[i]];
        if (e == 0)
            e = add_to_instance(c, (uint32_t)instance, c->touched.data[i], now->x);
        for (int k = 0; k < 2; k++) {
            add_part(&m->of[c->side][k], now->x[k], n);
            m->parts[c->side][k].weight += now->weight[k];
            m->parts[c->side][k].read += is_read ? now->weight[k] : 0;
        }
        *now = (struct compare_now){0};
    }
    vec_clear(&c->touched);
    add_cluster(&c->sides[c->side].blocks, n);
    if (e == 0)
        c->instance_n.data[instance] += n;
    return e;
}

/* Makes each instance a cluster as well, because its peculiarities do not average out over time. */
static void end_instances(struct comparison *c)
{
    for (size_t i = 0; i < c->instance_n.len; i++)
        add_cluster(&c->sides[c->side].instances, c->instance_n.data[i]);
    for (size_t i = 0; i < c->cells.len; i++) {
        const struct compare_cell *cell = &c->cells.data[i];
        for (int k = 0; k < 2; k++)
            add_part(&c->methods.data[cell->method].instances[c->side][k], cell->x[k],
                     c->instance_n.data[cell->instance]);
    }
}

/* Adds a block, which is a cluster: the samples of one series in one bucket of time. */
static int on_block(void *context, const struct store_block *b)
{
    struct comparison *c = context;
    struct compare_side *side = &c->sides[c->side];
    int e = 0;
    for (size_t i = 0; i < b->entries->list.len && e == 0; i++) {
        const struct fleet_entry *entry = &b->entries->list.data[i];
        double value = (double)(c->weights ? entry->weight : entry->count);
        struct compare_list list = {0};
        e = methods_of_stack(c, entry->stack, &list);
        for (uint32_t k = 0; k + 1 < list.n && e == 0; k++) {
            uint32_t number = c->lists.data[list.start + k];
            struct compare_now *now = &c->now.data[number];
            if (now->x[1] == 0)
                e = vec_push(&c->touched, number);
            for (int part = k != 0; part < 2; part++) {
                now->x[part] += value;
                now->weight[part] += entry->weight;
            }
        }
    }
    sum_add_block(&side->all, b);
    double n = (double)(c->weights ? b->weight : b->samples);
    return e < 0 ? e : end_block(c, b->series->id, n, sum_is_read(b));
}

struct block_count {
    int64_t length_s;
    size_t n; /* blocks of that length */
};

static int count_block(void *context, const struct store_block *b)
{
    struct block_count *count = context;
    count->n += b->length_s == count->length_s;
    return count->n == CLUSTERS_WANTED; /* enough are counted */
}

/*
 * Finds the coarsest resolution that divides a side into enough clusters. If a side has many
 * instances, a short time has enough of them.
 */
static int find_step(struct comparison *c, const struct fleet_choice *choice, int64_t *ret)
{
    struct fleet_choice any = *choice;
    struct block_count count = {0};
    int e = 0, i = STORE_RESOLUTIONS;
    any.request = NULL;
    do {
        struct store_read *r = NULL;
        count = (struct block_count){.length_s = store_resolution_s[--i]};
        any.step_s = *ret = count.length_s;
        e = i ? store_begin(c->store, &any, &r, c->why) : 0;
        if (r)
            e = MIN(store_each_block(c->store, r, false, count_block, &count), 0);
        store_end(c->store, r);
    } while (e == 0 && i && count.n < CLUSTERS_WANTED);
    return e;
}

static void forget_view(struct comparison *c)
{
    map_release(&c->instance_of);
    map_release(&c->cell_of);
    vec_release(&c->instance_n);
    vec_release(&c->cells);
    map_release(&c->method_of_frame);
    vec_release(&c->stack_at);
    vec_release(&c->lists);
    if (c->seen.len)
        memset(c->seen.data, 0, c->seen.len * sizeof(*c->seen.data));
}

int compare_read(struct comparison *c, int side, const struct fleet_choice *choice)
{
    struct fleet_choice stepped = *choice;
    int e = find_step(c, choice, &stepped.step_s);
    c->side = side;
    if (e == 0)
        e = store_begin(c->store, &stepped, &c->r, c->why);
    if (e == 0)
        e = store_each_block(c->store, c->r, true, on_block, c);
    if (e == 0)
        end_instances(c);
    store_end(c->store, TAKE(c->r));
    forget_view(c);
    return e;
}

static bool is_compared(const struct comparison *c, const struct compared *m)
{
    for (int side = 0; side < 2; side++)
        if (m->of[side][1].x >= least_share * c->sides[side].blocks.n &&
            c->sides[side].blocks.n > 0)
            return !m->is_mark;
    return false;
}

double compare_evidence(const struct compared *m, int part)
{
    const struct stat_change *x = &m->change[part];
    return m->few[part] ? 0 : x->low > 0 ? x->low : x->high < 0 ? -x->high : 0;
}

/* Orders differences: those that are certain come first, by their smallest possible amount. */
static int compare_rows(const void *left, const void *right)
{
    const struct compared *a = left, *b = right;
    double x = MAX(compare_evidence(a, 0), compare_evidence(a, 1)),
           y = MAX(compare_evidence(b, 0), compare_evidence(b, 1));
    if (x != y)
        return x < y ? 1 : -1;
    if (a->few[1] != b->few[1])
        return a->few[1] ? 1 : -1;
    x = MAX(fabs(a->change[0].change), fabs(a->change[1].change));
    y = MAX(fabs(b->change[0].change), fabs(b->change[1].change));
    if (x != y)
        return x < y ? 1 : -1;
    return strcmp(a->label, b->label);
}

const char *compare_verdict(const struct compared *m, int part)
{
    const struct stat_change *x = &m->change[part];
    return m->few[part]  ? "too few readings"
           : x->low > 0  ? "more"
           : x->high < 0 ? "less"
                         : "no change";
}

void compare_methods(struct comparison *c, double confidence, double comparisons)
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
            struct stat_share share[2];
            m.few[part] = sum_is_few(m.parts[0][part], sum_least(c->sides[0].all)) &&
                          sum_is_few(m.parts[1][part], sum_least(c->sides[1].all));
            for (int side = 0; side < 2; side++)
                share[side] =
                    stat_share_of_two(&c->sides[side].blocks, &m.of[side][part],
                                      &c->sides[side].instances, &m.instances[side][part]);
            m.change[part] = stat_compare(&share[0], &share[1], confidence, tests * comparisons);
        }
        c->methods.data[kept++] = m;
    }
    c->methods.len = kept;
    vec_sort(&c->methods, compare_rows);
}

void compare_release(struct comparison *c)
{
    forget_view(c);
    strpool_release(&c->labels);
    vec_release(&c->methods);
    vec_release(&c->touched);
    vec_release(&c->seen);
    vec_release(&c->now);
}
