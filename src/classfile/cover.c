/* SPDX-License-Identifier: Apache-2.0 */
#include "classfile/cover.h"

#include "base/hash.h"

struct collector {
    struct cover_table *t;
    int error;
};

static void add_line(void *data, uint32_t pc, unsigned line)
{
    struct collector *c = data;
    if (c->error == 0)
        c->error = vec_push(&c->t->scratch, ((struct cover_point){line, pc, pc, LINE_START, 0}));
}

/*
 * Returns the line of the code at pc, which is that of the last line start before it. The first
 * `lines` points of t->scratch are the line starts, in any order.
 */
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

/*
 * A jump target gets a point of its own line, because the line may be entered there and nowhere
 * else.
 */
static int add_target(struct cover_table *t, uint32_t pc)
{
    for (size_t i = 0; i < t->scratch.len; i++)
        if (t->scratch.data[i].edge == LINE_START && t->scratch.data[i].pc == pc)
            return 0;
    uint32_t line = line_at(t, t->scratch.len, pc);
    return vec_push(&t->scratch, ((struct cover_point){line, pc, pc, LINE_START, 0}));
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
            r = cover_same_edge(e, i.pc, edge) < edge
                    ? 0
                    : vec_push(&t->scratch, ((struct cover_point){line, i.pc, i.pc, edge, 0}));
        if (r == 0 && i.op != OP_TABLESWITCH && i.op != OP_LOOKUPSWITCH)
            r = vec_push(&t->scratch, ((struct cover_point){line, i.pc, i.pc, FALL_THROUGH, 0}));
    }
    return r;
}

/*
 * Flags in `ways`, which say how an instruction can be reached: by a single edge that is a point;
 * by other edges, or without an edge because it is the entry or a handler; from the instruction
 * before it.
 */
enum { BY_EDGE = 1, BY_OTHERS = 2, BY_FALLING = 4 };

static void see_handler(void *data, uint32_t pc)
{
    struct cover_table *t = data;
    t->ways.data[pc] |= BY_OTHERS;
}

static bool is_jsr(uint8_t op)
{
    return op == OP_JSR || op == OP_JSR_W;
}

static bool is_conditional(const struct insn *i)
{
    return op_info[i->op] & OP_IS_BRANCH && !(op_info[i->op] & OP_NO_FALL) && !is_jsr(i->op);
}

/*
 * Fills t->ways. Returns false for a method with subroutines, whose control flow is not analysed.
 */
static bool find_ways(struct cover_table *t, const struct edit *e)
{
    uint8_t *ways = t->ways.data;
    ways[0] = BY_OTHERS;
    edit_handlers(e, see_handler, t);
    for (struct insn i = {0}; edit_next(e, &i);) {
        unsigned edges = edit_edges(e, i.pc);
        bool jumps = i.op == OP_GOTO || i.op == OP_GOTO_W;
        for (unsigned edge = 0; edge < edges; edge++) {
            uint8_t *to = &ways[edit_edge_target(e, i.pc, edge)];
            if (jumps || cover_same_edge(e, i.pc, edge) == edge)
                *to |= jumps || *to & BY_EDGE ? BY_OTHERS : BY_EDGE;
        }
        if (!(op_info[i.op] & OP_NO_FALL))
            ways[i.pc + i.len] |= BY_FALLING;
        if (is_jsr(i.op))
            return false;
    }
    return true;
}

/*
 * Visits the edge points of the branch at i, from the k-th point on. An edge that is the only way
 * to a line start shares its probe. Returns the index after the last of them.
 */
static size_t share_edges(struct cover_table *t, const struct edit *e, const struct insn *i,
                          size_t k)
{
    for (; k < t->scratch.len && t->scratch.data[k].pc == i->pc; k++) {
        struct cover_point *p = &t->scratch.data[k];
        if (p->edge == FALL_THROUGH)
            continue;
        uint32_t to = edit_edge_target(e, i->pc, p->edge);
        if (t->ways.data[to] == BY_EDGE && t->starts.data[to])
            p->probe = t->starts.data[to] - 1;
    }
    return k;
}

