/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes one step out of generated code: the interpreter, compiled methods, adapters, stubs, and the
 * entries from native code into Java.
 */
#include "base/seqlock.h"
#include "hotspot/method.h"
#include "unwind/internal.h"

enum {
    BCI_NATIVE = -3,
    /* Words of an interpreted frame, from its frame pointer. */
    SLOT_SENDER_SP = -1,
    SLOT_METHOD = -3,
    COMPILED_INLINE_MAX = 1 << 12,
    CONTINUATION_ENTRY_WORDS = 24,
    ROUTINE_FRAME_MAX = 1024,
};

static uint64_t slot(uint64_t fp, int words)
{
    return fp + (uint64_t)(int64_t)(words * 8);
}

#define ENTRY_BARRIER_COOKIE UINT64_MAX

/*
 * Leaves a function without a frame: its return address is where the call has put it, on top of the
 * stack or in the link register.
 */
at_each_sample static bool leave_frameless(struct walk *k)
{
    uint64_t pc;
    if (!k->w->arch->return_on_stack)
        return k->top && walk_leave(k, k->r.link, k->r.sp, k->r.fp);
    return walk_stack_word(k, k->r.sp, &pc) && walk_leave(k, pc, k->r.sp + 8, k->r.fp);
}

at_each_sample static bool leave_with_state(struct walk *k, enum frame_state state,
                                            int32_t frame_bytes)
{
    uint64_t pc, fp = k->r.fp, sender = k->r.sp + (uint64_t)frame_bytes;
    switch (state) {
    case FRAME_NONE:
        return leave_frameless(k);
    case FRAME_FP_PUSHED:
        return walk_stack_word(k, k->r.sp, &fp) && walk_stack_word(k, k->r.sp + 8, &pc) &&
               walk_leave(k, pc, k->r.sp + 16, fp);
    case FRAME_FP_LIVE:
        return walk_stack_word(k, sender - 8, &pc) && walk_leave(k, pc, sender, fp);
    default:
        if (!walk_stack_word(k, sender - 8, &pc) || !walk_stack_word_unnoted(k, sender - 16, &fp) ||
            !walk_leave(k, pc, sender, fp))
            return false;
        k->fp_at = sender - 16;
        return true;
    }
}

/*
 * Returns the stack pointer that the caller of an interpreted method has saved, while it is still
 * available.
 */
static uint64_t register_of_sender_sp(const struct walk *k)
{
    return k->w->layout.version < 20 ? k->r.old_sender_sp : k->r.sender_sp;
}

/* Handles an interpreted method without a finished frame: the method is still in its register. */
static bool step_interpreter_entry(struct walk *k, const struct interpreter_entry *entry)
{
    const struct walker *w = k->w;
    struct registers r = k->r;
    enum frame_state state = w->arch->entry_state(r.pc, w->entry_frame[entry - w->code.entries]);
    uint64_t pc = 0, sp = register_of_sender_sp(k), fp = r.fp, method;
    int32_t bci;
    bool native;
    if (state == FRAME_FULL && r.sp <= slot(r.fp, -(int)w->layout.interpreter_bcp))
        return false; /* the frame is finished */
    if (!method_bci(&w->layout, &w->memory, r.method, 0, &bci, &native))
        return false;
    method = r.method;
    if (state == FRAME_NONE) {
        if (!w->arch->return_on_stack)
            pc = r.link;
        else if (!walk_stack_word(k, r.sp, &pc) || !walk_is_code(k, pc))
            pc = r.link; /* popped while the locals are laid out */
    } else if (state == FRAME_FP_PUSHED) {
        if (!walk_stack_word(k, r.sp, &fp) || !walk_stack_word(k, r.sp + 8, &pc))
            return false;
    } else if (!walk_stack_word(k, r.fp, &fp) || !walk_stack_word(k, r.fp + 8, &pc) ||
               (state == FRAME_FULL && r.sp <= slot(r.fp, SLOT_SENDER_SP) &&
                !walk_stack_word(k, slot(r.fp, SLOT_SENDER_SP), &sp))) {
        return false;
    }
    if (sp <= r.sp || sp > k->stack_high)
        sp = r.sp + 8;
    if (!walk_leave(k, pc, sp, fp))
        return false;
    walk_emit_java(k, native ? WALK_NATIVE_METHOD : WALK_INTERPRETED, method,
                   native ? BCI_NATIVE : 0);
    return true;
}

/*
 * Returns the sender's stack pointer that an interpreted frame, which returns to pc, has saved as
 * `word`. In the heap the word is a distance.
 */
