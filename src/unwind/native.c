/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes one step out of native code: by the library's call frame information, or by the frame
 * pointer if the library has none.
 */
#include "unwind/cfi.h"
#include "unwind/internal.h"

#include <ucontext.h>

/*
 * Packs a rule into 59 bits. The offsets of frames are small; a rule whose offsets do not fit is
 * not cached.
 */
static bool pack(const struct cfi_rule *rule, uint64_t *ret)
{
    if (rule->offset < -(1 << 19) || rule->offset >= 1 << 19 || rule->fp_offset < -(1 << 16) ||
        rule->fp_offset >= 1 << 16 || rule->ra_offset < -(1 << 16) || rule->ra_offset >= 1 << 16)
        return false;
    *ret = (uint64_t)rule->base | (uint64_t)rule->fp_saved << 3 | (uint64_t)rule->ra_saved << 4 |
           ((uint64_t)(uint32_t)rule->offset & 0xfffff) << 5 |
           ((uint64_t)(uint32_t)rule->fp_offset & 0x1ffff) << 25 |
           ((uint64_t)(uint32_t)rule->ra_offset & 0x1ffff) << 42;
    return true;
}

static int32_t field(uint64_t packed, unsigned shift, unsigned bits)
{
    return (int32_t)((int64_t)(packed << (64 - shift - bits)) >> (64 - bits));
}

static struct cfi_rule unpack(uint64_t packed)
{
    return (struct cfi_rule){
        .base = packed & 7,
        .fp_saved = packed >> 3 & 1,
        .ra_saved = packed >> 4 & 1,
        .offset = field(packed, 5, 20),
        .fp_offset = field(packed, 25, 17),
        .ra_offset = field(packed, 42, 17),
    };
}

/*
 * Finds the rule for pc, through the cache. Returns false when there is none. Unloading a library
 * changes the generation, and with it every key.
 */
static bool find_rule(const struct walk *k, const struct module *module, uint64_t pc,
                      struct cfi_rule *ret)
{
    const struct walker *w = k->w;
    uint64_t key = pc ^ (uint64_t)k->modules->generation << 48, packed;
    struct native_cache_entry *e = &w->native_cache[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
    _Static_assert(NATIVE_CACHE_SIZE == 1 << 12, "the hash has as many bits");
    packed = __atomic_load_n(&e->rule, __ATOMIC_RELAXED);
    if (packed && (__atomic_load_n(&e->sum, __ATOMIC_RELAXED) ^ packed) == key) {
        *ret = unpack(packed);
        return ret->base != CFI_UNKNOWN;
    }
    struct cfi_rule rule = {0};
    bool found = cfi_find(w->arch, &w->memory, module, pc, &rule);
    if (!found)
        rule = (struct cfi_rule){.base = CFI_UNKNOWN, .offset = 1};
    if (pack(&rule, &packed)) {
        __atomic_store_n(&e->rule, packed, __ATOMIC_RELAXED);
        __atomic_store_n(&e->sum, key ^ packed, __ATOMIC_RELAXED);
    }
    if (found)
        *ret = rule;
    return found;
}

static bool apply(struct walk *k, const struct cfi_rule *rule)
{
    const struct registers *r = &k->r;
    uint64_t frame = (rule->base == CFI_FP ? r->fp : r->sp) + (uint64_t)(int64_t)rule->offset;
    uint64_t fp = r->fp;
    uint64_t pc = r->link;
    /* The lazy binding code pushes one word before offset 11 of an entry. */
    if (rule->base == CFI_PLT)
        frame = r->sp + 8 + ((r->pc & 15) >= 11 ? 8 : 0);
    uint64_t fp_at = frame + (uint64_t)(int64_t)rule->fp_offset,
             ra_at = frame + (uint64_t)(int64_t)rule->ra_offset;
    if (rule->fp_saved && !walk_stack_word(k, fp_at, &fp))
        return false;
    if (rule->ra_saved || rule->base == CFI_PLT ? !walk_stack_word(k, ra_at, &pc) : !k->top)
        return false;
    return walk_leave(k, pc, frame, fp);
}

/* Above a signal handler's frame, the interrupted registers are on the stack. */
static bool leave_signal(struct walk *k)
{
    struct walk inner = *k;
    ucontext_t context;
    if (!memory_read(walk_memory(k), k->r.sp, &context, sizeof(context)))
        return false;
    arch_registers(&context, &inner.r);
    if (inner.r.sp <= k->r.sp || inner.r.sp >= k->stack_high || !walk_is_code(k, inner.r.pc))
        return false;
    k->r = inner.r;
    k->top = true;
    return true;
}

static bool leave_by_frame_pointer(struct walk *k)
{
    uint64_t fp, pc;
    return k->r.fp >= k->r.sp && walk_stack_word(k, k->r.fp, &fp) &&
           walk_stack_word(k, k->r.fp + 8, &pc) && walk_leave(k, pc, k->r.fp + 16, fp);
}

bool native_step(struct walk *k)
{
    const struct walker *w = k->w;
    /*
     * A return address may lie after the function's last instruction, so the call before it is
     * looked up.
     */
    uint64_t pc = k->r.pc - (k->top ? 0 : 1);
    const struct module *module = module_find(k->modules, pc);
    struct cfi_rule rule;
    if (!module)
        return leave_by_frame_pointer(k);
    walk_emit(k, w->libjvm - module->begin < module->end - module->begin ? WALK_VM : WALK_NATIVE,
              WALK_ID_CODE | k->r.pc, 0);
    if (k->full)
        return true;
    if (!find_rule(k, module, pc, &rule))
        return (k->top && w->arch->linkage_entry(&w->memory, pc) &&
                walk_leave(k, k->r.link, k->r.sp, k->r.fp)) ||
               leave_by_frame_pointer(k);
    if (rule.base == CFI_SIGNAL)
        return leave_signal(k);
    if (rule.base == CFI_END) {
        k->done = true;
        return true;
    }
    return apply(k, &rule);
}
