/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a walk must know of a processor. Both descriptions are compiled everywhere, so that the one
 * of aarch64 is tested on images too; only the reading of a signal's context is of the machine
 * itself.
 */
#pragma once

#include "hotspot/memory.h"

/*
 * The registers that matter. The last four are HotSpot's conventions, and mean something in the top
 * frame only.
 */
struct registers {
    uint64_t pc, sp, fp;
    /*
     * aarch64's x30; on x86-64 rax, where the interpreter's entries hold the return address for a
     * while
     */
    uint64_t link;
    uint64_t method;    /* Method of an interpreted call: rbx, x12 */
    uint64_t sender_sp; /* stack pointer of its caller: r13, x19 */
    /* the register of sender_sp before JDK 20 where that was another one: x13 */
    uint64_t old_sender_sp;
    uint64_t bcp; /* bytecode pointer: r13, x22 */
    /* what the interpreter's return sequence restores the stack pointer from: rbx, x20 */
    uint64_t popped_sp;
};

/* How far the frame of the top function is built (or torn down). */
enum frame_state {
    FRAME_FULL, /* all of it is there */
    /*
     * full size, but the caller's frame pointer is still in the register; of an interpreter entry:
     * the frame pointer is set, but the caller's stack pointer is still in its register
     */
    FRAME_FP_LIVE,
    FRAME_FP_PUSHED, /* on the stack: the caller's frame pointer, then the return address */
    FRAME_NONE,      /* the return address is on top of the stack (aarch64: in the link register) */
};

struct arch {
    int dwarf_fp, dwarf_sp, dwarf_ra;
    bool return_on_stack; /* a call pushes the return address */
    int wrapper_slot;     /* words from the call stub's frame pointer to its JavaCallWrapper */
    /*
     * An interpreted caller's stack pointer may be below the frame of its callee: the arguments,
     * which are the callee's first locals, lie above the space that the caller keeps for its
     * expressions, and the callee's frame begins right below its locals.
     */
    bool callee_overlaps;
    /* bits of a return address that are one: pointer authentication uses others */
    uint64_t address_mask;

    /*
     * The state at pc of code whose complete frame has frame_bytes, that is entered at entry and
     * ends at end. complete is the address where the compiler says that the frame is complete.
     */
    enum frame_state (*compiled_state)(const struct memory *m, uint64_t pc, uint64_t entry,
                                       uint64_t complete, uint64_t end, int32_t frame_bytes);
    /*
     * The state at pc of a stub of unknown form that begins at begin or before; FULL when its code
     * does not say.
     */
    enum frame_state (*stub_state)(const struct memory *m, uint64_t pc, uint64_t begin);
    /*
     * How many words below the frame pointer the interpreter keeps the bytecode pointer, as its
     * code from begin to end says; 0 when that is not known.
     */
    unsigned (*interpreter_bcp)(const struct memory *m, uint64_t begin, uint64_t end);
    /*
     * True when the code of an adapter from begin up to pc has noted the caller's stack pointer in
     * the register of sender_sp.
     */
    bool (*notes_sender_sp)(const struct memory *m, uint64_t pc, uint64_t begin);
    /* Where an interpreter entry pushes the frame pointer; 0 when it builds no frame. */
    uint64_t (*interpreter_frame)(const struct memory *m, uint64_t begin, uint64_t end);
    /* The state at pc of an interpreter entry that builds its frame at `frame`. */
    enum frame_state (*entry_state)(uint64_t pc, uint64_t frame);
    /*
     * True in the interpreter's return sequence, where the frame is gone; the return address and
     * the caller's stack pointer.
     */
    bool (*interpreter_return)(const struct memory *m, const struct registers *r, uint64_t *ret_pc,
                               uint64_t *ret_sp);
    /*
     * True in an entry of a procedure linkage table for which no call frame information is written:
     * the return address is still in the link register.
     */
    bool (*linkage_entry)(const struct memory *m, uint64_t pc);
    /* True when the instruction before an address is a call. */
    bool (*follows_call)(const struct memory *m, uint64_t address);
};

extern const struct arch arch_x86_64, arch_aarch64;

#if defined(__x86_64__)
#define ARCH_HERE arch_x86_64
#elif defined(__aarch64__)
#define ARCH_HERE arch_aarch64
#endif

/* The registers of a signal's ucontext_t. */
void arch_registers(const void *context, struct registers *ret);
