/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a class file, edited in every way at once. The first byte chooses the ways. If the
 * rewriter accepts the bytes, it must write a class file that it can read again.
 */
#include "classfile/rewrite.h"

#include <stdlib.h>

static struct class_file class, again;
static struct rewrite w;
static struct buf code, out;
static struct edit *e;

static void at_handler(void *data, uint32_t pc)
{
    if (edit_insert(e, EDIT_BEFORE, pc, 0, &code, 1) == -EBADMSG)
        abort();
}

static void at_line(void *data, uint32_t pc, unsigned line)
{
    at_handler(data, pc);
    (void)edit_line(e, pc);
}

static void edit(unsigned ways)
{
    int local = edit_local(e, "IJFDA"[ways % 5]), r = 0;
    buf_clear(&code);
    for (unsigned i = ways & 8 ? 33000 : 1; i; i--)
        code_op(&code, OP_NOP);
    r |= edit_insert(e, EDIT_ENTRY, 0, 0, &code, (unsigned)local & 3);
    if (ways & 16)
        edit_handlers(e, at_handler, NULL);
    if (ways & 32)
        edit_lines(e, at_line, NULL);
    buf_clear(&code);
    code_op(&code, OP_NOP);
    for (struct insn i = {0}; edit_next(e, &i);) {
        if ((ways & 64) && !(op_info[i.op] & OP_NO_FALL))
            r |= edit_insert(e, EDIT_AFTER, i.pc, 0, &code, 0);
        unsigned edges = edit_edges(e, i.pc);
        for (unsigned k = 0; k < edges && k < 3 && (ways & 128); k++)
            r |= edit_insert(e, EDIT_EDGE, i.pc, k, &code, 0);
        if ((ways & 4) && i.op == OP_NEW)
            r |= edit_insert(e, EDIT_REPLACE, i.pc, 0, &code, 0);
    }
    code_op(&code, OP_ATHROW);
    if (ways & 1)
        r |= edit_catch_all(e, &code, 1);
    (void)r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || class_parse(&class, data + 1, size - 1) < 0 || rewrite_begin(&w, &class) < 0)
        return 0;
    code.limit = out.limit = 64u << 20;
    for (size_t m = 0; m < class.methods.len; m++) {
        if (data[0] & 2)
            w.huge = 1u << 20;
        if (edit_begin(&w, m, &e) < 0)
            continue;
        edit(data[0]);
        int r = edit_commit(e);
        (void)r;
    }
    buf_clear(&out);
    if (rewrite_finish(&w, &out) < 0 || class_parse(&again, out.data, out.len) < 0 ||
        again.methods.len != class.methods.len)
        abort();
    for (size_t m = 0; m < again.methods.len; m++)
        if (w.methods.data[m].len) {
            /* The operands may be nonsense, but the instructions and tables must be valid. */
            static struct rewrite w2;
            struct edit *e2;
            if (rewrite_begin(&w2, &again) < 0 || edit_begin(&w2, m, &e2) < 0)
                abort();
            w2.huge = 1u << 20;
            if (edit_commit(e2) < 0)
                abort();
        }
    return 0;
}
