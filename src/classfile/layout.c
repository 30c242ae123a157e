/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines the position of every instruction after the insertions and writes the new code. Jumps
 * keep 16-bit offsets as long as the whole method allows it. In larger methods goto and jsr become
 * goto_w and jsr_w where necessary, and a conditional jump that cannot reach its target jumps to a
 * detour within reach, which jumps on. The rounds terminate because forms only ever grow.
 */
#include "classfile/private.h"

#define REACH      INT16_MAX
#define MAX_ROUNDS 64

static int compare_inserts(const void *a, const void *b)
{
    const struct insertion *x = a, *y = b;
    if (x->pc != y->pc)
        return x->pc < y->pc ? -1 : 1;
    if (x->where != y->where)
        return x->where < y->where ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static int compare_detours(const void *a, const void *b)
{
    const struct detour *x = a, *y = b;
    if (x->pc != y->pc)
        return x->pc < y->pc ? -1 : 1;
    return x->edge < y->edge ? -1 : x->edge > y->edge;
}

static void sort_inserts(struct edit_private *p)
{
    for (size_t i = 1; i < p->inserts.len; i++)
        if (compare_inserts(&p->inserts.data[i - 1], &p->inserts.data[i]) > 0) {
            qsort(p->inserts.data, p->inserts.len, sizeof(*p->inserts.data), compare_inserts);
            return;
        }
}

static void sort_detours(struct edit_private *p)
{
    if (p->detours.len > 1)
        qsort(p->detours.data, p->detours.len, sizeof(*p->detours.data), compare_detours);
}

/*
 * Finds the detours of the instruction at pc and sets *ret_n. `hint` is a position that advances
 * with ascending pcs.
 */
static struct detour *detours_at(struct edit_private *p, uint32_t pc, size_t *hint, size_t *ret_n)
{
    size_t i = *hint;
    while (i < p->detours.len && p->detours.data[i].pc < pc)
        i++;
    size_t end = i;
    while (end < p->detours.len && p->detours.data[end].pc == pc)
        end++;
    *hint = i;
    *ret_n = end - i;
    return vec_at(&p->detours, i);
}

static uint32_t goto_length(const struct edit_private *p)
{
    return p->large ? 5 : 3;
}

/* Returns the length that the instruction at old pc has when it lies at new pc `at`. */
static uint32_t new_length(const struct edit *e, uint32_t pc, uint32_t at)
{
    const struct edit_private *p = e->p;
    uint32_t n = p->length.data[pc];
    uint8_t info = op_info[e->code[pc]];
    if (info & OP_IS_SWITCH)
        return n - (edit_switch_body(pc) - pc) + (edit_switch_body(at) - at);
    if (p->large && p->wide.data[pc])
        return 5;
    return n;
}

static uint32_t place_detours(struct edit_private *p, uint32_t island, uint32_t at)
{
    for (size_t i = 0; i < p->detours.len; i++) {
        struct detour *d = &p->detours.data[i];
        if (d->island != island)
            continue;
        d->to = at;
        at += d->len + goto_length(p);
    }
    return at;
}

/* Computes all positions once, with the current forms of jumps. */
static void place(struct edit *e)
{
    struct edit_private *p = e->p;
    const struct insertion *i = p->inserts.data, *end = vec_end(&p->inserts);
    uint32_t at = 0;
    while (i < end && i->pc == 0 && i->where == 0)
        at += i++->len;
    for (uint32_t pc = 0; pc < e->code_len; pc += p->length.data[pc]) {
        p->label.data[pc] = at;
        if (i < end && i->pc == pc) {
            for (; i < end && i->pc == pc && i->where == 1; i++)
                at += i->len;
            p->moved.data[pc] = at;
            if (i < end && i->pc == pc && i->where == 2) {
                uint32_t start = at;
                for (; i < end && i->pc == pc && i->where == 2; i++)
                    at += i->len;
                /* an empty replacement becomes a nop, so that labels stay distinct */
                at += at == start;
            } else {
                at += new_length(e, pc, at);
            }
            for (; i < end && i->pc == pc; i++)
                at += i->len;
        } else {
            p->moved.data[pc] = at;
            at += new_length(e, pc, at);
        }
        if (p->islands)
            at = place_detours(p, pc, at);
    }
    p->label.data[e->code_len] = p->moved.data[e->code_len] = at;
    at = place_detours(p, e->code_len, at);
    for (int k = 0; k < 2; k++) {
        p->catch_to[k] = at;
        if (k == 0 ? p->catch_all : edit_guard_early(e))
            at += p->catch_len;
    }
    p->total = at;
}

/*
 * True inside a try range. A detour there would need the locals that the range's handler expects.
 */
static bool in_try_range(const struct edit *e, uint32_t pc)
{
    const struct class_file *c = e->rewrite->class;
    const uint8_t *start = e->code + e->code_len;
    struct cursor in = cursor_of(start, (size_t)(c->bytes + e->method->code_end - start));
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        uint32_t from = cursor_be16(&in), to = cursor_be16(&in);
        cursor_skip(&in, 4);
        if (pc >= from && pc < to)
            return true;
    }
    return false;
}

