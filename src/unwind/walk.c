/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/walk.h"

#include "hotspot/image.h"
#include "hotspot/method.h"
#include "unwind/internal.h"
#include "unwind/known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MAX = 1 << 20,
    STACK_SIZE_MAX = 1 << 30,
    FOREIGN_STACK = 8 << 20, /* assumed for a thread that is not a Java thread; loads are guarded */
    FETCH_BYTES = 6 << 10,   /* of the stack; about 60 frames */
    SITES_BYTES = 1 << 10,   /* of the stack at a time, for sites */
    /* how far above the stack pointer the return address of a lost top frame is searched for */
    SCAN_WORDS = 64,
};

_Static_assert((METHOD_CHECK_MASK >> (61 - WALK_ID_CHECK_SHIFT)) == 0, "an id holds the check");

bool walk_stack_word_guarded(const struct walk *k, uint64_t address, uint64_t *ret)
{
    return address >= k->stack_low && address < k->stack_high && (address & 7) == 0 &&
           load_u64(walk_memory(k), address, ret);
}

at_each_sample bool walk_is_code(const struct walk *k, uint64_t pc)
{
    return code_holds(&k->w->code, pc) || module_find(k->modules, pc) != NULL;
}

at_each_sample bool walk_is_java_return(const struct walker *w, uint64_t pc)
{
    return code_is_interpreter(&w->code, pc) ||
           (code_holds(&w->code, pc) && w->arch->follows_call(&w->memory, pc));
}

at_each_sample bool walk_read_anchor(const struct walk *k, uint64_t address, struct anchor *ret)
{
    const struct hotspot_layout *l = &k->w->layout;
    const struct memory *m = walk_memory(k);
    struct anchor a = {0};
    if (!load_u64(m, address + (uint64_t)l->anchor_sp, &a.sp) ||
        !load_u64(m, address + (uint64_t)l->anchor_pc, &a.pc) ||
        (l->anchor_fp != LAYOUT_NONE && !load_u64(m, address + (uint64_t)l->anchor_fp, &a.fp)))
        return false;
    if (k->words && address >= k->stack_low && address < k->stack_high) {
        walk_note(k, address + (uint64_t)l->anchor_sp, a.sp);
        walk_note(k, address + (uint64_t)l->anchor_pc, a.pc);
        if (l->anchor_fp != LAYOUT_NONE)
            walk_note(k, address + (uint64_t)l->anchor_fp, a.fp);
    }
    /* There is no pc: the call that left Java has pushed it. */
    if (a.sp == 0 || (a.pc == 0 && !walk_stack_word(k, a.sp - 8, &a.pc)))
        return false;
    *ret = a;
    return true;
}

at_each_sample void walk_emit(struct walk *k, enum walk_kind kind, uint64_t id, int32_t bci)
{
    if (!walk_is_java(kind) && kind != WALK_GAP && !(k->flags & WALK_WITH_NATIVE))
        return;
    if (k->count == k->max) {
        k->full = true;
        return;
    }
    k->frames[k->count++] = (struct walk_frame){.id = id, .bci = bci, .kind = kind};
}

at_each_sample void walk_emit_java(struct walk *k, enum walk_kind kind, uint64_t method,
                                   int32_t bci)
{
    if (k->claims)
        __builtin_prefetch(known_method_at(k->w->known, method));
    walk_emit(k, kind, walk_id_of_method(method, 0), bci);
}

at_each_sample bool walk_leave(struct walk *k, uint64_t pc, uint64_t sp, uint64_t fp)
{
    if (unlikely(k->in_chunk))
        return chunk_leave(k, pc, sp, fp);
    pc &= k->w->arch->address_mask;
    /*
     * Stack addresses decrease towards callees; a top frame may consist of a return address in a
     * register alone.
     */
    bool grows = sp > k->r.sp || (k->top && sp == k->r.sp);
    if (!grows || sp > k->stack_high || (sp & 7) || !walk_is_code(k, pc))
        return false;
    k->r.pc = pc;
    k->r.sp = sp;
    k->r.fp = fp;
    k->top = false;
    return true;
}

/* Resumes at the last Java frame that the VM saved, if that is further up. */
at_each_sample static bool resume(struct walk *k)
{
    struct anchor a = k->anchor;
    k->anchor = (struct anchor){0};
    if (a.sp <= k->r.sp || a.sp >= k->stack_high || !code_holds(&k->w->code, a.pc))
        return false;
    k->r = (struct registers){.pc = a.pc, .sp = a.sp, .fp = a.fp};
    k->fp_at = 0;
    k->top = false;
    k->stopped = true;
    return true;
}

/*
 * Searches for the caller of a top frame that could not be left: the first word above it that is a
 * return address into Java code.
 */
