/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rewrites class files: inserts code into methods and copies everything else unchanged.
 *
 *     rewrite_begin(&w, &class);                     // a parsed class
 *     struct edit *e;
 *     if (edit_begin(&w, method, &e) == 0) {         // decodes one method
 *         int local = edit_local(e, 'J');
 *         buf_clear(&s); code_invokestatic(&s, enter); code_store(&s, 'J', local);
 *         edit_insert(e, EDIT_ENTRY, 0, 0, &s, 2);
 *         for (struct insn i = {0}; edit_next(e, &i);)
 *             if (op_info[i.op] & OP_IS_RETURN) {
 *                 ... edit_insert(e, EDIT_BEFORE, i.pc, 0, &s, 2);
 *             }
 *         r = edit_commit(e);                        // on failure the method stays unchanged
 *     }
 *     rewrite_finish(&w, &out);
 *
 * Invariants:
 * - Inserted code is straight-line and leaves the operand stack as it was: it has no branch,
 * switch, return or throw, except for the athrow that ends a handler. Therefore no stack map frame
 * has to be computed and no class hierarchy is needed: frames are moved, extended by the new
 * locals, and copied to the detours of redirected jumps.
 * - The constant pool only grows at its end, so that no index changes.
 * - New locals follow the method's own. EDIT_ENTRY code must store them, because every frame
 *   declares them.
 * - Several clients may edit one method between begin and commit. Code inserted at the same place
 *   runs in the order of insertion.
 * - Every error leaves the method unchanged: -EBADMSG (malformed), -E2BIG (more than 64 KiB of
 *   code), -EFBIG (larger than what the JIT compiles, see `huge`), -ENOSPC (constant pool full),
 *   -ENOTSUP (not safely possible, see edit_commit), -ENOMEM.
 *
 * Its functions begin with rewrite_, edit_ or code_.
 */
#pragma once

#include "base/buf.h"
#include "classfile/classfile.h"
#include "classfile/opcodes.h"

/* HotSpot does not compile methods with more bytecode than this (-XX:HugeMethodLimit). */
#define REWRITE_HUGE 8000

enum edit_where {
    EDIT_ENTRY,  /* once, before the first instruction; in a constructor before super() */
    EDIT_BEFORE, /* before the instruction at pc, however it is reached */
    /*
     * after the instruction at pc, when it completes and the next one follows, but not for jumps to
     * that one; after a monitorenter, handlers whose range begins there cover the code
     */
    EDIT_AFTER,
    /*
     * When the branch or switch at pc jumps. Edge 0 is a branch's target or a switch's default,
     * edges from 1 on are its cases.
     */
    EDIT_EDGE,
    /* In place of the instruction at pc, which must not be a branch, switch, return or throw. */
    EDIT_REPLACE,
};

struct edit;

/* A new Code attribute, stored in rewrite.codes. */
struct rewritten {
    uint32_t at, len;
};

/*
 * A class that is being rewritten. A zeroed struct is valid. It may be used for several classes,
 * one after the other, and reuses its memory.
 */
struct rewrite {
    const struct class_file *class;
    /*
     * A method at most this long must not grow beyond it. It is REWRITE_HUGE unless set after
     * rewrite_begin.
     */
    uint32_t huge;
    /* The members below are private. */
    struct buf pool; /* added constants */
    VEC(uint32_t) added;
    VEC(uint32_t) index; /* open addressing over the bytes of constants: 1 + the constant's index */
    struct buf codes;    /* new Code attributes */
    VEC(struct rewritten) methods; /* by method; len is 0 when the method is unchanged */
    bool changed;
    struct edit *edit;
};

/* Starts over with a class, which must outlive the rewriting. Returns 0 or -ENOMEM. */
int rewrite_begin(struct rewrite *w, const struct class_file *c) must_check;
void rewrite_release(struct rewrite *w);

/* Returns whether a method was committed. */
static inline bool rewrite_changed(const struct rewrite *w)
{
    return w->changed;
}

/* Appends the new class file to out. Returns 0 or the error of out. */
int rewrite_finish(struct rewrite *w, struct buf *out) must_check;

/*
 * Return the index of a constant, adding it if necessary, or -ENOSPC, -ENOMEM, or -E2BIG (a string
 * longer than 65,535 bytes).
 */
int rewrite_utf8(struct rewrite *w, const char *s, size_t len) must_check;
/* name: such as java/lang/String or [I */
int rewrite_class(struct rewrite *w, const char *name) must_check;
int rewrite_string(struct rewrite *w, const char *s, size_t len) must_check;
int rewrite_methodref(struct rewrite *w, const char *owner, const char *name,
                      const char *descriptor) must_check;
int rewrite_interface_methodref(struct rewrite *w, const char *owner, const char *name,
                                const char *descriptor) must_check;
int rewrite_fieldref(struct rewrite *w, const char *owner, const char *name,
                     const char *descriptor) must_check;

/* Append code for insertion to s. Types are I, J, F, D and A. */
void code_op(struct buf *s, enum opcode op);
void code_ref(struct buf *s, enum opcode op,
              /* an opcode and a 16-bit index: invokestatic, getstatic, checkcast ... */
              int constant);
void code_load(struct buf *s, char type, unsigned local);
void code_store(struct buf *s, char type, unsigned local);
/*
 * Append the shortest instruction that pushes an int or a long, which may add a constant. Return 0,
 * or -ENOMEM or an error of the constant pool.
 */
