/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information (.eh_frame): where the caller's registers are saved, for an address in
 * native code. It covers only what a walk needs: the frame's address, the saved frame pointer and
 * the return address. Specifications: DWARF 5 section 6.4, LSB 5.0 chapter "Exception Frames".
 * Async-signal-safe; every load is guarded.
 */
#pragma once

#include "unwind/arch.h"
#include "unwind/modules.h"

enum cfi_base { CFI_UNKNOWN, CFI_SP, CFI_FP, CFI_PLT, CFI_SIGNAL, CFI_END };

/* How to leave a frame. */
struct cfi_rule {
    /*
     * enum cfi_base: the register that the frame's address is relative to; PLT: the lazy binding
     * table; SIGNAL: a signal's frame, whose ucontext_t is at sp; END: the outermost frame
     */
    uint8_t base;
    bool fp_saved;  /* at address + fp_offset; otherwise the register still holds the caller's */
    bool ra_saved;  /* at address + ra_offset; otherwise in the link register */
    int32_t offset; /* address = base + offset; it is the caller's stack pointer */
    int32_t fp_offset, ra_offset;
};

/*
 * Finds the rule for pc, an address in the module. Returns false when the module has no rule for
 * it, or one that is not supported.
 */
bool cfi_find(const struct arch *arch, const struct memory *m, const struct module *module,
              uint64_t pc, struct cfi_rule *ret);
