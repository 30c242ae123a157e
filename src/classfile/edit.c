/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A method that is being edited: decoding, recording of insertions, and the sequence of the final
 * steps.
 */
#include "classfile/private.h"

void edit_free(struct edit *e)
{
    if (!e)
        return;
    struct edit_private *p = e->p;
    vec_release(&p->length);
    vec_release(&p->wide);
    vec_release(&p->label);
    vec_release(&p->moved);
    buf_release(&p->inserted);
    vec_release(&p->inserts);
    vec_release(&p->detours);
    vec_release(&p->types);
    vec_release(&p->frames);
    free(p);
    free(e);
}

uint32_t edit_branch_target(const struct edit *e, uint32_t pc)
{
    if (e->code[pc] >= OP_GOTO_W)
        return pc + edit_be32(e, pc + 1);
    return pc + (uint32_t)(int16_t)(e->code[pc + 1] << 8 | e->code[pc + 2]);
}

uint32_t edit_switch_target(const struct edit *e, uint32_t pc, unsigned edge)
{
    uint32_t body = edit_switch_body(pc);
    if (edge == 0)
        return pc + edit_be32(e, body);
    if (e->code[pc] == OP_TABLESWITCH)
        return pc + edit_be32(e, body + 12 + 4 * (edge - 1));
    return pc + edit_be32(e, body + 8 + 8 * (edge - 1) + 4);
}

unsigned edit_edges(const struct edit *e, uint32_t pc)
{
    uint8_t op = e->code[pc];
    if (op == OP_TABLESWITCH)
        return 2 + edit_be32(e, edit_switch_body(pc) + 8) - edit_be32(e, edit_switch_body(pc) + 4);
    if (op == OP_LOOKUPSWITCH)
        return 1 + edit_be32(e, edit_switch_body(pc) + 4);
    return (op_info[op] & OP_IS_BRANCH) && op != OP_JSR && op != OP_JSR_W;
}

uint32_t edit_edge_target(const struct edit *e, uint32_t pc, unsigned edge)
{
    return op_info[e->code[pc]] & OP_IS_SWITCH ? edit_switch_target(e, pc, edge)
                                               : edit_branch_target(e, pc);
}

/* Returns the length of the switch at pc, or 0 when it does not fit into the code. */
static uint32_t switch_length(const struct edit *e, uint32_t pc)
{
    uint64_t body = edit_switch_body(pc), n;
    bool table = e->code[pc] == OP_TABLESWITCH;
    if (body + (table ? 12 : 8) > e->code_len)
        return 0;
    if (table) {
        int64_t low = (int32_t)edit_be32(e, (uint32_t)body + 4),
                high = (int32_t)edit_be32(e, (uint32_t)body + 8);
        if (low > high)
            return 0;
        n = body + 12 + 4 * (uint64_t)(high - low + 1);
    } else {
        n = body + 8 + 8 * (uint64_t)edit_be32(e, (uint32_t)body + 4);
    }
    return n <= e->code_len ? (uint32_t)n - pc : 0;
}

static uint32_t instruction_length(const struct edit *e, uint32_t pc)
{
    uint8_t op = e->code[pc];
    uint32_t n = op_info[op] & OP_LENGTH;
    if (op_info[op] & OP_IS_SWITCH) {
        n = switch_length(e, pc);
    } else if (op == OP_WIDE && pc + 1 < e->code_len) {
        uint8_t of = e->code[pc + 1];
        bool local = (of >= OP_ILOAD && of <= OP_ALOAD) || (of >= OP_ISTORE && of <= OP_ASTORE) ||
                     of == OP_RET;
        n = of == OP_IINC ? 6 : local ? 4 : 0;
    }
    return pc + n <= e->code_len ? n : 0;
}

static bool is_start(const struct edit *e, uint32_t pc)
{
    return pc < e->code_len && e->p->length.data[pc];
}

