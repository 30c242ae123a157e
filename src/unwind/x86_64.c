/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code for x86-64. A frame of compiled code consists of the return address, the saved rbp and
 * the body. HotSpot's compilers build and remove frames in only a few ways.
 */
#include "unwind/arch.h"

#include <string.h>
#include <ucontext.h>

enum { WINDOW = 32, PROLOGUE_MAX = 160 };

/*
 * Matches `sub rsp, imm` (or `add rsp, imm`, by the opcode extension) of exactly that amount;
 * returns its length, 0 when it is another instruction.
 */
at_each_sample static unsigned adjusts_rsp(const uint8_t *code, size_t len, uint8_t modrm,
                                           int32_t amount)
{
    int32_t imm;
    if (len >= 4 && code[0] == 0x48 && code[1] == 0x83 && code[2] == modrm &&
        (int8_t)code[3] == amount)
        return 4;
    if (len >= 7 && code[0] == 0x48 && code[1] == 0x81 && code[2] == modrm) {
        memcpy(&imm, code + 3, sizeof(imm));
        return imm == amount ? 7 : 0;
    }
    return 0;
}

static unsigned subtracts(const uint8_t *code, size_t len, int32_t amount)
{
    return adjusts_rsp(code, len, 0xec, amount);
}

static unsigned adds(const uint8_t *code, size_t len, int32_t amount)
{
    return adjusts_rsp(code, len, 0xc4, amount);
}

static bool is_move_rbp(const uint8_t *code)
{
    return code[0] == 0x48 &&
           ((code[1] == 0x8b && code[2] == 0xec) || (code[1] == 0x89 && code[2] == 0xe5));
}

/*
 * Returns the state at offset `at` of a prologue. Its forms are push rbp [mov rbp, rsp] sub rsp, N
 * - 16, and sub rsp, N - 8 followed by mov [rsp + N - 16], rbp, where N is the size of the frame. A
 * frame of 16 bytes needs a push only.
 */
static enum frame_state prologue_state(const uint8_t *code, size_t len, size_t at,
                                       int32_t frame_bytes)
{
    for (size_t i = 0; i + 4 <= len; i++) {
        unsigned n;
        if (code[i] == 0x55) {
            size_t sub = i + 1;
            if (sub + 3 <= len && is_move_rbp(code + sub))
                sub += 3;
            n = frame_bytes == 16 ? 0 : subtracts(code + sub, len - sub, frame_bytes - 16);
            if (n == 0 && frame_bytes != 16)
                continue;
            return at <= i ? FRAME_NONE : at < sub + n ? FRAME_FP_PUSHED : FRAME_FULL;
        }
        n = subtracts(code + i, len - i, frame_bytes - 8);
        if (n) {
            bool saves = i + n + 3 <= len && code[i + n] == 0x48 && code[i + n + 1] == 0x89 &&
                         (code[i + n + 2] & 0x3f) == 0x2c;
            return at <= i ? FRAME_NONE : at == i + n && saves ? FRAME_FP_LIVE : FRAME_FULL;
        }
    }
    return FRAME_FULL;
}

/*
 * Returns the length of an instruction that may stand between the removal of a frame and the
 * return; 0 for any other.
 */
static unsigned after_removal(const uint8_t *code, size_t len)
{
    static const struct {
        uint8_t bytes[3], count, length;
    } forms[] = {
        {{0x85, 0x05}, 2, 6},       /* test [rip + poll], eax */
        {{0x41, 0x85, 0x02}, 3, 3}, /* test [r10], eax */
        /* the same with a short displacement */
        {{0x4d, 0x8b, 0x57}, 3, 4},
        {{0x49, 0x3b, 0x67}, 3, 4},
        {{0x4d, 0x8b, 0x97}, 3, 7}, /* mov r10, [r15 + poll] */
        {{0x49, 0xba}, 2, 10},      /* mov r10, poll */
        {{0x49, 0x3b, 0xa7}, 3, 7}, /* cmp rsp, [r15 + poll] */
        {{0x0f, 0x87}, 2, 6},       /* ja stub */
        {{0xc5, 0xf8, 0x77}, 3, 3}, /* vzeroupper */
    };

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        if (len >= forms[i].count && memcmp(code, forms[i].bytes, forms[i].count) == 0)
            return forms[i].length;
    return 0;
}

