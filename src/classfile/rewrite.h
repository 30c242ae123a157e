/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewriting of class files: code is inserted into methods, everything else is copied as it was.
 *
 *     rewrite_begin(&w, &class);                     // a parsed class
 *     struct edit *e;
 *     if (edit_begin(&w, method, &e) == 0) {         // decodes one method
 *         int local = edit_local(e, 'J');
 *         buf_clear(&s); code_invokestatic(&s, enter); code_store(&s, 'J', local);
 *         edit_insert(e, EDIT_ENTRY, 0, 0, &s, 2);
 *         for (struct insn i = {0}; edit_next(e, &i);)
 *             if (op_info[i.op] & OP_IS_RETURN) { ... edit_insert(e, EDIT_BEFORE, i.pc, 0, &s, 2); }
 *         r = edit_commit(e);                        // lays it out; on failure the method stays as it was
 *     }
 *     rewrite_finish(&w, &out);
 *
 * Invariants:
 * - Inserted code is straight-line: no branch, switch, return or throw (but the athrow that ends a handler), and leaves the
 *   operand stack as it found it. So no stack map frame is ever computed and no class hierarchy asked: frames are moved,
 *   extended by the new locals, and copied to where a jump is sent through a detour.
 * - The constant pool only grows at its end: no index changes.
 * - New locals lie behind the method's own and must be stored by EDIT_ENTRY code: every frame claims them.
 * - Several clients may edit one method between begin and commit; code inserted at the same place runs in order of insertion.
 * - Errors, all of which leave the method as it was: -EBADMSG malformed; -E2BIG beyond 64 KiB of code; -EFBIG beyond the size
 *   the JIT compiles (`huge`); -ENOSPC constant pool full; -ENOTSUP a doubt (see edit_commit); -ENOMEM.
 */
#pragma once

#include "base/buf.h"
#include "classfile/classfile.h"
#include "classfile/opcodes.h"

/* HotSpot compiles no method with more bytecode (-XX:HugeMethodLimit). */
#define REWRITE_HUGE 8000

enum edit_where {
    EDIT_ENTRY,   /* once, before the first instruction; in a constructor before super() */
    EDIT_BEFORE,  /* before the instruction at pc, on every way to it */
    EDIT_AFTER,   /* behind the instruction at pc when it completes and goes on to the next one; jumps there skip it; behind
                     monitorenter covered by the handlers whose range begins there */
    EDIT_EDGE,    /* when the branch or switch at pc jumps; edge 0 is a branch's target or a switch's default, 1.. its cases */
    EDIT_REPLACE, /* instead of the instruction at pc, which must be no branch, switch, return or throw */
};

struct edit;

/* A new Code attribute, in rewrite.codes. */
struct rewritten {
    uint32_t at, len;
};

/* A class being rewritten. Zeroed is valid; may be used for many classes, one after the other, and keeps its memory. */
struct rewrite {
    const struct class_file *class;
    uint32_t huge; /* a method at most this long may not grow beyond it; REWRITE_HUGE unless set after rewrite_begin */
    /* private */
    struct buf pool; /* added constants */
    VEC(uint32_t) added;
    VEC(uint32_t) index;           /* open addressing over the bytes of constants: constant + 1 */
    struct buf codes;              /* new Code attributes */
    VEC(struct rewritten) methods; /* per method; len 0 is as it was */
    bool changed;
    struct edit *edit;
};

/* Starts over with a class, which must outlive the rewriting. */
int rewrite_begin(struct rewrite *w, const struct class_file *c) must_check;
void rewrite_release(struct rewrite *w);

/* True when a method was committed. */
static inline bool rewrite_changed(const struct rewrite *w)
{
    return w->changed;
}

/* Appends the new class file to out. */
int rewrite_finish(struct rewrite *w, struct buf *out) must_check;

/* Constants, found or added: the index, or -ENOSPC / -ENOMEM / -E2BIG (a string beyond 65,535 bytes). */
int rewrite_utf8(struct rewrite *w, const char *s, size_t len) must_check;
int rewrite_class(struct rewrite *w, const char *name) must_check; /* java/lang/String, [I */
int rewrite_string(struct rewrite *w, const char *s, size_t len) must_check;
int rewrite_integer(struct rewrite *w, int32_t v) must_check;
int rewrite_long(struct rewrite *w, int64_t v) must_check;
int rewrite_methodref(struct rewrite *w, const char *owner, const char *name, const char *descriptor) must_check;
int rewrite_fieldref(struct rewrite *w, const char *owner, const char *name, const char *descriptor) must_check;

