/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code for AArch64. A frame of compiled code has the saved x29 and x30 in the two words below
 * the caller's stack pointer, and its body below them.
 */
#include "unwind/arch.h"

#include <ucontext.h>

enum { PROLOGUE_WORDS = 24, EPILOGUE_WORDS = 8, RETURN_WORDS = 4, ADAPTER_WORDS = 128 };

#define STP_FP_LR_SP       UINT32_C(0xa9007bfd) /* stp x29, x30, [sp, #imm7 * 8] */
#define STP_FP_LR_SP_MASK  UINT32_C(0xffc07fff)
#define STP_FP_LR_PUSH     UINT32_C(0xa9bf7bfd) /* stp x29, x30, [sp, #-16]! */
#define LDP_FP_LR_SP       UINT32_C(0xa9407bfd) /* ldp x29, x30, [sp, #imm7 * 8] */
#define LDP_FP_LR_SP_MASK  UINT32_C(0xffc07fff)
#define LDP_FP_LR_POP      UINT32_C(0xa8c17bfd) /* ldp x29, x30, [sp], #16 */
#define ADD_SP_SP          UINT32_C(0x910003ff) /* add sp, sp, #imm12 [lsl 12] */
#define SUB_SP_SP          UINT32_C(0xd10003ff) /* sub sp, sp, #imm12 [lsl 12] */
#define SUB_SP_SP_REGISTER UINT32_C(0xcb2063ff) /* sub sp, sp, xN */
#define ADJUST_SP_MASK     UINT32_C(0xff8003ff)
#define SUB_REGISTER_MASK  UINT32_C(0xffe0ffff)
#define RET                UINT32_C(0xd65f03c0)
#define SIGN_A             UINT32_C(0xd503233f) /* paciasp */
#define ADD_FP_SP          UINT32_C(0x910003fd) /* add x29, sp, #imm12 */
#define ADD_FP_SP_MASK     UINT32_C(0xffc003ff)
#define MOVE_X13_SP        UINT32_C(0x910003ed) /* mov x13, sp */
#define MOVE_X19_SP        UINT32_C(0x910003f3) /* mov x19, sp */
#define BR_X17             UINT32_C(0xd61f0220)
#define ADD_X16_X16        UINT32_C(0x91000210) /* add x16, x16, #imm12 */
#define ADD_X16_X16_MASK   UINT32_C(0xffc003ff)
#define STORE_BCP_FP       UINT32_C(0xf80003b6) /* stur x22, [x29, #imm9] */
#define STORE_BCP_FP_MASK  UINT32_C(0xffe00fff)

static bool is_adjust(uint32_t word, uint32_t form)
{
    return (word & ADJUST_SP_MASK) == form;
}

/*
 * Prologues: sub sp, sp, N; stp x29, x30, [sp, N - 16]  or  stp x29, x30, [sp, -16]!; [mov x29,
 * sp]; sub sp, sp, N - 16. In the first form there is no frame until the link register has been
 * stored, although the stack pointer has already moved.
 */
static enum frame_state prologue_state(const uint32_t *code, size_t count, size_t at,
                                       int32_t frame_bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (code[i] == STP_FP_LR_PUSH) {
            size_t sub = i + 1;
            while (sub < count && sub < i + 4 && !is_adjust(code[sub], SUB_SP_SP) &&
                   (code[sub] & SUB_REGISTER_MASK) != SUB_SP_SP_REGISTER)
                sub++;
            return at <= i                         ? FRAME_NONE
                   : frame_bytes > 16 && at <= sub ? FRAME_FP_PUSHED
                                                   : FRAME_FULL;
        }
        if (is_adjust(code[i], SUB_SP_SP) && i + 1 < count &&
            (code[i + 1] & STP_FP_LR_SP_MASK) == STP_FP_LR_SP)
            return at <= i ? FRAME_NONE : at == i + 1 ? FRAME_FP_LIVE : FRAME_FULL;
    }
    return FRAME_FULL;
}

static enum frame_state compiled_state(const struct memory *m, uint64_t pc, uint64_t entry,
                                       uint64_t complete, uint64_t end, int32_t frame_bytes)
{
    uint32_t code[PROLOGUE_WORDS];
    if (pc < entry || frame_bytes < 16)
        return FRAME_NONE;
    if (pc < complete + 4 && (pc - entry) / 4 < PROLOGUE_WORDS) {
        size_t count = MIN((end - entry) / 4, (uint64_t)PROLOGUE_WORDS);
        if (!memory_read(m, entry, code, count * 4))
            return FRAME_FULL;
        enum frame_state state = prologue_state(code, count, (pc - entry) / 4, frame_bytes);
        if (state != FRAME_FULL)
            return state;
    }
    /*
     * Epilogues: ldp x29, x30, [sp, N - 16]; add sp, sp, N  or  add sp, sp, N - 16; ldp x29, x30,
     * [sp], 16; then polls; ret.
     */
    if (pc < entry + EPILOGUE_WORDS * 4 ||
        !memory_read(m, pc - EPILOGUE_WORDS * 4, code, (EPILOGUE_WORDS + 1) * 4))
        return FRAME_FULL;
    uint32_t here = code[EPILOGUE_WORDS], before = code[EPILOGUE_WORDS - 1];
    if (here == RET)
        return FRAME_NONE;
    if (here == LDP_FP_LR_POP && is_adjust(before, ADD_SP_SP))
        return FRAME_FP_PUSHED;
    for (int i = EPILOGUE_WORDS - 1; i > 0; i--) {
        if (code[i] == RET || code[i] == SIGN_A)
            break;
        if (code[i] == LDP_FP_LR_POP ||
            (is_adjust(code[i], ADD_SP_SP) && (code[i - 1] & LDP_FP_LR_SP_MASK) == LDP_FP_LR_SP))
            return FRAME_NONE;
    }
    return FRAME_FULL;
}