/*
 * Returns whether pc, at offset WINDOW of code, is after add rsp, N - 16; pop rbp and before the
 * return, with only polls in between.
 */
static bool is_removed(const uint8_t *code, size_t len, int32_t frame_bytes)
{
    for (size_t pop = WINDOW - 1; pop >= WINDOW - 24; pop--) {
        if (code[pop] != 0x5d)
            continue;
        if (frame_bytes != 16 && !adds(code + pop - 4, 4, frame_bytes - 16) &&
            !adds(code + pop - 7, 7, frame_bytes - 16))
            continue;
        size_t at = pop + 1;
        while (at < WINDOW) {
            unsigned n = after_removal(code + at, len - at);
            if (n == 0)
                break;
            at += n;
        }
        if (at == WINDOW)
            return true;
    }
    return false;
}

/*
 * Returns whether this is the slow path of a return poll (JDK 16 and later), after the method's
 * code: lea r10, [poll]; mov [r15 + pc], r10; jmp handler.
 */
static bool is_poll_stub(const uint8_t *code, size_t len)
{
    static const uint8_t lea[] = {0x4c, 0x8d, 0x15}, store[] = {0x4d, 0x89, 0x97};
    bool after_store = code[WINDOW] == 0xe9 && memcmp(code + WINDOW - 7, store, 3) == 0;
    bool at_store = len >= WINDOW + 3 && memcmp(code + WINDOW, store, 3) == 0 &&
                    memcmp(code + WINDOW - 7, lea, 3) == 0;
    bool at_lea = len >= WINDOW + 10 && memcmp(code + WINDOW, lea, 3) == 0 &&
                  memcmp(code + WINDOW + 7, store, 3) == 0;
    return at_lea || at_store || (after_store && memcmp(code + WINDOW - 14, lea, 3) == 0);
}

at_each_sample static enum frame_state compiled_state(const struct memory *m, uint64_t pc,
                                                      uint64_t entry, uint64_t complete,
                                                      uint64_t end, int32_t frame_bytes)
{
    uint8_t code[PROLOGUE_MAX];
    if (pc < entry || frame_bytes < 16)
        return FRAME_NONE;
    if (pc < complete + 8 && pc - entry < PROLOGUE_MAX - 16) {
        size_t len = MIN(end - entry, (uint64_t)PROLOGUE_MAX);
        if (!memory_read(m, entry, code, len))
            return FRAME_FULL;
        enum frame_state state = prologue_state(code, len, pc - entry, frame_bytes);
        if (state != FRAME_FULL)
            return state;
    }
    size_t len = WINDOW + MIN(end - pc, (uint64_t)WINDOW);
    if (pc - WINDOW > pc || !memory_read(m, pc - WINDOW, code, len))
        return FRAME_FULL;
    if (code[WINDOW] == 0xc3 || code[WINDOW] == 0xc2)
        return FRAME_NONE;
    if (code[WINDOW] == 0x5d &&
        (frame_bytes == 16 || adds(code + WINDOW - 4, 4, frame_bytes - 16) ||
         adds(code + WINDOW - 7, 7, frame_bytes - 16)))
        return FRAME_FP_PUSHED;
    return is_removed(code, len, frame_bytes) || is_poll_stub(code, len) ? FRAME_NONE : FRAME_FULL;
}

static enum frame_state stub_state(const struct memory *m, uint64_t pc, uint64_t begin)
{
    uint8_t code[6]; /* from the byte before pc */
    if (!memory_read(m, pc - 1, code, sizeof(code)))
        return FRAME_FULL;
    const uint8_t *at = code + 1;
    bool jumps = at[1] == 0xff && (at[2] & 0xf8) == 0xe0; /* jmp register, in place of a return */
    bool pops_return = (at[0] & 0xf8) == 0x58 && at[0] != 0x5d && jumps;
    if (pc == begin || at[0] == 0xc3 || pops_return || (at[0] == 0x55 && is_move_rbp(at + 1)))
        return FRAME_NONE;
    if ((code[0] == 0x55 && is_move_rbp(at)) || (at[0] == 0x5d && (at[1] == 0xc3 || jumps)))
        return FRAME_FP_PUSHED;
    return code[0] == 0x5d && at[0] == 0xff && (at[1] & 0xf8) == 0xe0 ? FRAME_NONE : FRAME_FULL;
}