/* Code for insertion, appended to s. Types are I, J, F, D, A. */
void code_op(struct buf *s, enum opcode op);
void code_ref(struct buf *s, enum opcode op,
              int constant); /* opcode and 16-bit index: invokestatic, getstatic, checkcast ... */
void code_load(struct buf *s, char type, unsigned local);
void code_store(struct buf *s, char type, unsigned local);
/* Pushes an int by the shortest instruction; may add a constant. 0, or an error of rewrite_integer. */
int code_int(struct rewrite *w, struct buf *s, int32_t v) must_check;
int code_long(struct rewrite *w, struct buf *s, int64_t v) must_check;

static inline void code_invokestatic(struct buf *s, int methodref)
{
    code_ref(s, OP_INVOKESTATIC, methodref);
}

/* An instruction of the original code. */
struct insn {
    uint32_t pc, len;
    uint8_t op;        /* of the instruction behind a `wide` */
    const uint8_t *at; /* its first byte; NULL before the first edit_next */
};

/* The 16-bit operand of a field, call, new, cast ... instruction. */
static inline uint16_t insn_constant(const struct insn *i)
{
    return (uint16_t)(i->at[1] << 8 | i->at[2]);
}

/* A method being edited; the public part is for reading. */
struct edit {
    struct rewrite *rewrite;
    const struct class_method *method;
    const uint8_t *code;
    uint32_t code_len;
    uint16_t max_stack, max_locals; /* of the original */
    bool constructor;
    /* In a constructor, the call of this() or super(): its pc and the pc behind it. Both 0 elsewhere and in Object. */
    uint32_t super_pc, super_end;
    struct edit_private *p;
};

/*
 * Decodes a method of the class (an index into class->methods). *ret belongs to the rewrite and lives until the next
 * edit_begin. -ENODATA when the method has no code.
 */
int edit_begin(struct rewrite *w, size_t method, struct edit **ret) must_check;
/* The next instruction: start with a zeroed one. */
bool edit_next(const struct edit *e, struct insn *i);
/* The line of an instruction, 0 when the method has no line numbers. Linear; */
unsigned edit_line(const struct edit *e, uint32_t pc);
/* Calls f for each start of a line in the table (each pc once), in order of the table. */
void edit_lines(const struct edit *e, void (*f)(void *data, uint32_t pc, unsigned line), void *data);
/* Number of edges of the branch or switch at pc: 1 for a branch, 1 + cases for a switch, 0 else. jsr has none. */
unsigned edit_edges(const struct edit *e, uint32_t pc);
/* Where an edge leads, in the original code. */
uint32_t edit_edge_target(const struct edit *e, uint32_t pc, unsigned edge);
/* Handlers of the original code, each start once: calls f with its pc. The thrown object lies on the stack there. */
void edit_handlers(const struct edit *e, void (*f)(void *data, uint32_t pc), void *data);

/*
 * Where the range ends that covers the handler at pc with that handler itself, as javac's of `finally` and `synchronized` do;
 * 0: there is none. HotSpot's C1 compiles no method in which an instruction that may throw lies in the handler's first block
 * there.
 */
uint32_t edit_own_handler_end(const struct edit *e, uint32_t pc);

/* True when a handler of all exceptions covers the instruction at pc. */
bool edit_is_guarded(const struct edit *e, uint32_t pc);

/* A new local of type I, J, F, D or A (java/lang/Object): its index, or -ENOSPC. */
int edit_local(struct edit *e, char type) must_check;
/*
 * Inserts code, copied; stack is how many slots it needs above what is there. edge is for EDIT_EDGE. -EINVAL where the
 * instruction does not allow the place (AFTER one that never goes on, EDGE of no branch); an error of the buf is answered.
 */
int edit_insert(struct edit *e, enum edit_where where, uint32_t pc, unsigned edge, const struct buf *code,
                unsigned stack) must_check;
/*
 * Code that runs when an exception leaves the method: called with it on the stack and the new locals alone, it must end in
 * athrow. Covers everything but this() or super() itself, during which the verifier allows no handler: an exception
 * thrown inside that call is seen by the caller's handler alone. Lies behind the method's own handlers. Code of a second client
 * runs behind that of the first.
 */
int edit_catch_all(struct edit *e, const struct buf *code, unsigned stack) must_check;
/*
 * Lays the method out: jumps and switches, exception, line, local and type annotation tables, stack maps. -ENOTSUP when a
 * frame that a detour needs is not there, when no place is in reach of a conditional jump that became too long, or when a
 * constructor initialises `this` in a way that the handler cannot follow.
 */
int edit_commit(struct edit *e) must_check;