/*
 * Returns where to put the probe of a handler. If the handler covers its own start, the probe goes
 * after that range, which javac ends after the instruction that stores the exception or releases
 * the monitor: inside it the probe would keep C1 from compiling the method. This is possible only
 * when the code up to there is straight-line.
 */
static uint32_t after_own_handler(const struct cover_table *t, const struct edit *e, uint32_t pc)
{
    uint32_t end = edit_own_handler_end(e, pc), at = pc;
    for (struct insn i = {0}; at < end && edit_next(e, &i);) {
        if (i.pc != at)
            continue;
        at += i.len;
        if (!(op_info[i.op] & OP_CANNOT_THROW || i.op == OP_MONITOREXIT) ||
            t->ways.data[at] != BY_FALLING)
            return pc;
    }
    return at;
}

/*
 * Gives one probe to points that are always passed together: a line start and the only edge that
 * leads to it; and a line start that follows another point, when nothing between them throws, jumps
 * or is a jump target. The first `lines` points are line starts, the others are edges in the order
 * of the code.
 */
static int share_probes(struct cover_table *t, const struct edit *e, size_t lines)
{
    const uint32_t none = UINT32_MAX;
    vec_clear(&t->ways);
    vec_clear(&t->starts);
    if (vec_extend(&t->ways, e->code_len + 1) < 0 || vec_extend(&t->starts, e->code_len + 1) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->scratch.len; i++)
        t->scratch.data[i].probe = i;
    for (uint32_t i = 0; i < lines; i++)
        t->starts.data[t->scratch.data[i].pc] = i + 1;
    if (!find_ways(t, e))
        return 0;
    for (uint32_t i = 0; i < lines; i++)
        t->scratch.data[i].at = after_own_handler(t, e, t->scratch.data[i].pc);
    size_t k = lines;
    uint32_t passed = none; /* the last probe on the way from the preceding instruction */
    for (struct insn i = {0}; edit_next(e, &i);) {
        struct cover_point *start =
            t->starts.data[i.pc] ? &t->scratch.data[t->starts.data[i.pc] - 1] : NULL;
        if (t->ways.data[i.pc] != BY_FALLING)
            passed = none;
        if (start && passed != none)
            start->probe = passed;
        else if (start)
            passed = start->probe;
        k = share_edges(t, e, &i, k);
        if (is_conditional(&i))
            /* FALL_THROUGH is the last of the branch's points */
            passed = t->scratch.data[k - 1].probe;
        else if (!(op_info[i.op] & OP_CANNOT_THROW))
            passed = none;
    }
    return 0;
}

static uint64_t key_of(struct str class_name, struct str name, struct str descriptor,
                       const struct edit *e)
{
    uint64_t h = hash_bytes(class_name.data, class_name.len);
    h = hash_u64(h ^ hash_bytes(name.data, name.len));
    h = hash_u64(h ^ hash_bytes(descriptor.data, descriptor.len));
    return hash_u64(h ^ hash_bytes(e->code, e->code_len));
}

static struct cover_method *add_method(struct cover_table *t, struct str class_name,
                                       struct str source, struct str name, struct str descriptor)
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

struct cover_method *cover_add(struct cover_table *t, struct str class_name, struct str source,
                               const struct edit *e, uint32_t limit, int *ret_error)
{
    const struct class_file *c = e->rewrite->class;
    struct str name = class_utf8(c, e->method->name),
               descriptor = class_utf8(c, e->method->descriptor);
    *ret_error = 0;
    /*
     * The compiler generates bridges and accessors. The bodies of lambdas are synthetic too, but
     * the programmer wrote them.
     */
    if (e->method->access & ACC_SYNTHETIC &&
        !(name.len > 7 && memcmp(name.data, "lambda$", 7) == 0))
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
    size_t lines = t->scratch.len;
    if (*ret_error == 0)
        *ret_error = add_branches(t, e);
    if (*ret_error == 0)
        *ret_error = share_probes(t, e, lines);
    if (*ret_error == 0 && t->scratch.len > limit - t->points)
        *ret_error = -ENOBUFS;
    struct cover_method *m =
        *ret_error ? NULL : add_method(t, class_name, source, name, descriptor);
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
    vec_release(&t->ways);
    vec_release(&t->starts);
    map_release(&t->index);
    *t = (struct cover_table){0};
}
