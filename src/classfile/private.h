/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of the rewriter only.
 * Its functions begin with edit_ or rewrite_.
 */
#pragma once

#include "base/cursor.h"
#include "classfile/rewrite.h"

#define MAX_NEW_LOCALS 16
#define MAX_CODE       65535

struct insertion {
    uint32_t pc, where; /* where: the rank at one pc, in the order ENTRY, BEFORE, REPLACE, AFTER */
    uint32_t at, len;   /* the code, in `inserted` */
    uint32_t order;
};

/* A redirected jump: inserted code, if any, then a goto to the original target. */
struct detour {
    uint32_t pc, edge, target; /* in the original code */
    uint32_t at, len;          /* the code, in `inserted` */
    /*
     * The detour lies after this instruction, which never continues with the next one; code_len
     * means after all code.
     */
    uint32_t island;
    uint32_t to; /* its new pc */
};

struct vtype {
    uint8_t tag;
    uint32_t arg;
};

struct frame {
    uint32_t at, old;                        /* the new pc, and the old one or UINT32_MAX */
    uint32_t locals, nlocals, stack, nstack; /* ranges in `types` */
};

struct edit_private {
    VEC(uint16_t) length; /* by pc: the length of the instruction there, or 0 where none starts */
    VEC(uint8_t) wide;    /* by pc, when `large`: goto or jsr has its 32-bit form */
    /* By pc: where jumps to the instruction now go, and where the instruction itself now lies. */
    VEC(uint32_t) label, moved;
    struct buf inserted;
    VEC(struct insertion) inserts;
    VEC(struct detour) detours;
    VEC(struct vtype) types;
    VEC(struct frame) frames;
    char locals[MAX_NEW_LOCALS];
    uint16_t local_index[MAX_NEW_LOCALS];
    unsigned local_count, local_slots;
    unsigned stack; /* the most stack slots that inserted code needs in addition */
    uint32_t entry_len;
    bool has_branches, large, islands;
    bool catch_all;
    uint32_t catch_at, catch_len; /* the handler's code, in `inserted` */
    /* new pcs of the handler's two copies: the regular one, and the one for code before super() */
    uint32_t catch_to[2];
    uint32_t total; /* length of the new code */
};

void edit_free(struct edit *e);
/*
 * Returns the index of the CONSTANT_Class with a name of len bytes, or an error of rewrite_class.
 */
int rewrite_class_named(struct rewrite *w, const char *name, size_t len) must_check;

/* Returns the target of the branch at pc, which edit_begin has checked to lie within the code. */
uint32_t edit_branch_target(const struct edit *e, uint32_t pc);

/*
 * Returns where the operands of the switch at pc begin: default, low and high of a tableswitch;
 * default and count of a lookupswitch.
 */
static inline uint32_t edit_switch_body(uint32_t pc)
{
    return (pc & ~3u) + 4;
}

static inline uint32_t edit_be32(const struct edit *e, uint32_t at)
{
    return (uint32_t)e->code[at] << 24 | (uint32_t)e->code[at + 1] << 16 |
           (uint32_t)e->code[at + 2] << 8 | e->code[at + 3];
}

/* Returns the target of an edge of the switch at pc; edge 0 is the default. */
uint32_t edit_switch_target(const struct edit *e, uint32_t pc, unsigned edge);

/* Returns the new pc of an old one. A pc within an instruction counts as its start. */
static inline uint32_t edit_label_of(const struct edit *e, uint32_t pc)
{
    while (pc && pc < e->code_len && !e->p->length.data[pc])
        pc--;
    return e->p->label.data[pc];
}

/* Returns whether a constructor's code before super() needs a copy of the handler of its own. */
bool edit_guard_early(const struct edit *e);

/*
 * In layout.c. edit_place computes all positions: label, moved, total, and those of detours and
 * handlers. edit_write_code then appends the code. They return 0 or one of the errors that
 * rewrite.h lists.
 */
int edit_place(struct edit *e) must_check;
int edit_write_code(struct edit *e, struct buf *out) must_check;
/*
 * In frames.c: appends the whole StackMapTable attribute if one is needed, and stores whether it
 * did in *ret_written. `table` has the contents of the old attribute, if has_table is true.
 */
int edit_write_frames(struct edit *e, struct cursor table, bool has_table, struct buf *out,
                      bool *ret_written) must_check;
/* In tables.c: appends the exception table and the attributes of Code. */
int edit_write_tables(struct edit *e, struct buf *out) must_check;