static int check_targets(struct edit *e)
{
    for (uint32_t pc = 0; pc < e->code_len; pc += e->p->length.data[pc]) {
        uint8_t info = op_info[e->code[pc]];
        if ((info & OP_IS_BRANCH) && !is_start(e, edit_branch_target(e, pc)))
            return -EBADMSG;
        if (info & OP_IS_SWITCH) {
            unsigned edges = edit_edges(e, pc);
            for (unsigned i = 0; i < edges; i++)
                if (!is_start(e, edit_switch_target(e, pc, i)))
                    return -EBADMSG;
        }
    }
    return 0;
}

/*
 * State of the search for super() or this() in a constructor: the first call of <init> that does
 * not belong to a preceding `new` initializes `this`.
 */
struct super_search {
    unsigned fresh;
    bool seen;
};

static void find_super(struct edit *e, uint32_t pc, uint32_t len, struct super_search *s)
{
    uint8_t op = e->code[pc];
    struct class_member m;
    if (op == OP_NEW) {
        s->fresh++;
    } else if (op == OP_INVOKESPECIAL &&
               class_member(e->rewrite->class, (uint16_t)(e->code[pc + 1] << 8 | e->code[pc + 2]),
                            &m) &&
               str_is(m.name, "<init>")) {
        if (s->fresh) {
            s->fresh--;
        } else if (!s->seen) {
            s->seen = true;
            e->super_pc = pc;
            e->super_end = pc + len;
        }
    }
}

static int decode(struct edit *e)
{
    struct edit_private *p = e->p;
    struct super_search search = {0};
    int r = vec_extend(&p->length, e->code_len);
    if (r < 0)
        return r;
    bool jumps = false;
    for (uint32_t pc = 0, len; pc < e->code_len; pc += len) {
        if (!(len = instruction_length(e, pc)))
            return -EBADMSG;
        p->length.data[pc] = (uint16_t)len;
        jumps |= op_info[e->code[pc]] & (OP_IS_BRANCH | OP_IS_SWITCH);
        if (e->constructor)
            find_super(e, pc, len, &search);
    }
    p->has_branches = jumps;
    return jumps ? check_targets(e) : 0;
}

static void reset(struct edit *e)
{
    struct edit_private *p = e->p;
    vec_clear(&p->length);
    vec_clear(&p->wide);
    vec_clear(&p->inserts);
    vec_clear(&p->detours);
    vec_clear(&p->types);
    vec_clear(&p->frames);
    buf_clear(&p->inserted);
    p->inserted.limit = 16u << 20;
    p->local_count = p->local_slots = p->stack = p->entry_len = 0;
    p->has_branches = p->large = p->islands = p->catch_all = false;
    e->super_pc = e->super_end = 0;
}

int edit_begin(struct rewrite *w, size_t method, struct edit **ret)
{
    if (method >= w->class->methods.len)
        return -EINVAL;
    const struct class_method *m = &w->class->methods.data[method];
    if (!m->code)
        return -ENODATA;
    if (!w->edit) {
        struct edit *e = calloc(1, sizeof(*e));
        struct edit_private *p = calloc(1, sizeof(*p));
        if (!e || !p) {
            free(e);
            free(p);
            return -ENOMEM;
        }
        e->p = p;
        w->edit = e;
    }
    struct edit *e = w->edit;
    reset(e);
    struct cursor in = cursor_of(w->class->bytes + m->code, m->code_end - m->code);
    e->rewrite = w;
    e->method = m;
    e->max_stack = cursor_be16(&in);
    e->max_locals = cursor_be16(&in);
    e->code_len = cursor_be32(&in);
    e->code = cursor_take(&in, e->code_len);
    if (in.failed || e->code_len == 0 || e->code_len > MAX_CODE)
        return -EBADMSG;
    e->constructor = str_is(class_utf8(w->class, m->name), "<init>");
    int r = decode(e);
    if (r < 0)
        return r;
    *ret = e;
    return 0;
}