static bool scan(struct walk *k)
{
    const struct walker *w = k->w;
    for (unsigned i = 0; i < SCAN_WORDS; i++) {
        uint64_t at = k->r.sp + 8 * (uint64_t)i, word, below;
        struct code_blob blob;
        if (!walk_stack_word(k, at, &word))
            return false;
        if (!code_holds(&w->code, word) || !w->arch->follows_call(&w->memory, word) ||
            !code_find(&w->code, &w->memory, word, &blob))
            continue;
        /* The word below is the caller's frame pointer if the callee has pushed it. */
        uint64_t fp =
            i > 0 && walk_stack_word(k, at - 8, &below) && below > at && below < k->stack_high
                ? below
                : k->r.fp;
        bool compiled = (blob.kind == CODE_COMPILED || blob.kind == CODE_NATIVE) &&
                        walk_stack_word(k, at + (uint64_t)blob.frame_bytes, &word) &&
                        walk_is_code(k, word);
        if (compiled || (blob.kind == CODE_INTERPRETER && fp > at))
            return walk_stack_word(k, at, &word) && walk_leave(k, word, at + 8, fp);
    }
    return false;
}

/*
 * Returns whether the form of a frame is uncertain: that of the top frame, of stubs and of
 * adapters.
 */
static bool is_irregular(const struct walk *k)
{
    struct code_blob blob;
    return code_holds(&k->w->code, k->r.pc) &&
           (k->top ||
            (code_find(&k->w->code, &k->w->memory, k->r.pc, &blob) &&
             (blob.kind == CODE_STUB || blob.kind == CODE_ADAPTER || blob.kind == CODE_VTABLE)));
}

static bool recover(struct walk *k)
{
    bool irregular = is_irregular(k);
    k->recovered = true;
    return resume(k) || (irregular && scan(k));
}

/*
 * Makes sure that the next part of the stack is mapped: it is above the stack pointer of the
 * current thread.
 */
static void map_next_part(struct walk *k)
{
    uint64_t from = k->r.sp & ~UINT64_C(7),
             to = MIN(from + FETCH_BYTES, k->stack_high & ~UINT64_C(7)), word;
    for (uint64_t page = from; page < to; page = (page | 4095) + 1)
        if (!load_u64(&k->w->memory, page & ~UINT64_C(7), &word))
            to = page;
    k->mapped_low = from;
    k->mapped_bytes = MAX(to, from) - from;
}

/*
 * Prefetches, all at once, the sites of words on the next part of the stack that may be return
 * addresses, so that the walk finds them in the cache.
 */
static void fetch_sites(struct walk *k)
{
    const struct walker *w = k->w;
    uint64_t from = k->r.sp & ~UINT64_C(7),
             to = MIN(from + SITES_BYTES, k->mapped_low + k->mapped_bytes);
    uint64_t low = w->code.low, size = w->code.high - low;
    k->fetched = from + SITES_BYTES;
    from += k->moved;
    to += k->moved;
    for (const uint64_t *at = (const uint64_t *)(uintptr_t)from;
         at < (const uint64_t *)(uintptr_t)to; at++)
        if (*at - low < size && !code_is_interpreter(&w->code, *at))
            __builtin_prefetch(site_at(w->sites, *at));
}

static void prefetch_next(struct walk *k)
{
    if (!k->later && k->r.sp - k->mapped_low + SITES_BYTES > k->mapped_bytes)
        map_next_part(k);
    if (k->r.sp >= k->fetched && !code_is_interpreter(&k->w->code, k->r.pc))
        fetch_sites(k);
}

/* Walks from the registers to the end of the stack, or to where the walk fails. */
at_each_sample static uint8_t run(struct walk *k)
{
    uint64_t faults = memory_guard_faults();
    unsigned steps = 0;
    while (!k->done && !k->full) {
        bool in_java = code_holds(&k->w->code, k->r.pc);
        /*
         * When native frames are not wanted, the frame that the VM saved is the shortest way past
         * them.
         */
        if (!in_java && !(k->flags & WALK_WITH_NATIVE) && resume(k))
            continue;
        if (in_java && !k->top && k->claims)
            prefetch_next(k);
        bool ok = k->r.pc != 0 && steps++ < STEPS_MAX && (in_java ? java_step(k) : native_step(k));
        if (!ok && !k->full && (k->refuted || !recover(k)))
            return memory_guard_faults() != faults ? WALK_FAULT : WALK_BROKEN;
    }
    return WALK_COMPLETE;
}

