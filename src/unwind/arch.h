/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor-specific parts of a walk. Both descriptions are compiled everywhere, so that the
 * one for aarch64 is tested on images on x86-64 too. Only the function that reads a signal's
 * context is specific to the machine.
 */
#pragma once

#include "hotspot/memory.h"

/*
 * The registers that matter. The last four follow HotSpot's conventions and are meaningful in the
 * top frame only.
 */
struct registers {
    uint64_t pc, sp, fp;
    /*
     * x30 on aarch64; on x86-64 rax, where the interpreter's entries hold the return address for a
     * while
     */
    uint64_t link;
    uint64_t method;    /* Method of an interpreted call: rbx, x12 */
    uint64_t sender_sp; /* stack pointer of its caller: r13, x19 */
    /* the register of sender_sp before JDK 20 where that was another one: x13 */
    uint64_t old_sender_sp;
    uint64_t bcp; /* bytecode pointer: r13, x22 */
    /* from which the interpreter's return sequence restores the stack pointer: rbx, x20 */
    uint64_t popped_sp;
};

/* How much of the top function's frame exists at this point. */
enum frame_state {
    FRAME_FULL, /* the whole frame exists */
    /*
     * the stack pointer is final, but the caller's frame pointer is still in its register; in an
     * interpreter entry: the frame pointer is set, but the caller's stack pointer is still in its
     * register
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
     * An interpreted caller's stack pointer may be below its callee's frame. The arguments, which
     * become the callee's first locals, lie above the space that the caller reserves for its
     * expression stack, and the callee's frame begins right below its locals.
     */
    bool callee_overlaps;
    /*
     * the bits of a return address that are part of the address; pointer authentication uses the
     * others
     */
    uint64_t address_mask;

    /*
     * Returns the state of the frame at pc in code that is entered at `entry`, ends at `end`, and
     * whose complete frame has frame_bytes. complete: the address from which on the frame is
     * complete, according to the compiler.
     */
    enum frame_state (*compiled_state)(const struct memory *m, uint64_t pc, uint64_t entry,
                                       uint64_t complete, uint64_t end, int32_t frame_bytes);
    /*
     * Returns the state of the frame at pc in a stub of unknown form that begins at or before
     * `begin`; FULL when its code does not show the state.
     */
    enum frame_state (*stub_state)(const struct memory *m, uint64_t pc, uint64_t begin);
    /*
     * Returns how many words below the frame pointer the interpreter keeps the bytecode pointer,
     * according to its code between begin and end; 0 when that is not known.
     */
    unsigned (*interpreter_bcp)(const struct memory *m, uint64_t begin, uint64_t end);
    /*
     * Returns whether an adapter's code between begin and pc has saved the caller's stack pointer
     * in the register sender_sp.
     */
    bool (*notes_sender_sp)(const struct memory *m, uint64_t pc, uint64_t begin);
    /* Returns where an interpreter entry pushes the frame pointer; 0 when it builds no frame. */
    uint64_t (*interpreter_frame)(const struct memory *m, uint64_t begin, uint64_t end);
    /*
     * Returns the state of the frame at pc in an interpreter entry that builds its frame at
     * `frame`.
     */
    enum frame_state (*entry_state)(uint64_t pc, uint64_t frame);
    /*
     * Returns whether pc is in the interpreter's return sequence, where the frame has been removed,
     * and if so the return address and the caller's stack pointer.
     */
    bool (*interpreter_return)(const struct memory *m, const struct registers *r, uint64_t *ret_pc,
                               uint64_t *ret_sp);
    /*
     * Returns whether pc is in an entry of a procedure linkage table that has no call frame
     * information: the return address is then still in the link register.
     */
    bool (*linkage_entry)(const struct memory *m, uint64_t pc);
    /* Returns whether the instruction before an address is a call. */
    bool (*follows_call)(const struct memory *m, uint64_t address);
};

extern const struct arch arch_x86_64, arch_aarch64;

#if defined(__x86_64__)
#define ARCH_HERE arch_x86_64
#elif defined(__aarch64__)
#define ARCH_HERE arch_aarch64
#endif

/* Reads the registers of a signal's ucontext_t. */
void arch_registers(const void *context, struct registers *ret);
