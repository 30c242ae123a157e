/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/cover_points.h"

#include "base/hash.h"

struct collector {
    struct cover_table *t;
    int error;
};

static void add_line(void *data, uint32_t pc, unsigned line)
{
    struct collector *c = data;
    if (c->error == 0)
        c->error = vec_push(&c->t->scratch, ((struct cover_point){line, pc, LINE_START}));
}

/* The line of each branch: that of the last line start before it. `lines` are the collected ones, in any order. */
static uint32_t line_at(const struct cover_table *t, size_t lines, uint32_t pc)
{
    const struct cover_point *best = NULL;
    for (size_t i = 0; i < lines; i++) {
        const struct cover_point *p = &t->scratch.data[i];
        if (p->pc <= pc && (!best || p->pc > best->pc))
            best = p;
    }
    return best ? best->line : 0;
}

unsigned cover_same_edge(const struct edit *e, uint32_t pc, unsigned edge)
{
    unsigned first = 0;
    while (edit_edge_target(e, pc, first) != edit_edge_target(e, pc, edge))
        first++;
    return first;
}

/* A place that is jumped to begins its line anew: the line may be entered there and nowhere else. */
static int add_target(struct cover_table *t, uint32_t pc)
{
    for (size_t i = 0; i < t->scratch.len; i++)
        if (t->scratch.data[i].edge == LINE_START && t->scratch.data[i].pc == pc)
            return 0;
    uint32_t line = line_at(t, t->scratch.len, pc);
    return vec_push(&t->scratch, ((struct cover_point){line, pc, LINE_START}));
}

static int add_targets(struct cover_table *t, const struct edit *e)
{
    int r = 0;
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);) {
        unsigned edges = edit_edges(e, i.pc);
        for (unsigned edge = 0; r == 0 && edge < edges; edge++)
            r = add_target(t, edit_edge_target(e, i.pc, edge));
    }
    return r;
}

static int add_branches(struct cover_table *t, const struct edit *e)
{
    size_t lines = t->scratch.len;
    int r = 0;
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);) {
        unsigned edges = edit_edges(e, i.pc);
        if (edges == 0 || i.op == OP_GOTO || i.op == OP_GOTO_W)
            continue;
        uint32_t line = line_at(t, lines, i.pc);
        for (unsigned edge = 0; r == 0 && edge < edges; edge++)
            r = cover_same_edge(e, i.pc, edge) < edge ? 0 : vec_push(&t->scratch, ((struct cover_point){line, i.pc, edge}));
        if (r == 0 && i.op != OP_TABLESWITCH && i.op != OP_LOOKUPSWITCH)
            r = vec_push(&t->scratch, ((struct cover_point){line, i.pc, FALL_THROUGH}));
    }
    return r;
}

static uint64_t key_of(struct str class_name, struct str name, struct str descriptor, const struct edit *e)
{
    uint64_t h = hash_bytes(class_name.data, class_name.len);
    h = hash_u64(h ^ hash_bytes(name.data, name.len));
    h = hash_u64(h ^ hash_bytes(descriptor.data, descriptor.len));
    return hash_u64(h ^ hash_bytes(e->code, e->code_len));
}

static struct cover_method *add_method(struct cover_table *t, struct str class_name, struct str source, struct str name,
                                       struct str descriptor)
{
    struct cover_method *m = arena_zalloc(&t->arena, sizeof(*m));
    size_t bytes = t->scratch.len * sizeof(struct cover_point);
    struct cover_point *points = arena_alloc(&t->arena, bytes);
    if (!m || !points)
        return NULL;
    memcpy(points, t->scratch.data, bytes);
    m->points = points;
    m->class_name = arena_copy(&t->arena, class_name.data, class_name.len);
    m->source = source.len ? arena_copy(&t->arena, source.data, source.len) : NULL;
    m->name = arena_copy(&t->arena, name.data, name.len);
    m->descriptor = arena_copy(&t->arena, descriptor.data, descriptor.len);
    m->first = t->points;
    m->count = (uint32_t)t->scratch.len;
    return m->class_name && m->name && m->descriptor && vec_push(&t->methods, m) == 0 ? m : NULL;
}

const struct cover_method *cover_add(struct cover_table *t, struct str class_name, struct str source, const struct edit *e,
                                     uint32_t limit, int *ret_error)
{
    const struct class_file *c = e->rewrite->class;
    struct str name = class_utf8(c, e->method->name), descriptor = class_utf8(c, e->method->descriptor);
    *ret_error = 0;
    /* Bridges and accessors are the compiler's; the bodies of lambdas are synthetic too, and the programmer's. */
    if (e->method->access & ACC_SYNTHETIC && !(name.len > 7 && memcmp(name.data, "lambda$", 7) == 0))
        return NULL;
    uint64_t key = key_of(class_name, name, descriptor, e);
    const uint64_t *known = map_get(&t->index, key);
    if (known)
        return t->methods.data[*known];
    vec_clear(&t->scratch);
    struct collector collector = {t, 0};
    edit_lines(e, add_line, &collector);
    if (collector.error == 0 && t->scratch.len == 0)
        return NULL;
    *ret_error = collector.error ? collector.error : add_targets(t, e);
    if (*ret_error == 0)
        *ret_error = add_branches(t, e);
    if (*ret_error == 0 && t->scratch.len > limit - t->points)
        *ret_error = -ENOSPC;
    struct cover_method *m = *ret_error ? NULL : add_method(t, class_name, source, name, descriptor);
    if (!m || map_put(&t->index, key, t->methods.len - 1) < 0) {
        *ret_error = *ret_error ? *ret_error : -ENOMEM;
        return NULL;
    }
    t->points += m->count;
    return m;
}

void cover_release(struct cover_table *t)
{
    arena_release(&t->arena);
    vec_release(&t->methods);
    vec_release(&t->scratch);
    map_release(&t->index);
    *t = (struct cover_table){0};
}