static uint64_t sender_sp(const struct walk *k, uint64_t pc, uint64_t word)
{
    uint64_t sp = k->in_chunk ? k->r.fp + 8 * word : word;
    bool overlaps = k->w->arch->callee_overlaps && code_is_interpreter(&k->w->code, pc);
    return overlaps ? MAX(sp, k->r.fp + 16) : sp;
}

static bool step_interpreter(struct walk *k)
{
    const struct walker *w = k->w;
    struct registers r = k->r;
    uint64_t method, bcp, pc, sp, fp;
    struct known_method known;
    if (k->top) {
        const struct interpreter_entry *entry = code_interpreter_entry(&w->code, r.pc);
        if (entry && step_interpreter_entry(k, entry))
            return true;
        if (w->arch->interpreter_return(walk_memory(k), &r, &pc, &sp))
            return walk_leave(k, pc, sp, r.fp);
    }
    walk_by_fp(k);
    if (r.fp < r.sp || !walk_stack_word(k, slot(r.fp, SLOT_METHOD), &method) ||
        !walk_stack_word(k, slot(r.fp, -(int)w->layout.interpreter_bcp), &bcp))
        return false;
    if (k->claims && !k->top) {
        if (!claim_method(k, method, bcp))
            return false;
    } else {
        if (!walk_method(k, method, &known)) {
            if (!k->later)
                return false;
            method = 0; /* such a frame never has a name */
            known = (struct known_method){.code_size = 1};
        }
        /*
         * While the method runs, the pointer is in a register; its slot is updated only at calls.
         */
        int32_t bci = known_method_bci(&known, &w->layout, bcp), live = -1;
        if (k->top && (live = known_method_bci(&known, &w->layout, r.bcp)) >= 0)
            bci = live;
        bool native = known.code_size == 0;
        if (k->later && !native && bci < 0)
            method = known.check = 0; /* another method has taken its place */
        walk_emit(k, native ? WALK_NATIVE_METHOD : WALK_INTERPRETED,
                  walk_id_of_method(method, known.check), native ? BCI_NATIVE : bci);
        if (k->words)
            walk_note_method(k, walk_id_of_method(method, known.check));
    }
    return walk_stack_word(k, r.fp, &fp) && walk_stack_word(k, r.fp + 8, &pc) &&
           walk_stack_word(k, slot(r.fp, SLOT_SENDER_SP), &sp) &&
           (sp = sender_sp(k, pc, sp)) > r.fp && walk_leave(k, pc, sp, fp);
}

/*
 * Emits the methods at an address of compiled code; with outermost_only, only the method that is
 * not inlined, because the others' frames do not exist.
 */
static void emit_compiled(struct walk *k, const struct code_blob *blob, uint64_t pc,
                          bool outermost_only)
{
    const struct walker *w = k->w;
    struct code_scopes scopes;
    struct code_scope scope, last = {0};
    if (!code_scopes_at(&scopes, &w->code, &w->memory, blob, pc))
        return;
    if (blob->kind == CODE_NATIVE) {
        walk_emit_java(k, WALK_NATIVE_METHOD, scopes.method, BCI_NATIVE);
        return;
    }
    enum walk_kind kind = code_level(&w->code, &w->memory, blob) == 4 ? WALK_C2 : WALK_C1;
    for (unsigned n = 0; n < COMPILED_INLINE_MAX && code_scopes_next(&scopes, &scope); n++) {
        last = scope;
        if (!outermost_only || !scope.inlined)
            walk_emit_java(k, scope.inlined ? WALK_INLINED : kind, scope.method, scope.bci);
    }
    /* A scope could not be read, but the compiled method itself is certain. */
    if (last.inlined || !last.method)
        walk_emit_java(k, kind, scopes.method, -1);
}

/* Marks what was added for a frame, from `first` on, to be kept for later walks. */
static void note_site(struct walk *k, const struct code_blob *blob, const struct compilation *of,
                      uint64_t key, enum frame_state state, unsigned first)
{
    struct notes *notes = k->notes;
    unsigned n = k->count - first;
    if (notes->count < NOTES_MAX && n > 0 && n <= SITE_METHODS_MAX && !k->full)
        notes->of[notes->count++] =
            (struct note){*of, key, blob->frame_bytes, first, (uint16_t)n, (uint8_t)state};
}

/*
 * Adds the frames that a site describes. Returns false when the site is being written or describes
 * something else.
 */