bool edit_next(const struct edit *e, struct insn *i)
{
    uint32_t pc = i->at ? i->pc + i->len : 0;
    if (pc >= e->code_len)
        return false;
    *i = (struct insn){
        .pc = pc, .len = e->p->length.data[pc], .op = e->code[pc], .at = e->code + pc};
    if (i->op == OP_WIDE)
        i->op = e->code[pc + 1];
    return true;
}

int edit_local(struct edit *e, char type)
{
    struct edit_private *p = e->p;
    unsigned slots = type == 'J' || type == 'D' ? 2 : 1;
    if (!type || !strchr("IJFDA", type))
        return -EINVAL;
    unsigned index = e->max_locals + p->local_slots;
    if (p->local_count == MAX_NEW_LOCALS || index + slots > UINT16_MAX)
        return -ENOSPC;
    p->locals[p->local_count++] = type;
    p->local_slots += slots;
    return (int)index;
}

static int keep_code(struct edit *e, const struct buf *code, unsigned stack, uint32_t *ret_at)
{
    struct edit_private *p = e->p;
    if (buf_error(code))
        return buf_error(code);
    *ret_at = (uint32_t)p->inserted.len;
    buf_bytes(&p->inserted, code->data, code->len);
    p->stack = MAX(p->stack, stack);
    return buf_error(&p->inserted);
}

static int insert_edge(struct edit *e, uint32_t pc, unsigned edge, const struct buf *code,
                       unsigned stack)
{
    struct edit_private *p = e->p;
    if (edge >= edit_edges(e, pc))
        return -EINVAL;
    bool is_switch = op_info[e->code[pc]] & OP_IS_SWITCH;
    struct detour d = {.pc = pc, .edge = edge, .island = e->code_len};
    d.target = is_switch ? edit_switch_target(e, pc, edge) : edit_branch_target(e, pc);
    for (size_t i = p->detours.len; i-- > 0;) {
        struct detour *existing = &p->detours.data[i];
        if (existing->pc != pc || existing->edge != edge)
            continue;
        uint32_t at = (uint32_t)p->inserted.len, len = existing->len;
        uint8_t *copy = buf_add(&p->inserted, len);
        if (copy)
            memcpy(copy, p->inserted.data + existing->at, len);
        int r = keep_code(e, code, stack, &d.at);
        if (r < 0)
            return r;
        existing->at = at;
        existing->len = len + (uint32_t)code->len;
        return 0;
    }
    int r = keep_code(e, code, stack, &d.at);
    d.len = (uint32_t)code->len;
    return r < 0 ? r : vec_push(&p->detours, d);
}

int edit_insert(struct edit *e, enum edit_where where, uint32_t pc, unsigned edge,
                const struct buf *code, unsigned stack)
{
    /* The order of insertions at the same pc. */
    static const uint8_t rank[] = {
        [EDIT_ENTRY] = 0, [EDIT_BEFORE] = 1, [EDIT_REPLACE] = 2, [EDIT_AFTER] = 3};
    struct edit_private *p = e->p;
    if (where == EDIT_ENTRY)
        pc = 0;
    if (!is_start(e, pc))
        return -EINVAL;
    if (where == EDIT_EDGE)
        return insert_edge(e, pc, edge, code, stack);
    uint8_t info = op_info[e->code[pc]];
    if (where == EDIT_AFTER &&
        ((info & OP_NO_FALL) || e->code[pc] == OP_JSR || e->code[pc] == OP_JSR_W))
        return -EINVAL;
    if (where == EDIT_REPLACE && (info & (OP_IS_BRANCH | OP_NO_FALL)))
        return -EINVAL;
    struct insertion n = {.pc = pc,
                          .where = rank[where],
                          .len = (uint32_t)code->len,
                          .order = (uint32_t)p->inserts.len};
    int r = keep_code(e, code, stack, &n.at);
    if (r < 0)
        return r;
    if (where == EDIT_ENTRY)
        p->entry_len += n.len;
    return vec_push(&p->inserts, n);
}

