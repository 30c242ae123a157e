/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites a stream of class files with one kind of probe, for the verifiers of
 * tests/integration/classfile/test_classfile.py:
 *
 *     rewrite_pack KIND < PACK > PACK
 *     rewrite_pack -bench KIND ROUNDS < PACK
 *     rewrite_pack -names < PACK      prints the methods with code, one on each line, in the order
 *                                     of their numbers
 *
 * A pack is a sequence of class files, each preceded by its length (32 bits, big-endian). stderr
 * gets one line of counts: classes, methods, and those left unchanged by reason. The probes call
 * static methods of JvmscopeTestProbe (tests/java/Probed), which need not exist for the verifiers,
 * with the method's number.
 */
#include "base/clock.h"
#include "classfile/rewrite.h"

#include <stdio.h>
#include <stdlib.h>

#define PROBE "JvmscopeTestProbe"

struct state {
    struct class_file class;
    struct rewrite w;
    struct buf s;
    struct edit *e;
    int hit, enter, leave, object; /* methodrefs of the current class, 0 until needed */
    int number;                    /* number of the method in the pack, from 0 */
    int r;
};

static int methodref(struct state *t, int *ref, const char *name, const char *descriptor)
{
    if (!*ref)
        *ref = rewrite_methodref(&t->w, PROBE, name, descriptor);
    if (*ref < 0)
        t->r = *ref;
    return *ref;
}

static void failed(struct state *t, int r)
{
    if (r < 0 && t->r == 0)
        t->r = r;
}

/* Inserts a call of hit(id). */
static void put_hit(struct state *t, enum edit_where where, uint32_t pc, unsigned edge)
{
    buf_clear(&t->s);
    int hit = methodref(t, &t->hit, "hit", "(I)V");
    if (hit < 0)
        return;
    failed(t, code_int(&t->w, &t->s, t->number));
    code_invokestatic(&t->s, hit);
    failed(t, edit_insert(t->e, where, pc, edge, &t->s, 1));
}

static void put_hit_before(void *data, uint32_t pc)
{
    put_hit(data, EDIT_BEFORE, pc, 0);
}

static void put_line(void *data, uint32_t pc, unsigned line)
{
    put_hit(data, EDIT_BEFORE, pc, 0);
}

static void none(struct state *t)
{
}

/*
 * Adds a long local that is stored at entry and passed to a probe at every return and in the
 * handler.
 */
static void times(struct state *t)
{
    int enter = methodref(t, &t->enter, "enter", "(I)J"),
        leave = methodref(t, &t->leave, "leave", "(J)V");
    int local = edit_local(t->e, 'J');
    failed(t, local);
    if (t->r < 0)
        return;
    buf_clear(&t->s);
    failed(t, code_int(&t->w, &t->s, t->number));
    code_invokestatic(&t->s, enter);
    code_store(&t->s, 'J', (unsigned)local);
    failed(t, edit_insert(t->e, EDIT_ENTRY, 0, 0, &t->s, 2));
    buf_clear(&t->s);
    code_load(&t->s, 'J', (unsigned)local);
    code_invokestatic(&t->s, leave);
    for (struct insn i = {0}; edit_next(t->e, &i);)
        if (op_info[i.op] & OP_IS_RETURN)
            failed(t, edit_insert(t->e, EDIT_BEFORE, i.pc, 0, &t->s, 2));
    code_op(&t->s, OP_ATHROW);
    failed(t, edit_catch_all(t->e, &t->s, 2));
}

static void resume(struct state *t)
{
    times(t);
    edit_handlers(t->e, put_hit_before, t);
}

static void lines(struct state *t)
{
    edit_lines(t->e, put_line, t);
}

static void branches(struct state *t)
{
    for (struct insn i = {0}; edit_next(t->e, &i);) {
        unsigned edges = edit_edges(t->e, i.pc);
        for (unsigned k = 0; k < edges; k++) {
            put_hit(t, EDIT_EDGE, i.pc, k);
            if (k == 1)
                put_hit(t, EDIT_EDGE, i.pc, k);
        }
        if (edges == 1 && !(op_info[i.op] & OP_NO_FALL))
            put_hit(t, EDIT_AFTER, i.pc, 0);
    }
}

static void calls(struct state *t)
{
    for (struct insn i = {0}; edit_next(t->e, &i);)
        if (i.op >= OP_INVOKEVIRTUAL && i.op <= OP_INVOKEDYNAMIC) {
            put_hit(t, EDIT_BEFORE, i.pc, 0);
            put_hit(t, EDIT_AFTER, i.pc, 0);
        }
}