static bool emit_site(struct walk *k, uint64_t key, int32_t *ret_frame_bytes,
                      enum frame_state *ret_state)
{
    struct walk_site *s = site_at(k->w->sites, key);
    uint32_t version = seqlock_read(&s->version);
    if (!version || s->pc != key)
        return false;
    struct compilation of = {s->blob, s->method, s->compile_id};
    *ret_frame_bytes = (int32_t)s->frame_bytes;
    *ret_state = (enum frame_state)s->state;
    for (unsigned i = 0; i < MIN(s->count, SITE_METHODS_MAX); i++) {
        struct walk_frame f = site_frame(&s->methods[i]);
        walk_emit(k, (enum walk_kind)f.kind, f.id, f.bci);
    }
    if (!seqlock_still(&s->version, version))
        return false;
    if (k->words)
        walk_note_code(k, &of);
    if (k->claims)
        return claim_site(k, &of);
    if (site_compilation_holds(&k->w->layout, &k->w->memory, &of))
        return true;
    /* It is unknown which of the two was there when the stack was copied. */
    k->refuted = k->later;
    if (k->refuted)
        site_forget(k->w->sites, key);
    return false;
}

static uint64_t site_key(const struct walk *k)
{
    return k->top ? walk_top_key(k->r.pc) : k->r.pc;
}

/*
 * Leaves a frame whose return address, or whose interrupted address, is known from an earlier walk.
 */
static bool step_site(struct walk *k)
{
    int32_t frame_bytes;
    enum frame_state state;
    unsigned count = k->count;
    if (!k->w->sites)
        return false;
    if (emit_site(k, site_key(k), &frame_bytes, &state) &&
        leave_with_state(k, state, frame_bytes)) {
        k->stopped = false;
        return true;
    }
    k->count = count;
    k->full = false;
    return false;
}

static bool step_compiled(struct walk *k, const struct code_blob *blob)
{
    const struct walker *w = k->w;
    struct registers r = k->r;
    struct compilation of;
    unsigned first = k->count;
    enum frame_state state = FRAME_FULL;
    if (!site_read_compilation(&w->layout, &w->memory, blob->address, &of))
        return false;
    code_fetch_scopes(&w->code, &w->memory, blob, r.pc);
    if (k->top) {
        uint64_t complete =
            blob->frame_offset >= 0 ? blob->begin + (uint64_t)blob->frame_offset : blob->begin;
        state = w->arch->compiled_state(&w->memory, r.pc, code_entry(&w->code, &w->memory, blob),
                                        complete, blob->end, blob->frame_bytes);
    }
    if (blob->frame_bytes == 0)
        state = FRAME_NONE;
    uint64_t pc = code_original_pc(&w->code, walk_memory(k), blob, r.pc, r.sp);
    if (k->words)
        walk_note_code(k, &of);
    if (k->words && pc != r.pc)
        k->words->n = WALK_WORDS_MAX + 1; /* it was read from a word that was not recorded */
    if (k->later && !k->top && !k->stopped && blob->kind == CODE_COMPILED &&
        !w->arch->follows_call(&w->memory, pc))
        return false; /* another compilation has taken its place */
    k->stopped = false;
    /*
     * Descriptions of an address apply to the instructions before it: calls and regions are
     * described at their ends.
     */
    emit_compiled(k, blob, k->top ? pc + 1 : pc, state != FRAME_FULL);
    if (k->later && !site_compilation_holds(&w->layout, &w->memory, &of)) {
        k->count = first;
        return false;
    }
    if (k->notes && pc == r.pc)
        note_site(k, blob, &of, site_key(k), state, first);
    return leave_with_state(k, state, blob->frame_bytes);
}

/*
 * Leaves an adapter. Adapters move the arguments, so for some instructions the return address may
 * not be on the stack.
 */
static bool step_adapter(struct walk *k, const struct code_blob *blob)
{
    struct registers r = k->r;
    uint64_t pc, sp = register_of_sender_sp(k);
    bool near = sp >= r.sp && sp < r.sp + 4096 && (sp & 7) == 0;
    if (!k->w->arch->return_on_stack)
        return near && k->w->arch->notes_sender_sp(&k->w->memory, r.pc, blob->begin)
                   ? k->top && walk_leave(k, r.link, sp, r.fp)
                   : leave_frameless(k);
    if (!walk_stack_word(k, r.sp, &pc))
        return false;
    if (!code_holds(&k->w->code, pc))
        pc = r.link;
    /*
     * Once the return address is in a register, another register holds the caller's stack pointer.
     */
    return walk_leave(k, pc, pc == r.link && near ? sp : r.sp + 8, r.fp);
}

/*
 * Leaves the stub through which VM code called Java. The call's wrapper contains the previous Java
 * frame.
 */