/* On x86-64 this depends only on the version of the VM (hotspot/layout.c), so no code is read. */
static unsigned interpreter_bcp(const struct memory *m, uint64_t begin, uint64_t end)
{
    return 0;
}

static uint64_t interpreter_frame(const struct memory *m, uint64_t begin, uint64_t end)
{
    /* push rbp; mov rbp, rsp; push r13 (the sender's stack pointer) */
    static const uint8_t forms[][6] = {{0x55, 0x48, 0x8b, 0xec, 0x41, 0x55},
                                       {0x55, 0x48, 0x89, 0xe5, 0x41, 0x55}};
    uint8_t code[6];
    for (uint64_t at = begin; at + sizeof(code) <= end; at++) {
        if (!memory_read(m, at, code, sizeof(code)))
            return 0;
        if (memcmp(code, forms[0], sizeof(code)) == 0 || memcmp(code, forms[1], sizeof(code)) == 0)
            return at;
    }
    return 0;
}

static enum frame_state entry_state(uint64_t pc, uint64_t frame)
{
    return frame == 0 || pc <= frame ? FRAME_NONE : pc == frame + 1 ? FRAME_FP_PUSHED : FRAME_FULL;
}

static bool interpreter_return(const struct memory *m, const struct registers *r, uint64_t *ret_pc,
                               uint64_t *ret_sp)
{
    /* After leave: pop rdi (or rsi); mov rsp, rbx; jmp rdi (rsi). */
    uint8_t code[6];
    if (!memory_read(m, r->pc, code, sizeof(code)) || (code[0] != 0x5f && code[0] != 0x5e) ||
        code[1] != 0x48 || code[2] != 0x8b || code[3] != 0xe3 || code[4] != 0xff)
        return false;
    if (!load_u64(m, r->sp, ret_pc))
        return false;
    *ret_sp = r->popped_sp;
    return true;
}

/* On x86-64 these entries have call frame information. */
static bool linkage_entry(const struct memory *m, uint64_t pc)
{
    return false;
}

static bool follows_call(const struct memory *m, uint64_t address)
{
    uint8_t code[7];
    if (!memory_read(m, address - sizeof(code), code, sizeof(code)))
        return false;
    if (code[2] == 0xe8)
        return true;
    /*
     * Matches call r/m64: ff /2 with no, a one-byte or a four-byte displacement, an optional index
     * byte and an optional prefix.
     */
    for (unsigned length = 2; length <= 7; length++) {
        const uint8_t *at = code + 7 - length;
        if (at[0] != 0xff || (at[1] & 0x38) != 0x10)
            continue;
        unsigned mod = at[1] >> 6, rm = at[1] & 7, n = 2;
        if (mod != 3)
            n += (rm == 4) + (mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0);
        if (n == length)
            return true;
    }
    return false;
}

const struct arch arch_x86_64 = {
    .dwarf_fp = 6,
    .dwarf_sp = 7,
    .dwarf_ra = 16,
    .return_on_stack = true,
    .wrapper_slot = -6,
    .address_mask = UINT64_MAX,
    .compiled_state = compiled_state,
    .stub_state = stub_state,
    .interpreter_bcp = interpreter_bcp,
    .interpreter_frame = interpreter_frame,
    .entry_state = entry_state,
    .interpreter_return = interpreter_return,
    .linkage_entry = linkage_entry,
    .follows_call = follows_call,
};

#if defined(__x86_64__)
at_each_sample void arch_registers(const void *context, struct registers *ret)
{
    const greg_t *g = ((const ucontext_t *)context)->uc_mcontext.gregs;
    *ret = (struct registers){
        .pc = (uint64_t)g[REG_RIP],
        .sp = (uint64_t)g[REG_RSP],
        .fp = (uint64_t)g[REG_RBP],
        .link = (uint64_t)g[REG_RAX],
        .method = (uint64_t)g[REG_RBX],
        .sender_sp = (uint64_t)g[REG_R13],
        .old_sender_sp = (uint64_t)g[REG_R13],
        .bcp = (uint64_t)g[REG_R13],
        .popped_sp = (uint64_t)g[REG_RBX],
    };
}
#endif