int edit_catch_all(struct edit *e, const struct buf *code, unsigned stack)
{
    struct edit_private *p = e->p;
    if (code->len == 0 || code->data[code->len - 1] != OP_ATHROW)
        return -EINVAL;
    uint32_t before = p->catch_all ? p->catch_len - 1 : 0;
    uint32_t at = (uint32_t)p->inserted.len;
    uint32_t unused;
    uint8_t *copy = before ? buf_add(&p->inserted, before) : NULL;
    if (copy)
        memcpy(copy, p->inserted.data + p->catch_at, before);
    int r = keep_code(e, code, stack, &unused);
    if (r < 0)
        return r;
    p->catch_at = at;
    p->catch_len = before + (uint32_t)code->len;
    p->catch_all = true;
    return 0;
}

static struct cursor exception_table(const struct edit *e)
{
    const uint8_t *start = e->code + e->code_len;
    return cursor_of(start, (size_t)(e->rewrite->class->bytes + e->method->code_end - start));
}

uint32_t edit_own_handler_end(const struct edit *e, uint32_t pc)
{
    struct cursor in = exception_table(e);
    uint32_t end = 0;
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        uint32_t from = cursor_be16(&in), to = cursor_be16(&in), handler = cursor_be16(&in);
        cursor_skip(&in, 2);
        if (handler == pc && pc >= from && pc < to)
            end = MAX(end, to);
    }
    return end;
}

bool edit_is_guarded(const struct edit *e, uint32_t pc)
{
    struct cursor in = exception_table(e);
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        uint32_t from = cursor_be16(&in), to = cursor_be16(&in);
        cursor_skip(&in, 2);
        if (cursor_be16(&in) == 0 && pc >= from && pc < to)
            return true;
    }
    return false;
}

bool edit_guard_early(const struct edit *e)
{
    if (!e->p->catch_all)
        return false;
    for (uint32_t pc = 0; pc < e->super_pc; pc += e->p->length.data[pc]) {
        uint8_t op = e->code[pc] == OP_WIDE ? e->code[pc + 1] : e->code[pc];
        if (!(op_info[op] & OP_CANNOT_THROW))
            return true;
    }
    return false;
}

static int write_method(struct edit *e, struct buf *out)
{
    struct edit_private *p = e->p;
    const struct class_file *c = e->rewrite->class;
    if (p->catch_all && e->constructor && !e->super_end &&
        !str_is(class_name_at(c, c->this_class), "java/lang/Object"))
        return -ENOTSUP;
    int r = edit_place(e);
    if (r < 0)
        return r;
    if (p->total > MAX_CODE)
        return -E2BIG;
    if (p->total > e->rewrite->huge && e->code_len <= e->rewrite->huge)
        return -EFBIG;
    /* A handler starts with only the exception on its stack. */
    unsigned stack = MAX(e->max_stack + p->stack, p->catch_all ? 1 + p->stack : 0);
    unsigned locals = e->max_locals + p->local_slots;
    if (stack > UINT16_MAX || locals > UINT16_MAX)
        return -E2BIG;
    buf_be16(out, (uint16_t)stack);
    buf_be16(out, (uint16_t)locals);
    buf_be32(out, p->total);
    if ((r = edit_write_code(e, out)) < 0)
        return r;
    return edit_write_tables(e, out);
}

uint32_t edit_guards(const struct edit *e, uint32_t *ret_length)
{
    *ret_length = e->p->total;
    return e->p->catch_to[0];
}

int edit_commit(struct edit *e)
{
    struct rewrite *w = e->rewrite;
    uint32_t at = (uint32_t)w->codes.len;
    int r = write_method(e, &w->codes);
    if (r == 0)
        r = buf_error(&w->codes);
    if (r < 0) {
        w->codes.len = at;
        return r;
    }
    w->methods.data[e->method - w->class->methods.data] =
        (struct rewritten){at, (uint32_t)w->codes.len - at};
    w->changed = true;
    return 0;
}