at_each_sample void walk_run(struct walk *k, struct walk_end *ret_end)
{
    struct walk start = *k;
    uint32_t words = k->words ? k->words->n : 0;
    uint8_t status = run(k);
    if (k->claims && !claims_settle(k)) {
        *k = start;
        k->claims = NULL;
        if (k->words) {
            k->words->n = words;
            k->words->codes = k->words->methods = 0;
        }
        if (k->notes)
            k->notes->count = 0;
        status = run(k);
    }
    walk_finish(k);
    if (status == WALK_COMPLETE)
        status = k->full ? WALK_DEPTH : k->heap ? WALK_HEAP : WALK_COMPLETE;
    *ret_end = (struct walk_end){
        .status = status, .recovered = k->recovered, .pc = k->r.pc, .sp = k->r.sp};
}

static bool set_up_stack(struct walk *k)
{
    const struct hotspot_layout *l = &k->w->layout;
    const struct memory *m = &k->w->memory;
    uint64_t base, size;
    k->stack_low = k->r.sp & ~UINT64_C(7);
    if (!k->thread) {
        k->stack_high = k->stack_low + FOREIGN_STACK;
        return true;
    }
    if (!load_u64(m, k->thread + (uint64_t)l->thread_stack_base, &base) ||
        !load_u64(m, k->thread + (uint64_t)l->thread_stack_size, &size) || size > STACK_SIZE_MAX ||
        base < size)
        return false;
    if (k->r.sp == 0)
        k->stack_low = base - size;
    else if (k->r.sp < base - size || k->r.sp >= base)
        return false;
    k->stack_high = base;
    return true;
}

/*
 * Sets up caches and prefetching for a walk of this process's memory; without them the walk gives
 * the same result.
 */
static void set_up_speed(struct walk *k, struct claims *claims, struct notes *notes)
{
    if (!k->w->sites || !k->w->known)
        return;
    if (code_holds(&k->w->code, k->r.pc))
        code_fetch(&k->w->code, k->r.pc);
    claims->sites = claims->methods = 0;
    notes->count = 0;
    k->claims = claims;
    k->notes = notes;
    k->epoch = unloads_epoch(&k->w->unloads, &k->w->memory);
}

static void fetch_stack(uint64_t sp)
{
    for (uint64_t at = sp; at < sp + FETCH_BYTES; at += 64)
        __builtin_prefetch((const void *)(uintptr_t)at);
}

/* This data is used so rarely that the caches no longer hold it. */
at_each_sample void walker_fetch(const struct walker *w, const void *context)
{
    struct registers r = {0};
    for (size_t at = 0; at < sizeof(*w); at += 64)
        __builtin_prefetch((const char *)w + at);
    arch_registers(context, &r);
    fetch_stack(r.sp);
    if (w->sites)
        __builtin_prefetch(site_at(w->sites, walk_top_key(r.pc)));
}

/* Prefetches what a walk reads of the thread. */
static void fetch_thread(const struct walker *w, uint64_t thread)
{
    const struct hotspot_layout *l = &w->layout;
    if (!thread)
        return;
    __builtin_prefetch((const void *)(uintptr_t)(thread + (uint64_t)l->thread_stack_base));
    __builtin_prefetch((const void *)(uintptr_t)(thread + (uint64_t)l->thread_anchor));
    __builtin_prefetch((const void *)(uintptr_t)(thread + (uint64_t)l->thread_anchor + 64));
}

at_each_sample static unsigned walk_from(const struct walker *w, const void *context,
                                         const void *env, unsigned flags, struct walk_frame *frames,
                                         unsigned max, struct walk_words *words,
                                         struct walk_end *ret_end)
{
    struct claims claims;
    struct notes notes;
    struct walk k = {.w = w,
                     .modules = modules_current(),
                     .words = words,
                     .frames = frames,
                     .max = max,
                     .flags = flags,
                     .top = context != NULL};
    if (env)
        k.thread = (uint64_t)(uintptr_t)env - (uint64_t)w->env_offset;
    if (context)
        arch_registers(context, &k.r);
    fetch_thread(w, k.thread);
    *ret_end = (struct walk_end){.status = WALK_BROKEN, .pc = k.r.pc, .sp = k.r.sp};
    if (!set_up_stack(&k))
        return 0;
    if (k.thread && !walk_read_anchor(&k, k.thread + (uint64_t)w->layout.thread_anchor, &k.anchor))
        k.anchor = (struct anchor){0};
    if (!context && !resume(&k)) {
        ret_end->status = WALK_COMPLETE; /* no Java on this stack */
        return 0;
    }
    if (!context)
        fetch_stack(k.r.sp);
    set_up_speed(&k, &claims, &notes);
    walk_run(&k, ret_end);
    return k.count;
}

at_each_sample unsigned walk_stack(const struct walker *w, const void *context, const void *env,
                                   unsigned flags, struct walk_frame *frames, unsigned max,
                                   struct walk_end *ret_end)
{
    return walk_from(w, context, env, flags, frames, max, NULL, ret_end);
}