static bool step_call_stub(struct walk *k)
{
    const struct walker *w = k->w;
    uint64_t wrapper, fp, pc;
    walk_by_fp(k);
    if (k->r.fp < k->r.sp || !walk_stack_word(k, slot(k->r.fp, w->arch->wrapper_slot), &wrapper) ||
        wrapper < k->r.sp || wrapper >= k->stack_high)
        return false;
    bool more = walk_read_anchor(k, wrapper + (uint64_t)w->layout.wrapper_anchor, &k->anchor);
    if (!more)
        k->anchor = (struct anchor){0};
    if (!(k->flags & WALK_WITH_NATIVE) && !more) {
        k->done = true;
        return true;
    }
    return walk_stack_word(k, k->r.fp, &fp) && walk_stack_word(k, k->r.fp + 8, &pc) &&
           walk_leave(k, pc, k->r.fp + 16, fp);
}

/*
 * Leaves to the frame through which a virtual thread was entered, which is found in the thread's
 * record of it (JDK 22 and later).
 */
static bool leave_to_continuation_entry(struct walk *k)
{
    const struct walker *w = k->w;
    uint64_t entry;
    if (!k->thread || w->layout.thread_cont_entry == LAYOUT_NONE || !w->code.cont_return ||
        !load_u64(walk_memory(k), k->thread + (uint64_t)w->layout.thread_cont_entry, &entry) ||
        entry < k->r.sp || entry >= k->stack_high)
        return false;
    /* The lowest frame ends where the entry begins. */
    k->r.pc = w->code.cont_return;
    k->r.sp = entry;
    k->r.fp = entry + (((uint64_t)w->layout.sizeof_cont_entry + 15) & ~UINT64_C(15));
    k->top = false;
    return true;
}

/*
 * Leaves to the same frame without that record, by searching the stack: above the entry, whose size
 * is not known, there are a frame pointer and a return address.
 */
static bool scan_to_continuation_entry(struct walk *k)
{
    const struct walker *w = k->w;
    uint64_t fp, pc;
    for (uint64_t at = k->r.sp; at < k->r.sp + 8 * CONTINUATION_ENTRY_WORDS; at += 8)
        if (walk_stack_word(k, at, &fp) && walk_stack_word(k, at + 8, &pc) && fp > at &&
            fp < k->stack_high && walk_is_java_return(w, pc))
            return walk_leave(k, pc, at + 16, fp);
    return false;
}

/*
 * Returns whether the frames on the stack and those in the chunk together are all frames, without
 * repetition. A thread that freezes or thaws frames changes the chunk before or after the stack,
 * while its state says that it runs Java. It does so in Continuation.doYield, which is a native
 * method, in the continuation stubs (step_continuation_stub), and where the VM has entered a
 * monitor or waited for it. All of these are excluded.
 */
static bool chunk_is_settled(const struct walk *k)
{
    unsigned first = 0;
    while (first < k->count && !walk_is_java(k->frames[first].kind))
        first++;
    return k->in_native ||
           (!k->in_runtime && (first == k->count || k->frames[first].kind != WALK_NATIVE_METHOD));
}

/*
 * Handles the barrier to which the lowest thawed frame of a virtual thread returns; its caller is
 * in the heap.
 */
static bool step_return_barrier(struct walk *k)
{
    if (k->flags & WALK_TO_HEAP) {
        k->done = k->heap = true;
        return true;
    }
    bool whole = !k->in_chunk && chunk_is_settled(k) && chunk_walk(k);
    if (k->in_chunk || k->full)
        return k->full;
    if (!leave_to_continuation_entry(k) && !scan_to_continuation_entry(k))
        return false;
    if (!whole) {
        walk_emit(k, WALK_GAP, WALK_ID_CODE, 0);
        k->heap = true;
    }
    return true;
}

/*
 * Returns whether a stub has its frame at the frame pointer, at most `size` above the stack
 * pointer. This is possible only with a link register, which distinguishes such a frame from the
 * caller's.
 */
static bool has_frame_at_fp(const struct walk *k, uint64_t size, uint64_t *ret_pc, uint64_t *ret_fp)
{
    return k->top && !k->w->arch->return_on_stack && k->r.fp - k->r.sp <= size &&
           walk_stack_word(k, k->r.fp, ret_fp) && walk_stack_word(k, k->r.fp + 8, ret_pc);
}

/*
 * Handles routines whose frame size is unknown: they have no frame, or one that begins with a push
 * of the frame pointer.
 */