/*
 * Finds a place for a detour that the jump at pc can reach: the nearest one after it, else one
 * before it.
 */
static int find_island(const struct edit *e, uint32_t pc, uint32_t *ret)
{
    const struct edit_private *p = e->p;
    uint32_t from = p->moved.data[pc], best = UINT32_MAX;
    for (uint32_t q = 0; q < e->code_len; q += p->length.data[q]) {
        if (!(op_info[e->code[q]] & OP_NO_FALL) || in_try_range(e, q))
            continue;
        uint32_t at = p->moved.data[q];
        if (q < pc ? from - at < REACH - 4096 : at - from < REACH - 4096)
            best = q;
        if (best != UINT32_MAX && q >= pc)
            break;
    }
    if (best == UINT32_MAX || e->constructor)
        return -ENOTSUP;
    *ret = best;
    return 0;
}

static bool reaches(int64_t distance)
{
    return distance >= INT16_MIN && distance <= INT16_MAX;
}

/*
 * Widens the jumps that cannot reach their targets. *ret_changed says whether any position may have
 * changed.
 */
static int widen(struct edit *e, bool *ret_changed)
{
    struct edit_private *p = e->p;
    size_t hint = 0, n, fixed = p->detours.len;
    bool changed = false;
    for (uint32_t pc = 0; pc < e->code_len; pc += p->length.data[pc]) {
        uint8_t op = e->code[pc];
        if (!(op_info[op] & OP_IS_BRANCH) || op >= OP_GOTO_W || p->wide.data[pc])
            continue;
        size_t all = p->detours.len;
        p->detours.len = fixed; /* detours added in this round are not sorted yet */
        struct detour *d = detours_at(p, pc, &hint, &n);
        p->detours.len = all;
        uint32_t to = n ? d->to : p->label.data[edit_branch_target(e, pc)];
        if (reaches((int64_t)to - p->moved.data[pc]))
            continue;
        changed = true;
        if (op == OP_GOTO || op == OP_JSR) {
            p->wide.data[pc] = 1;
            continue;
        }
        struct detour add = {.pc = pc, .target = edit_branch_target(e, pc)};
        int r = find_island(e, pc, &add.island);
        if (r < 0)
            return r;
        p->islands = true;
        if (n)
            d->island = add.island;
        else if ((r = vec_push(&p->detours, add)) < 0)
            return r;
    }
    sort_detours(p);
    *ret_changed = changed;
    return 0;
}

int edit_place(struct edit *e)
{
    struct edit_private *p = e->p;
    vec_clear(&p->label);
    vec_clear(&p->moved);
    int r = vec_reserve(&p->label, e->code_len + 1);
    if (r == 0)
        r = vec_reserve(&p->moved, e->code_len + 1);
    if (r < 0)
        return r;
    sort_inserts(p);
    sort_detours(p);
    place(e);
    if (p->total <= REACH)
        return 0;
    if (p->total > 2 * MAX_CODE)
        return -E2BIG;
    p->large = true;
    if ((r = vec_extend(&p->wide, e->code_len)) < 0)
        return r;
    bool changed = true;
    for (int round = 0; changed; round++) {
        if (round == MAX_ROUNDS)
            return -ENOTSUP;
        place(e);
        if ((r = widen(e, &changed)) < 0)
            return r;
    }
    return 0;
}

static void write_branch(const struct edit *e, uint32_t pc, uint32_t to, struct buf *out)
{
    const struct edit_private *p = e->p;
    uint8_t op = e->code[pc];
    uint32_t distance = to - p->moved.data[pc];
    if (op == OP_GOTO_W || op == OP_JSR_W) {
        buf_u8(out, op);
        buf_be32(out, distance);
    } else if (p->large && p->wide.data[pc]) {
        buf_u8(out, op == OP_GOTO ? OP_GOTO_W : OP_JSR_W);
        buf_be32(out, distance);
    } else {
        buf_u8(out, op);
        buf_be16(out, (uint16_t)distance);
    }
}