static enum frame_state stub_state(const struct memory *m, uint64_t pc, uint64_t begin)
{
    uint32_t word;
    if (!memory_read(m, pc, &word, sizeof(word)))
        return FRAME_FULL;
    return pc == begin || word == RET || word == STP_FP_LR_PUSH ? FRAME_NONE
           : word == LDP_FP_LR_POP                              ? FRAME_FP_PUSHED
                                                                : FRAME_FULL;
}

static uint64_t interpreter_frame(const struct memory *m, uint64_t begin, uint64_t end)
{
    /*
     * Matches sub sp, sp, N; a few stores; stp x29, x30, [sp, M]; then add x29, sp, M, the
     * instruction that is searched for, and a store of the sender's stack pointer.
     */
    uint32_t word, before = 0;
    for (uint64_t at = (begin + 3) & ~UINT64_C(3); at + 4 <= end; at += 4, before = word) {
        if (!memory_read(m, at, &word, 4))
            return 0;
        if ((before & STP_FP_LR_SP_MASK) == STP_FP_LR_SP && (word & ADD_FP_SP_MASK) == ADD_FP_SP)
            return at;
    }
    return 0;
}

static enum frame_state entry_state(uint64_t pc, uint64_t frame)
{
    return frame == 0 || pc <= frame ? FRAME_NONE : pc == frame + 4 ? FRAME_FP_LIVE : FRAME_FULL;
}

static unsigned interpreter_bcp(const struct memory *m, uint64_t begin, uint64_t end)
{
    uint32_t word;
    for (uint64_t at = (begin + 3) & ~UINT64_C(3); at + 4 <= end; at += 4)
        if (memory_read(m, at, &word, 4) && (word & STORE_BCP_FP_MASK) == STORE_BCP_FP) {
            int32_t bytes = (int32_t)(word << 11) >> 23; /* bits 20 to 12, signed */
            return bytes < 0 && bytes % 8 == 0 ? (unsigned)(-bytes / 8) : 0;
        }
    return 0;
}

static bool interpreter_return(const struct memory *m, const struct registers *r, uint64_t *ret_pc,
                               uint64_t *ret_sp)
{
    /* Between ldp x29, x30, [sp], 16 and ret there are only changes of sp and barriers. */
    uint32_t code[2 * RETURN_WORDS];
    if (!memory_read(m, r->pc - RETURN_WORDS * 4, code, sizeof(code)))
        return false;
    int from = RETURN_WORDS - 1, to = RETURN_WORDS;
    while (from >= 0 && code[from] != LDP_FP_LR_POP && code[from] != RET)
        from--;
    while (to < 2 * RETURN_WORDS && code[to] != RET && code[to] != LDP_FP_LR_POP)
        to++;
    if (from < 0 || code[from] == RET || to == 2 * RETURN_WORDS || code[to] != RET)
        return false;
    *ret_pc = r->link;
    *ret_sp = MAX(r->popped_sp, r->sp);
    return true;
}

static bool linkage_entry(const struct memory *m, uint64_t pc)
{
    /* adrp x16, page; ldr x17, [x16, N]; add x16, x16, N; br x17: pc at any of them */
    uint32_t code[4];
    if (!memory_read(m, pc, code, sizeof(code)))
        return false;
    for (unsigned i = 0; i < 4; i++)
        if (code[i] == BR_X17)
            return i == 0 || (code[i - 1] & ADD_X16_X16_MASK) == ADD_X16_X16;
    return false;
}

static bool notes_sender_sp(const struct memory *m, uint64_t pc, uint64_t begin)
{
    uint32_t word;
    for (unsigned i = 1; i <= ADAPTER_WORDS && pc - 4 * i >= begin; i++) {
        if (!memory_read(m, pc - 4 * i, &word, 4) || word == RET)
            return false;
        if (word == MOVE_X13_SP || word == MOVE_X19_SP)
            return true;
    }
    return false;
}

static bool follows_call(const struct memory *m, uint64_t address)
{
    uint32_t word;
    if ((address & 3) || !memory_read(m, address - 4, &word, 4))
        return false;
    return (word & UINT32_C(0xfc000000)) == UINT32_C(0x94000000) ||
           (word & UINT32_C(0xfffffc1f)) == UINT32_C(0xd63f0000);
}

const struct arch arch_aarch64 = {
    .dwarf_fp = 29,
    .dwarf_sp = 31,
    .dwarf_ra = 30,
    .return_on_stack = false,
    .wrapper_slot = -8,
    .callee_overlaps = true,
    .address_mask = (UINT64_C(1) << 48) - 1,
    .compiled_state = compiled_state,
    .stub_state = stub_state,
    .interpreter_bcp = interpreter_bcp,
    .notes_sender_sp = notes_sender_sp,
    .interpreter_frame = interpreter_frame,
    .entry_state = entry_state,
    .interpreter_return = interpreter_return,
    .linkage_entry = linkage_entry,
    .follows_call = follows_call,
};

#if defined(__aarch64__)
void arch_registers(const void *context, struct registers *ret)
{
    const mcontext_t *c = &((const ucontext_t *)context)->uc_mcontext;
    *ret = (struct registers){
        .pc = c->pc,
        .sp = c->sp,
        .fp = c->regs[29],
        .link = c->regs[30],
        .method = c->regs[12],
        .sender_sp = c->regs[19],
        .old_sender_sp = c->regs[13],
        .bcp = c->regs[22],
        .popped_sp = c->regs[20],
    };
}
#endif