static bool leave_routine(struct walk *k)
{
    const struct walker *w = k->w;
    uint64_t pc, fp, at = k->r.fp + 8;
    /* A routine that makes no calls does not change the link register after saving it. */
    if (has_frame_at_fp(k, ROUTINE_FRAME_MAX, &pc, &fp) && pc == k->r.link &&
        walk_leave(k, pc, k->r.fp + 16, fp))
        return true;
    if (k->top && !w->arch->return_on_stack && w->arch->follows_call(&w->memory, k->r.link) &&
        leave_frameless(k))
        return true;
    /*
     * A return address follows a call. Such a routine may have aligned the stack by one word before
     * it called.
     */
    for (unsigned i = 0; i < (k->top ? 1 : 2); i++)
        if (walk_stack_word(k, k->r.sp + 8 * i, &pc) && walk_is_java_return(w, pc))
            return walk_leave(k, pc, k->r.sp + 8 * (i + 1), k->r.fp);
    walk_by_fp(k);
    if (k->r.fp < k->r.sp || !walk_stack_word(k, k->r.fp, &fp) || !walk_stack_word(k, at, &pc))
        return false;
    /* The barrier at the entry of a method keeps a word of its own above the frame pointer. */
    if (pc == ENTRY_BARRIER_COOKIE && !walk_stack_word(k, at += 8, &pc))
        return false;
    return walk_is_java_return(w, pc) && walk_leave(k, pc, at + 8, fp);
}

/*
 * Handles the stubs that thaw frames, and the stub that leaves a continuation which a monitor has
 * stopped. There are no valid frames between the stack pointer and the entry of the continuation:
 * that memory contains remains of earlier calls, or the thawed frames that have been copied so far.
 */
static bool step_continuation_stub(struct walk *k)
{
    if (k->full || k->in_chunk)
        return k->full;
    k->heap = true;
    walk_emit(k, WALK_GAP, WALK_ID_CODE, 0);
    if (k->full || leave_to_continuation_entry(k))
        return true;
    k->done = true;
    return true;
}

static bool step_stub(struct walk *k, const struct code_blob *blob)
{
    const struct walker *w = k->w;
    uint64_t pc = k->r.pc;
    /* The only address to which code returns without a call before it is the entry of a routine. */
    bool may_be_barrier = !k->top && w->layout.version >= 21 && blob->frame_bytes == 0;
    if (may_be_barrier && !w->arch->follows_call(&w->memory, pc))
        return step_return_barrier(k);
    walk_emit(k, WALK_STUB, WALK_ID_CODE | pc, 0);
    k->stopped = true;
    k->in_runtime |= k->top && blob->frame_bytes > 0;
    if (code_is_continuation_stub(&w->memory, blob))
        return step_continuation_stub(k);
    if (k->full)
        return true;
    enum frame_state state = k->top ? w->arch->stub_state(&w->memory, pc, blob->begin) : FRAME_FULL;
    if (state == FRAME_FULL && blob->frame_bytes > 0 && k->top && blob->frame_offset >= 0)
        state = w->arch->compiled_state(&w->memory, pc, blob->begin,
                                        blob->begin + (uint64_t)blob->frame_offset, blob->end,
                                        blob->frame_bytes);
    uint64_t return_pc, fp;
    /* While registers are restored, the stack pointer moves but the frame pointer does not. */
    if (state == FRAME_FULL && blob->frame_bytes >= 16 &&
        has_frame_at_fp(k, (uint64_t)blob->frame_bytes - 16, &return_pc, &fp) &&
        walk_is_code(k, return_pc))
        return walk_leave(k, return_pc, k->r.fp + 16, fp);
    if (state != FRAME_FULL || blob->frame_bytes > 0)
        return leave_with_state(k, state, blob->frame_bytes);
    return leave_routine(k) || (may_be_barrier && step_return_barrier(k));
}

at_each_sample bool java_step(struct walk *k)
{
    const struct walker *w = k->w;
    struct code_blob blob;
    if (code_is_interpreter(&w->code, k->r.pc))
        return step_interpreter(k);
    if (k->r.pc == w->code.call_stub_return)
        return step_call_stub(k);
    if (step_site(k))
        return true;
    if (k->refuted || !code_find(&w->code, &w->memory, k->r.pc, &blob))
        return false;
    switch (blob.kind) {
    case CODE_COMPILED:
    case CODE_NATIVE:
        return step_compiled(k, &blob);
    case CODE_VTABLE:
        return leave_frameless(k);
    case CODE_ADAPTER:
        return step_adapter(k, &blob);
    default:
        return step_stub(k, &blob);
    }
}