static void write_switch(const struct edit *e, uint32_t pc, const struct detour *d, size_t n,
                         struct buf *out)
{
    const struct edit_private *p = e->p;
    uint32_t at = p->moved.data[pc], body = edit_switch_body(pc);
    bool table = e->code[pc] == OP_TABLESWITCH;
    buf_u8(out, e->code[pc]);
    for (uint32_t pad = at + 1; pad < edit_switch_body(at); pad++)
        buf_u8(out, 0);
    unsigned edges = edit_edges(e, pc);
    for (unsigned k = 0; k < edges; k++) {
        if (k == 1)
            buf_bytes(out, e->code + body + 4, table ? 8 : 4);
        if (k >= 1 && !table)
            buf_bytes(out, e->code + body + 8 + 8 * (k - 1), 4);
        uint32_t to;
        if (n && d->edge == k) {
            to = d->to;
            d++;
            n--;
        } else {
            to = p->label.data[edit_switch_target(e, pc, k)];
        }
        buf_be32(out, to - at);
    }
    if (edges == 1) /* a lookupswitch without cases still has its count */
        buf_bytes(out, e->code + body + 4, 4);
}

static void write_detours(const struct edit *e, uint32_t island, struct buf *out)
{
    const struct edit_private *p = e->p;
    for (size_t i = 0; i < p->detours.len; i++) {
        const struct detour *d = &p->detours.data[i];
        if (d->island != island)
            continue;
        buf_bytes(out, p->inserted.data + d->at, d->len);
        uint32_t distance = p->label.data[d->target] - (d->to + d->len);
        buf_u8(out, p->large ? OP_GOTO_W : OP_GOTO);
        if (p->large)
            buf_be32(out, distance);
        else
            buf_be16(out, (uint16_t)distance);
    }
}

static const struct insertion *write_inserts(const struct edit *e, const struct insertion *i,
                                             uint32_t pc, uint32_t where, struct buf *out)
{
    const struct insertion *end = vec_end(&e->p->inserts);
    for (; i < end && i->pc == pc && i->where == where; i++)
        buf_bytes(out, e->p->inserted.data + i->at, i->len);
    return i;
}

int edit_write_code(struct edit *e, struct buf *out)
{
    struct edit_private *p = e->p;
    const struct insertion *i = p->inserts.data, *end = vec_end(&p->inserts);
    size_t start = out->len, hint = 0, n;
    uint32_t run = 0; /* the original code from here to pc is copied unchanged */
    i = write_inserts(e, i, 0, 0, out);
    for (uint32_t pc = 0; pc < e->code_len; pc += p->length.data[pc]) {
        uint8_t info = op_info[e->code[pc]];
        bool here = i < end && i->pc == pc;
        bool jumps = info & (OP_IS_BRANCH | OP_IS_SWITCH);
        bool island = p->islands && (info & OP_NO_FALL);
        if (!here && !jumps && !island)
            continue;
        buf_bytes(out, e->code + run, pc - run);
        run = pc + p->length.data[pc];
        i = write_inserts(e, i, pc, 1, out);
        if (i < end && i->pc == pc && i->where == 2) {
            size_t before = out->len;
            i = write_inserts(e, i, pc, 2, out);
            if (out->len == before)
                buf_u8(out, OP_NOP);
        } else if (jumps) {
            const struct detour *d = detours_at(p, pc, &hint, &n);
            if (info & OP_IS_SWITCH)
                write_switch(e, pc, d, n, out);
            else
                write_branch(e, pc, n ? d->to : p->label.data[edit_branch_target(e, pc)], out);
        } else {
            buf_bytes(out, e->code + pc, p->length.data[pc]);
        }
        i = write_inserts(e, i, pc, 3, out);
        if (island)
            write_detours(e, pc, out);
    }
    buf_bytes(out, e->code + run, e->code_len - run);
    write_detours(e, e->code_len, out);
    for (int k = 0; k < 2; k++)
        if (k == 0 ? p->catch_all : edit_guard_early(e))
            buf_bytes(out, p->inserted.data + p->catch_at, p->catch_len);
    if (buf_error(out))
        return buf_error(out);
    return out->len - start == p->total ? 0 : -ENOTSUP;
}
