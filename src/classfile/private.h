/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the rewriter; nobody else's. */
#pragma once

#include "base/cursor.h"
#include "classfile/rewrite.h"

#define MAX_NEW_LOCALS 16
#define MAX_CODE       65535

struct insertion {
    uint32_t pc, where; /* where as ordered at one pc: ENTRY, BEFORE, REPLACE, AFTER */
    uint32_t at, len;   /* in inserted */
    uint32_t order;
};

/* A jump sent elsewhere: inserted code, if any, then a goto to the original target. */
struct detour {
    uint32_t pc, edge, target; /* of the original code */
    uint32_t at, len;          /* in inserted */
    uint32_t island;           /* lies behind this instruction, which never goes on; code_len: behind all */
    uint32_t to;               /* its new pc */
};

struct vtype {
    uint8_t tag;
    uint32_t arg;
};

struct frame {
    uint32_t at, old;                        /* new pc; old pc or UINT32_MAX */
    uint32_t locals, nlocals, stack, nstack; /* runs in types */
};

struct edit_private {
    VEC(uint16_t) length;       /* by pc: of the instruction there, 0 where none starts */
    VEC(uint8_t) wide;          /* by pc, when large: goto or jsr has its 32-bit form */
    VEC(uint32_t) label, moved; /* by pc: where jumps to it go now; where the instruction itself lies now */
    struct buf inserted;
    VEC(struct insertion) inserts;
    VEC(struct detour) detours;
    VEC(struct vtype) types;
    VEC(struct frame) frames;
    char locals[MAX_NEW_LOCALS];
    uint16_t local_index[MAX_NEW_LOCALS];
    unsigned local_count, local_slots;
    unsigned stack; /* most that inserted code needs above what is there */
    uint32_t entry_len;
    bool has_branches, large, islands;
    bool catch_all;
    uint32_t catch_at, catch_len; /* in inserted */
    uint32_t catch_to[2];         /* new pcs of the handler's copies: regular, and before super() */
    uint32_t total;               /* length of the new code */
};

void edit_free(struct edit *e);
int rewrite_class_named(struct rewrite *w, const char *name, size_t len) must_check;

/* The operands of a branch or switch. Offsets lie within the code: edit_begin checked. */
uint32_t branch_target(const struct edit *e, uint32_t pc);

static inline uint32_t switch_body(uint32_t pc)
{
    return (pc & ~3u) + 4; /* of default, low and high (table) or default and count (lookup) */
}

static inline uint32_t code_be32(const struct edit *e, uint32_t at)
{
    return (uint32_t)e->code[at] << 24 | (uint32_t)e->code[at + 1] << 16 | (uint32_t)e->code[at + 2] << 8 | e->code[at + 3];
}

/* Target of an edge of the switch at pc: 0 is the default. */
uint32_t switch_target(const struct edit *e, uint32_t pc, unsigned edge);

/* The new pc of an old one; within an instruction: of that instruction. */
static inline uint32_t label_of(const struct edit *e, uint32_t pc)
{
    while (pc && pc < e->code_len && !e->p->length.data[pc])
        pc--;
    return e->p->label.data[pc];
}

/* True for a constructor's code before super() where the handler cannot be the regular one and is needed. */
bool edit_guard_early(const struct edit *e);

/* layout.c: places everything (label, moved, total, detours' and handlers' pcs); then writes the code. */
int edit_place(struct edit *e) must_check;
int edit_write_code(struct edit *e, struct buf *out) must_check;
/* frames.c: appends the whole StackMapTable attribute, when there must be one. table is the old one's contents or empty. */
int edit_write_frames(struct edit *e, struct cursor table, bool has_table, struct buf *out, bool *ret_written) must_check;
/* tables.c: appends the exception table and the attributes of Code. */
int edit_write_tables(struct edit *e, struct buf *out) must_check;