/* Inserts a call of object(o, id) with the object on the stack. */
static void put_object(struct state *t, int object, enum edit_where where, uint32_t pc)
{
    buf_clear(&t->s);
    code_op(&t->s, OP_DUP);
    failed(t, code_int(&t->w, &t->s, t->number));
    code_invokestatic(&t->s, object);
    failed(t, edit_insert(t->e, where, pc, 0, &t->s, 2));
}

static void allocations(struct state *t)
{
    int object = methodref(t, &t->object, "object", "(Ljava/lang/Object;I)V");
    if (object < 0)
        return;
    for (struct insn i = {0}; edit_next(t->e, &i);) {
        if (i.op == OP_NEW)
            put_hit(t, EDIT_AFTER, i.pc, 0);
        if (i.op == OP_NEWARRAY || i.op == OP_ANEWARRAY || i.op == OP_MULTIANEWARRAY)
            put_object(t, object, EDIT_AFTER, i.pc);
    }
}

static void monitors(struct state *t)
{
    int object = methodref(t, &t->object, "object", "(Ljava/lang/Object;I)V");
    if (object < 0)
        return;
    for (struct insn i = {0}; edit_next(t->e, &i);)
        if (i.op == OP_MONITORENTER || i.op == OP_MONITOREXIT) {
            put_object(t, object, EDIT_BEFORE, i.pc);
            put_hit(t, EDIT_AFTER, i.pc, 0);
        }
}

static void instructions(struct state *t)
{
    for (struct insn i = {0}; edit_next(t->e, &i);)
        put_hit(t, EDIT_BEFORE, i.pc, 0);
}

/*
 * Adds locals of every type, stored at entry and before each return, and replaces an instruction.
 */
static void locals(struct state *t)
{
    static const enum opcode zero[] = {OP_ICONST_0, OP_LCONST_0, 0x0b /* fconst_0 */,
                                       0x0e /* dconst_0 */, OP_ACONST_NULL};

    int local[5];
    for (int k = 0; k < 5; k++) {
        failed(t, local[k] = edit_local(t->e, "IJFDA"[k]));
        if (t->r < 0)
            return;
        buf_clear(&t->s);
        code_op(&t->s, zero[k]);
        code_store(&t->s, "IJFDA"[k], (unsigned)local[k]);
        failed(t, edit_insert(t->e, EDIT_ENTRY, 0, 0, &t->s, 2));
    }
    for (struct insn i = {0}; edit_next(t->e, &i);) {
        buf_clear(&t->s);
        code_load(&t->s, 'A', (unsigned)local[4]);
        code_op(&t->s, OP_POP);
        if (op_info[i.op] & OP_IS_RETURN)
            failed(t, edit_insert(t->e, EDIT_BEFORE, i.pc, 0, &t->s, 1));
        buf_clear(&t->s);
        buf_bytes(&t->s, i.at, i.len);
        if (i.op == OP_GETFIELD || i.op == OP_INVOKEVIRTUAL)
            failed(t, edit_insert(t->e, EDIT_REPLACE, i.pc, 0, &t->s, 0));
    }
}

static bool has_branch(const struct edit *e)
{
    for (struct insn i = {0}; edit_next(e, &i);)
        if (edit_edges(e, i.pc))
            return true;
    return false;
}

/* Inserts so much code into every method that jumps over its middle need 32 bits. */
static void wide(struct state *t)
{
    if (!has_branch(t->e))
        return;
    t->w.huge = MAX(t->w.huge, 70000);
    times(t);
    branches(t);
    int local = edit_local(t->e, 'I');
    failed(t, local);
    if (t->r < 0)
        return;
    buf_clear(&t->s);
    code_op(&t->s, OP_ICONST_0);
    code_store(&t->s, 'I', (unsigned)local);
    failed(t, edit_insert(t->e, EDIT_ENTRY, 0, 0, &t->s, 1));
    struct insn middle = {0};
    for (struct insn i = {0}; edit_next(t->e, &i);)
        if (i.pc <= t->e->code_len / 2)
            middle = i;
    buf_clear(&t->s);
    /* Uses long instructions, of which the verifiers have fewer to check. */
    for (int i = 0; i < 5500; i++) {
        code_op(&t->s, OP_WIDE);
        code_op(&t->s, OP_IINC);
        buf_be16(&t->s, (uint16_t)local);
        buf_be16(&t->s, 1);
    }
    failed(t, edit_insert(t->e, EDIT_BEFORE, middle.pc, 0, &t->s, 0));
}

static void all(struct state *t)
{
    resume(t);
    lines(t);
    branches(t);
    calls(t);
    allocations(t);
    monitors(t);
}