int code_int(struct rewrite *w, struct buf *s, int32_t v) must_check;
int code_long(struct rewrite *w, struct buf *s, int64_t v) must_check;

static inline void code_invokestatic(struct buf *s, int methodref)
{
    code_ref(s, OP_INVOKESTATIC, methodref);
}

/*
 * Appends the call of a static method, which may add a constant. Returns 0 or an error of
 * rewrite_methodref.
 */
int code_call_static(struct rewrite *w, struct buf *s, const char *owner, const char *name,
                     const char *descriptor) must_check;

/* An instruction of the original code. */
struct insn {
    uint32_t pc, len;
    uint8_t op;        /* for `wide`, the opcode that follows it */
    const uint8_t *at; /* its first byte; NULL before the first edit_next */
};

/* Returns the 16-bit operand of a field, call, new, cast ... instruction. */
static inline uint16_t insn_constant(const struct insn *i)
{
    return (uint16_t)(i->at[1] << 8 | i->at[2]);
}

/* A method that is being edited. The public members are read-only. */
struct edit {
    struct rewrite *rewrite;
    const struct class_method *method;
    const uint8_t *code;
    uint32_t code_len;
    uint16_t max_stack, max_locals; /* those of the original */
    bool constructor;
    /*
     * The pc of the call of this() or super() in a constructor, and the pc after it. Both are 0 in
     * other methods and in Object.
     */
    uint32_t super_pc, super_end;
    struct edit_private *p;
};

/*
 * Decodes a method of the class (an index into class->methods). *ret belongs to the rewrite and is
 * valid until the next edit_begin. Returns 0, -ENODATA when the method has no code, -EINVAL when
 * the class has no such method, -EBADMSG when the code is malformed, or -ENOMEM.
 */
int edit_begin(struct rewrite *w, size_t method, struct edit **ret) must_check;
/* Advances to the next instruction; start with a zeroed struct. Returns false after the last. */
bool edit_next(const struct edit *e, struct insn *i);
/*
 * Returns the line of an instruction, or 0 when the method has no line numbers. Takes time linear
 * in the table.
 */
unsigned edit_line(const struct edit *e, uint32_t pc);
/*
 * Calls f for each entry of the first LineNumberTable whose pc is the start of an instruction, in
 * the table's order. A line with several starts has several entries.
 */
void edit_lines(const struct edit *e, void (*f)(void *data, uint32_t pc, unsigned line),
                void *data);
/*
 * Returns the number of edges of the branch or switch at pc: 1 for a branch, 1 + cases for a
 * switch, else 0. jsr has none.
 */
unsigned edit_edges(const struct edit *e, uint32_t pc);
/* Returns where an edge leads in the original code. */
uint32_t edit_edge_target(const struct edit *e, uint32_t pc, unsigned edge);
/*
 * Calls f with the pc of each handler of the original code, once even if several ranges share it.
 * The thrown object is on the stack there.
 */
void edit_handlers(const struct edit *e, void (*f)(void *data, uint32_t pc), void *data);

/*
 * Returns where the range ends that covers the handler at pc with that same handler, as javac
 * generates it for `finally` and `synchronized`, or 0 when there is no such range. HotSpot's C1
 * does not compile a method when the first block of such a handler has, within that range, an
 * instruction that may throw.
 */
uint32_t edit_own_handler_end(const struct edit *e, uint32_t pc);

/* Returns whether a catch-all handler covers the instruction at pc. */
bool edit_is_guarded(const struct edit *e, uint32_t pc);

/*
 * Adds a new local of type I, J, F, D or A (java/lang/Object). Returns its index, -EINVAL for
 * another type, or -ENOSPC when there are too many locals.
 */
int edit_local(struct edit *e, char type) must_check;
/*
 * Inserts a copy of the code. `stack` is the number of slots that the code needs in addition;
 * `edge` is for EDIT_EDGE. Returns 0, an error of the buf, or -EINVAL when the instruction does not
 * have such a place: AFTER one that never continues, an EDGE of one that is not a branch, or
 * REPLACE for a branch or one that never continues.
 */
int edit_insert(struct edit *e, enum edit_where where, uint32_t pc, unsigned edge,
                const struct buf *code, unsigned stack) must_check;
/*
 * Sets code that runs when an exception leaves the method. The code starts with the exception on
 * the stack and only the new locals, and must end in athrow. It covers everything except the call
 * of this() or super() itself, during which the verifier allows no handler, so that only the
 * caller's handler sees an exception thrown inside that call. The method's own handlers take
 * precedence. The code of a second client runs after that of the first. `stack` is as in
 * edit_insert. Returns 0, -EINVAL when the code does not end in athrow, or an error of the buf.
 */
int edit_catch_all(struct edit *e, const struct buf *code, unsigned stack) must_check;
/*
 * Lays out the method: jumps and switches, the tables of exceptions, lines, locals and type
 * annotations, and stack maps. Returns 0 or one of the errors above: -ENOTSUP when the frame that a
 * detour needs does not exist, when no place is within reach of a conditional jump that became too
 * long, or when a constructor initializes `this` in a way that the handler cannot follow.
 */
int edit_commit(struct edit *e) must_check;
/*
 * After edit_commit: returns where the code of edit_catch_all begins in the new code, after
 * everything else, and stores the new code's length.
 */
uint32_t edit_guards(const struct edit *e, uint32_t *ret_length);
