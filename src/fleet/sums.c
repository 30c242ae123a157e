/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/sums.h"

#include "profile/profile.h"

#include <errno.h>
#include <string.h>

/* The mark of a recording for what the profiler itself does in the program's threads. */
#define PROFILER_MARK "[jvmscope]"

enum { STACKS_MAX = 1 << 28 };

void stack_sums_release(struct stack_sums *s)
{
    vec_release(&s->by_stack);
}

static int reach(struct stack_sums *s, uint64_t stack)
{
    if (stack >= STACKS_MAX)
        return -E2BIG;
    return stack < s->by_stack.len ? 0 : vec_extend(&s->by_stack, stack + 1 - s->by_stack.len);
}

uint64_t sum_least(struct sum all)
{
    return all.readings ? all.read / all.readings * FEWEST_READINGS : all.read ? UINT64_MAX : 0;
}

bool sum_is_few(struct sum part, uint64_t least)
{
    return part.read == part.weight && part.weight < least;
}

bool sum_is_read(const struct store_block *b)
{
    return strcmp(b->unit, FLEET_READ) == 0 || strcmp(b->unit, FLEET_ESTIMATED) == 0 ||
           strcmp(b->unit, FLEET_UNSURE) == 0;
}

void sum_add_block(struct sum *to, const struct store_block *b)
{
    to->samples += b->samples;
    to->weight += b->weight;
    if (strcmp(b->unit, FLEET_TIMELESS) == 0)
        to->timeless += b->samples;
    if (sum_is_read(b)) {
        to->readings += strcmp(b->unit, FLEET_UNSURE) == 0 ? 0 : b->samples;
        to->read += b->weight;
    }
}

int stack_sums_add(struct stack_sums *s, const struct store_block *b)
{
    size_t n = b->entries->list.len;
    const struct fleet_entry *e = b->entries->list.data;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        r = reach(s, e[i].stack);
        if (r < 0)
            break;
        struct sum *at = &s->by_stack.data[e[i].stack];
        at->samples += e[i].count;
        at->weight += e[i].weight;
        at->read += sum_is_read(b) ? e[i].weight : 0;
    }
    sum_add_block(&s->all, b);
    return r;
}

static int add_block(void *context, const struct store_block *b)
{
    return stack_sums_add(context, b);
}

int stack_sums_read(struct stack_sums *ret, struct store *s, struct store_read *r)
{
    return store_each_block(s, r, true, add_block, ret);
}

/* ---- methods */

struct ranking {
    struct method_sums *methods;
    struct store *s;
    struct store_read *r;
    struct map of_frame;      /* frame: its method's number */
    struct strpool labels;    /* methods of one label but several kinds are combined */
    VEC(uint32_t) seen_stack; /* method -> the last stack for which it was counted, + 1 */
};

static int64_t method_of(struct ranking *k, uint32_t frame)
{
    const uint64_t *known = map_get(&k->of_frame, frame);
    struct store_frame f;
    if (known)
        return (int64_t)*known;
    int e = store_frame(k->s, k->r, frame, &f);
    int64_t at = e < 0 ? e : strpool_add(&k->labels, f.label, strlen(f.label));
    if (at < 0)
        return at;
    if ((size_t)at == k->methods->list.len) {
        e = vec_push(&k->methods->list,
                     ((struct fleet_method_sum){.label = f.label, .kind = f.kind}));
        if (e == 0)
            e = vec_extend(&k->seen_stack, 1);
        if (e < 0)
            return e;
    }
    e = map_put(&k->of_frame, frame, (uint64_t)at);
    return e < 0 ? e : at;
}

static int add_stack(struct ranking *k, uint64_t stack, struct sum sum)
{
    struct store_stack path;
    int64_t method = -1;
    int e = store_stack(k->s, k->r, stack, &path);
    for (size_t i = 0; i < path.depth && e == 0; i++) {
        method = method_of(k, path.frames[i]);
        if (method < 0)
            return (int)method;
        struct fleet_method_sum *m = &k->methods->list.data[method];
        if (k->seen_stack.data[method] == (uint32_t)stack + 1)
            continue;
        k->seen_stack.data[method] = (uint32_t)stack + 1;
        m->total.samples += sum.samples;
        m->total.weight += sum.weight;
    }
    struct fleet_method_sum *top = method >= 0 ? &k->methods->list.data[method] : NULL;
    bool mark = top && top->kind == FLEET_MARK;
    struct sum *to = mark && strcmp(top->label, PROFILER_MARK) == 0 ? &k->methods->profiler
                     : top && !mark                                 ? &top->self
                                                                    : &k->methods->unattributed;
    to->samples += sum.samples;
    to->weight += sum.weight;
    to->read += sum.read;
    return e;
}

static int compare_parts(struct sum a, struct sum b, bool weights)
{
    uint64_t x = weights ? a.weight : a.samples;
    uint64_t y = weights ? b.weight : b.samples;
    return (x < y) - (x > y);
}

static int compare_methods(const void *left, const void *right, void *weights)
{
    const struct fleet_method_sum *a = left, *b = right;
    int c = a->few - b->few;
    if (!c)
        c = compare_parts(a->self, b->self, *(bool *)weights);
    if (!c)
        c = compare_parts(a->total, b->total, *(bool *)weights);
    return c ? c : strcmp(a->label, b->label);
}

static void drop_marks(struct method_sums *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->list.len; i++)
        if (m->list.data[i].kind != FLEET_MARK)
            m->list.data[kept++] = m->list.data[i];
    m->list.len = kept;
}

static void mark_few(struct method_sums *m, struct sum all)
{
    uint64_t least = sum_least(all);
    for (size_t i = 0; i < m->list.len; i++)
        m->list.data[i].few = sum_is_few(m->list.data[i].self, least);
}

int method_sums_of(struct method_sums *ret, struct store *s, struct store_read *r,
                   const struct stack_sums *stacks, bool weights)
{
    struct ranking k = {.methods = ret, .s = s, .r = r};
    int e = 0;
    for (size_t i = 0; i < stacks->by_stack.len && e == 0; i++)
        if (stacks->by_stack.data[i].samples || stacks->by_stack.data[i].weight)
            e = add_stack(&k, i, stacks->by_stack.data[i]);
    drop_marks(ret);
    mark_few(ret, stacks->all);
    if (ret->list.len)
        qsort_r(ret->list.data, ret->list.len, sizeof(*ret->list.data), compare_methods, &weights);
    map_release(&k.of_frame);
    strpool_release(&k.labels);
    vec_release(&k.seen_stack);
    return e;
}

void method_sums_release(struct method_sums *m)
{
    vec_release(&m->list);
}