static const struct kind {
    const char *name;
    void (*probe)(struct state *t);
} kinds[] = {
    {"none", none},         {"-names", none},
    {"times", times},       {"resume", resume},
    {"lines", lines},       {"branches", branches},
    {"calls", calls},       {"allocations", allocations},
    {"monitors", monitors}, {"instructions", instructions},
    {"locals", locals},     {"wide", wide},
    {"all", all},
};

struct counts {
    unsigned long classes, refused, methods, malformed, too_long, huge, pool, doubt, other;
};

static void count_failure(struct counts *n, int r)
{
    *(r == -EBADMSG   ? &n->malformed
      : r == -E2BIG   ? &n->too_long
      : r == -EFBIG   ? &n->huge
      : r == -ENOSPC  ? &n->pool
      : r == -ENOTSUP ? &n->doubt
                      : &n->other) += 1;
}

static void print_name(const struct class_file *c, const struct class_method *m)
{
    struct str class = class_name_at(c, c->this_class), name = class_utf8(c, m->name),
               d = class_utf8(c, m->descriptor);
    printf("%.*s.%.*s%.*s\n", (int)class.len, class.data, (int)name.len, name.data, (int)d.len,
           d.data);
}

static int rewrite_one(struct state *t, const struct kind *kind, const uint8_t *bytes, size_t len,
                       struct counts *n, struct buf *out)
{
    n->classes++;
    int r = class_parse(&t->class, bytes, len);
    if (r == 0)
        r = rewrite_begin(&t->w, &t->class);
    t->hit = t->enter = t->leave = t->object = 0;
    for (size_t m = 0; r == 0 && m < t->class.methods.len; m++) {
        int k = edit_begin(&t->w, m, &t->e);
        if (k == -ENODATA)
            continue;
        t->number = (int)n->methods++;
        t->r = 0;
        if (kind->name[0] == '-')
            print_name(&t->class, &t->class.methods.data[m]);
        if (k == 0) {
            kind->probe(t);
            k = t->r < 0 ? t->r : edit_commit(t->e);
        }
        if (k < 0)
            count_failure(n, k);
    }
    if (r == 0)
        r = rewrite_finish(&t->w, out);
    if (r < 0)
        n->refused++;
    return r;
}

static int run_pack(struct state *t, const struct kind *kind, const struct buf *in,
                    struct counts *n, FILE *to)
{
    struct buf out = BUF(64u << 20);
    for (size_t at = 0; at + 4 <= in->len;) {
        uint32_t len;
        memcpy(&len, in->data + at, 4);
        len = __builtin_bswap32(len);
        at += 4;
        if (len > in->len - at)
            return 1;
        buf_clear(&out);
        if (rewrite_one(t, kind, in->data + at, len, n, &out) < 0) {
            buf_clear(&out);
            buf_bytes(&out, in->data + at, len);
        }
        if (to) {
            uint32_t be = __builtin_bswap32((uint32_t)out.len);
            fwrite(&be, 4, 1, to);
            fwrite(out.data, out.len, 1, to);
        }
        at += len;
    }
    buf_release(&out);
    return 0;
}

int main(int argc, char **argv)
{
    bool bench = argc == 4 && strcmp(argv[1], "-bench") == 0;
    const char *name = bench ? argv[2] : argc == 2 ? argv[1] : "";
    const struct kind *kind = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            kind = &kinds[i];
    if (!kind) {
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
            printf("%s\n", kinds[i].name);
        return 2;
    }
    struct buf in = BUF(2040u << 20);
    for (uint8_t *p; (p = buf_add(&in, 1u << 20)) != NULL;) {
        size_t got = fread(p, 1, 1u << 20, stdin);
        in.len -= (1u << 20) - got;
        if (got == 0)
            break;
    }
    struct state t = {.s = BUF(1u << 20)};
    struct counts n = {0};
    int r = 0;
    uint64_t best = UINT64_MAX;
    for (int i = bench ? atoi(argv[3]) : 1; i > 0 && r == 0; i--) {
        n = (struct counts){0};
        uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        r = run_pack(&t, kind, &in, &n, bench || name[0] == '-' ? NULL : stdout);
        best = MIN(best, clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
    }
    fprintf(stderr,
            "%s: classes=%lu refused=%lu methods=%lu malformed=%lu too_long=%lu huge=%lu pool=%lu "
            "doubt=%lu other=%lu ms=%.1f\n",
            kind->name, n.classes, n.refused, n.methods, n.malformed, n.too_long, n.huge, n.pool,
            n.doubt, n.other, (double)best / NS_PER_MS);
    rewrite_release(&t.w);
    class_release(&t.class);
    buf_release(&t.s);
    buf_release(&in);
    return r;
}