unsigned walk_own_stack(const struct walker *w, const void *env, unsigned flags,
                        struct walk_frame *frames, unsigned max, struct walk_words *ret_words,
                        struct walk_end *ret_end)
{
    if (ret_words) {
        ret_words->n = ret_words->codes = ret_words->methods = 0;
        if (!known_stack_own_start(w, env, &ret_words->start))
            ret_words->n = WALK_WORDS_MAX + 1;
    }
    return walk_from(w, NULL, env, flags, frames, max, ret_words, ret_end);
}

static int prepare(struct walker *w, void *libjvm, const void *env, uint64_t java_thread, char *why,
                   size_t size)
{
    struct hotspot_image image = hotspot_image_of_library(libjvm);
    int r = hotspot_layout_read(&image, &w->layout, why, size);
    if (r < 0)
        return r;
    /*
     * Such a VM checks its signal handlers from time to time, and prints on the program's output
     * when one has been replaced.
     */
    if (hotspot_flag(&w->layout, &image, "CheckJNICalls")) {
        snprintf(why, size, "-Xcheck:jni forbids a guard against faults");
        return -ENOTSUP;
    }
    if ((r = memory_guard_init()) < 0) {
        snprintf(why, size, "no guard against faults: %s", strerror(-r));
        return -ENOTSUP;
    }
    unloads_find(&w->unloads, &w->layout, &w->memory);
    if ((r = code_cache_init(&w->code, &w->layout, &w->memory, why, size)) < 0)
        return r;
    unsigned bcp =
        w->arch->interpreter_bcp(&w->memory, w->code.interpreter, w->code.interpreter_end);
    if (bcp)
        w->layout.interpreter_bcp = (uint8_t)bcp;
    w->env_offset = (int64_t)((uint64_t)(uintptr_t)env - java_thread);
    if (w->env_offset <= 0 || w->env_offset >= w->layout.sizeof_thread) {
        snprintf(why, size, "JDK %d keeps a thread's JNI environment elsewhere", w->layout.version);
        return -ENOTSUP;
    }
    for (unsigned i = 0; i < w->code.entry_count; i++)
        w->entry_frame[i] = w->arch->interpreter_frame(&w->memory, w->code.entries[i].begin,
                                                       w->code.entries[i].end);
    (void)image.symbol(image.context, "gHotSpotVMStructs", &w->libjvm);
    return modules_refresh() ? 0 : -ENOMEM;
}

static void walker_free(struct walker *w)
{
    if (!w)
        return;
    free(w->native_cache);
    sites_free(w->sites);
    known_methods_free(w->known);
    free(w);
}

int walker_new(struct walker **ret, void *libjvm, const void *env, uint64_t java_thread, char *why,
               size_t size)
{
    struct walker *w = calloc(1, sizeof(*w));
    int r = -ENOMEM;
    if (w && (w->native_cache = calloc(NATIVE_CACHE_SIZE, sizeof(*w->native_cache)))) {
        w->memory = process_memory;
        w->arch = &ARCH_HERE;
        w->sites = sites_new(); /* without these, walks are only slower */
        w->known = known_methods_new();
        r = prepare(w, libjvm, env, java_thread, why, size);
    }
    if (r == -ENOMEM)
        snprintf(why, size, "out of memory");
    if (r < 0)
        walker_free(w);
    else
        *ret = w;
    return r;
}

void walker_chunks(struct walker *w, const struct walk_chunks *chunks)
{
    w->chunks = *chunks;
    w->has_chunks = true;
}

void walker_refresh(struct walker *w)
{
    (void)modules_refresh();
}

int walker_describe(const struct walker *w, uint64_t id, struct method_description *ret)
{
    return method_describe(&w->layout, &w->memory, walk_id_method(id), walk_id_check(id), ret);
}

bool walker_class_name(const struct walker *w, uint64_t address, struct buf *ret)
{
    return method_class_name(&w->layout, &w->memory, address, ret);
}

const struct hotspot_layout *walker_layout(const struct walker *w)
{
    return &w->layout;
}

void walker_stub_name(const struct walker *w, uint64_t pc, char *ret, size_t size)
{
    struct code_blob blob;
    ret[0] = 0;
    if (!code_holds(&w->code, pc) || !code_find(&w->code, &w->memory, pc, &blob))
        return;
    if (blob.kind == CODE_INTERPRETER) {
        snprintf(ret, size, "Interpreter");
        return;
    }
    for (size_t i = 0; i + 1 < size; i++) {
        char c;
        if (!memory_read(&w->memory, blob.name + i, &c, 1) || !c)
            break;
        ret[i] = c;
        ret[i + 1] = 0;
    }
}

uint64_t walker_faults(void)
{
    return memory_guard_faults();
}
