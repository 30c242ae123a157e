/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/code.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    SEGMENT_FREE = 0xff,
    SEGMENT_HOPS_MAX = 1 << 16,
    BLOB_SIZE_MAX = 64 << 20,
    FRAME_WORDS_MAX = 1 << 16,
    CODELETS_MAX = 4096,
    HEADER_BYTES = 320,
    GUESSES = 3,
};

/* The first eight characters of a blob's name as a number; names are compared by it. */
static inline uint64_t name8(const char text[8])
{
    uint64_t number;
    memcpy(&number, text, sizeof(number));
    return number;
}

at_each_sample static bool load_i32(const struct memory *m, uint64_t address, int32_t *ret)
{
    uint32_t v;
    bool ok = load_u32(m, address, &v);
    if (ok)
        *ret = (int32_t)v;
    return ok;
}

static bool read_heap(const struct hotspot_layout *l, const struct memory *m, uint64_t at,
                      struct code_heap *ret)
{
    uint64_t memory = at + (uint64_t)l->heap_memory, segmap = at + (uint64_t)l->heap_segmap;
    return load_u64(m, memory + (uint64_t)l->space_low_boundary, &ret->low) &&
           load_u64(m, memory + (uint64_t)l->space_high_boundary, &ret->high) &&
           load_u64(m, segmap + (uint64_t)l->space_low, &ret->segmap) &&
           load_u32(m, at + (uint64_t)l->heap_log2_segment, &ret->log2_segment) &&
           ret->low < ret->high && ret->segmap && ret->log2_segment >= 4 && ret->log2_segment <= 16;
}

static bool read_heaps(struct code_cache *c, const struct memory *m)
{
    const struct hotspot_layout *l = c->layout;
    uint64_t at, data;
    uint32_t count;
    if (l->code_heap) {
        c->heap_count = 1;
        return load_u64(m, l->code_heap, &at) && read_heap(l, m, at, &c->heaps[0]);
    }
    if (!load_u64(m, l->code_heaps, &at) || !load_u32(m, at + (uint64_t)l->array_len, &count) ||
        !load_u64(m, at + (uint64_t)l->array_data, &data) || count == 0 || count > CODE_HEAPS_MAX)
        return false;
    for (c->heap_count = 0; c->heap_count < count; c->heap_count++)
        if (!load_u64(m, data + 8 * c->heap_count, &at) ||
            !read_heap(l, m, at, &c->heaps[c->heap_count]))
            return false;
    return true;
}

/*
 * The codelets of the interpreter that are entries of methods. In them the frame may not exist yet.
 */
static bool read_interpreter(struct code_cache *c, const struct memory *m)
{
    const struct hotspot_layout *l = c->layout;
    uint64_t queue, buffer;
    uint32_t limit, at, end;
    if (!load_u64(m, l->interpreter_code, &queue) ||
        !load_u64(m, queue + (uint64_t)l->queue_buffer, &buffer) ||
        !load_u32(m, queue + (uint64_t)l->queue_limit, &limit) ||
        !load_u32(m, queue + (uint64_t)l->queue_begin, &at) ||
        !load_u32(m, queue + (uint64_t)l->queue_end, &end) || limit == 0 || end > limit || at > end)
        return false;
    c->interpreter = buffer;
    c->interpreter_end = buffer + limit;
    for (unsigned n = 0; at < end && n < CODELETS_MAX; n++) {
        uint64_t codelet = buffer + at, description;
        uint32_t size;
        char text[64] = "";
        if (!load_u32(m, codelet + (uint64_t)l->codelet_size, &size) || size < 8 ||
            size > end - at ||
            !load_u64(m, codelet + (uint64_t)l->codelet_description, &description))
            return false;
        (void)memory_read(m, description, text, sizeof(text) - 1);
        if (strstr(text, "method entry point") && c->entry_count < INTERPRETER_ENTRIES_MAX)
            c->entries[c->entry_count++] = (struct interpreter_entry){codelet, codelet + size};
        at += size;
    }
    return c->entry_count > 0;
}

int code_cache_init(struct code_cache *ret, const struct hotspot_layout *layout,
                    const struct memory *m, char *why, size_t size)
{
    struct code_cache c = {.layout = layout, .low = UINT64_MAX};
    const char *wrong = NULL;
    if (!read_heaps(&c, m))
        wrong = "the code heaps are not where they should be";
    else if (!read_interpreter(&c, m))
        wrong = "this VM has no template interpreter";
    else if (!load_u64(m, layout->call_stub_return, &c.call_stub_return))
        wrong = "the call stub is not where it should be";
    for (unsigned i = 0; i < c.heap_count; i++) {
        c.low = MIN(c.low, c.heaps[i].low);
        c.high = MAX(c.high, c.heaps[i].high);
    }
    if (!wrong && (!code_holds(&c, c.interpreter) || !code_holds(&c, c.call_stub_return)))
        wrong = "the interpreter lies outside of the code heaps";
    if (wrong) {
        snprintf(why, size, "JDK %d: %s", layout->version, wrong);
        return -ENOTSUP;
    }
    if (layout->cont_return_pc && !load_u64(m, layout->cont_return_pc, &c.cont_return))
        c.cont_return = 0;
    *ret = c;
    return 0;
}

/*
 * Finds the CodeBlob that covers pc by the heap's segment map, of which each byte is the distance
 * back to the beginning of the block. Returns false when there is none.
 */
static bool find_block(const struct code_cache *c, const struct memory *m, uint64_t pc,
                       uint64_t *ret)
{
    const struct code_heap *h = c->heaps, *end = h + c->heap_count;
    while (h < end && pc - h->low >= h->high - h->low)
        h++;
    if (h == end)
        return false;
    uint64_t segment = (pc - h->low) >> h->log2_segment;
    uint8_t back, used;
    for (unsigned hops = 0;; hops++) {
        if (!load_u8(m, h->segmap + segment, &back) || back == SEGMENT_FREE || back > segment ||
            hops > SEGMENT_HOPS_MAX)
            return false;
        if (back == 0)
            break;
        segment -= back;
    }
    uint64_t block = h->low + (segment << h->log2_segment);
    if (!load_u8(m, block + (uint64_t)c->layout->block_used, &used) || !used)
        return false;
    *ret = block + (uint64_t)c->layout->sizeof_block;
    return true;
}

at_each_sample void code_fetch(const struct code_cache *c, uint64_t pc)
{
    for (unsigned i = 0; i < c->heap_count; i++)
        if (pc - c->heaps[i].low < c->heaps[i].high - c->heaps[i].low)
            __builtin_prefetch(
                (const void *)(uintptr_t)(c->heaps[i].segmap +
                                          ((pc - c->heaps[i].low) >> c->heaps[i].log2_segment)));
}

static bool read_bounds(const struct hotspot_layout *l, const struct memory *m, struct code_blob *b)
{
    int32_t offset, end;
    if (l->blob_code_begin != LAYOUT_NONE)
        return load_u64(m, b->address + (uint64_t)l->blob_code_begin, &b->begin) &&
               load_u64(m, b->address + (uint64_t)l->blob_code_end, &b->end);
    if (!load_i32(m, b->address + (uint64_t)l->blob_code_offset, &offset) ||
        !load_i32(m, b->address + (uint64_t)l->blob_data_offset, &end))
        return false;
    b->begin = b->address + (uint64_t)offset;
    b->end = b->address + (uint64_t)end;
    return true;
}

static enum code_kind kind_of_name(uint64_t name)
{
    return name == name8("nmethod")    ? CODE_COMPILED
           : name == name8("native n") ? CODE_NATIVE
           : name == name8("vtable c") ? CODE_VTABLE
           : name == name8("I2C/C2I ") ? CODE_ADAPTER
                                       : CODE_STUB;
}

/* The name that all nmethods have, for prefetching it. */
static _Atomic uint64_t nmethod_name;

at_each_sample bool code_find(const struct code_cache *c, const struct memory *m, uint64_t pc,
                              struct code_blob *ret)
{
    const struct hotspot_layout *l = c->layout;
    struct code_blob b = {.frame_offset = -1};
    int32_t size, words;
    uint64_t name;
    if (code_is_interpreter(c, pc)) {
        *ret = (struct code_blob){.kind = CODE_INTERPRETER,
                                  .begin = c->interpreter,
                                  .end = c->interpreter_end,
                                  .frame_offset = -1};
        return true;
    }
    __builtin_prefetch(
        (const void *)(uintptr_t)atomic_load_explicit(&nmethod_name, memory_order_relaxed));
    if (!find_block(c, m, pc, &b.address))
        return false;
    /*
     * All of an nmethod's header is needed, and fetching its cold cache lines together takes less
     * time than one after the other.
     */
    for (unsigned at = 0; at < HEADER_BYTES; at += 64)
        __builtin_prefetch((const void *)(uintptr_t)(b.address + at));
    if (!load_i32(m, b.address + (uint64_t)l->blob_size, &size) || size <= 0 ||
        size > BLOB_SIZE_MAX || pc - b.address >= (uint64_t)size || !read_bounds(l, m, &b) ||
        !load_u64(m, b.address + (uint64_t)l->blob_name, &b.name) ||
        !load_i32(m, b.address + (uint64_t)l->blob_frame_size, &words))
        return false;
    if (b.begin < b.address || b.end > b.address + (uint64_t)size || b.begin > b.end)
        return false;
    /* The field has 16 bits from JDK 23 on. */
    if (l->blob_mutable_data != LAYOUT_NONE) {
        uint16_t offset;
        if (!load_u16(m, b.address + (uint64_t)l->blob_frame_complete, &offset))
            return false;
        b.frame_offset = (int16_t)offset;
    } else if (!load_i32(m, b.address + (uint64_t)l->blob_frame_complete, &b.frame_offset)) {
        return false;
    }
    if (!memory_read(m, b.name, &name, sizeof(name)))
        return false;
    b.kind = kind_of_name(name);
    if (b.kind == CODE_COMPILED &&
        atomic_load_explicit(&nmethod_name, memory_order_relaxed) != b.name)
        atomic_store_explicit(&nmethod_name, b.name, memory_order_relaxed);
    b.frame_bytes = words > 0 && words < FRAME_WORDS_MAX ? words * 8 : 0;
    *ret = b;
    return true;
}

bool code_is_continuation_stub(const struct memory *m, const struct code_blob *blob)
{
    static const char name[] = "StubRoutines (continuation"; /* "... stubs)", "...stubs)" */
    char text[sizeof(name) - 1];
    return blob->kind == CODE_STUB && memory_read(m, blob->name, text, sizeof(text)) &&
           memcmp(text, name, sizeof(text)) == 0;
}

const struct interpreter_entry *code_interpreter_entry(const struct code_cache *c, uint64_t pc)
{
    for (unsigned i = 0; i < c->entry_count; i++)
        if (pc - c->entries[i].begin < c->entries[i].end - c->entries[i].begin)
            return &c->entries[i];
    return NULL;
}

/*
 * Finds the tables of an nmethod: the descriptors of addresses, from *ret_pcs up to *ret_pcs_end,
 * and the data to which their scopes refer.
 */
static bool read_tables(struct code_scopes *s, const struct code_blob *b, uint64_t *ret_pcs,
                        uint64_t *ret_pcs_end)
{
    const struct hotspot_layout *l = s->cache->layout;
    const struct memory *m = s->memory;
    int32_t pcs, end, metadata, scopes;
    uint64_t base = b->address;
    if (!load_u64(m, base + (uint64_t)l->nm_method, &s->method) ||
        !load_i32(m, base + (uint64_t)l->nm_scopes_pcs, &pcs))
        return false;
    if (l->nm_immutable_data != LAYOUT_NONE) {
        uint64_t data, mutable;
        if (!load_u64(m, base + (uint64_t)l->nm_immutable_data, &data) ||
            !load_u64(m, base + (uint64_t)l->blob_mutable_data, &mutable) ||
            !load_i32(m, base + (uint64_t)l->blob_relocation_size, &metadata) ||
            !load_i32(m, base + (uint64_t)l->nm_scopes_data, &scopes))
            return false;
        s->scopes = data + (uint64_t)scopes;
        s->metadata = mutable + (uint64_t)metadata;
        *ret_pcs = data + (uint64_t)pcs;
        *ret_pcs_end = s->scopes; /* the scopes follow immediately */
        return true;
    }
    if (!load_i32(m, base + (uint64_t)l->nm_metadata, &metadata) ||
        !load_i32(m, base + (uint64_t)l->nm_dependencies, &end))
        return false;
    if (l->nm_scopes_data_begin != LAYOUT_NONE) {
        if (!load_u64(m, base + (uint64_t)l->nm_scopes_data_begin, &s->scopes))
            return false;
    } else {
        if (!load_i32(m, base + (uint64_t)l->nm_scopes_data, &scopes))
            return false;
        s->scopes = base + (uint64_t)scopes;
    }
    s->metadata = base + (uint64_t)metadata;
    *ret_pcs = base + (uint64_t)pcs;
    *ret_pcs_end = base + (uint64_t)end;
    return true;
}

static void fetch(uint64_t address)
{
    __builtin_prefetch((const void *)(uintptr_t)address);
}

/*
 * Estimates where the descriptor of pc is among `count` of them, which are spread about evenly over
 * the code.
 */
static uint64_t guess(const struct code_blob *blob, uint64_t pc, uint64_t count)
{
    return pc - blob->begin < blob->end - blob->begin
               ? count * (pc - blob->begin) / (blob->end - blob->begin)
               : 0;
}

at_each_sample void code_fetch_scopes(const struct code_cache *c, const struct memory *m,
                                      const struct code_blob *blob, uint64_t pc)
{
    enum { AROUND = 4 * 64 };

    struct code_scopes s = {.cache = c, .memory = m};
    uint64_t pcs, end, size = (uint64_t)c->layout->sizeof_pc_desc;
    fetch(blob->begin);
    fetch(blob->begin + 64);
    if (!read_tables(&s, blob, &pcs, &end) || end < pcs)
        return;
    uint64_t at = pcs + guess(blob, pc, (end - pcs) / size) * size;
    for (uint64_t line = MAX(pcs, at - AROUND); line < MIN(end, at + AROUND); line += 64)
        fetch(line);
    fetch(s.metadata);
    fetch(s.metadata + 64);
}

at_each_sample bool code_scopes_at(struct code_scopes *ret, const struct code_cache *c,
                                   const struct memory *m, const struct code_blob *blob,
                                   uint64_t pc)
{
    struct code_scopes s = {.cache = c, .memory = m};
    uint64_t pcs, end, size = (uint64_t)c->layout->sizeof_pc_desc;
    if (!read_tables(&s, blob, &pcs, &end))
        return false;
    /*
     * Finds the first descriptor that is not before pc. They are sorted by address and spread about
     * evenly over the code. The search begins where the descriptor is expected, because each other
     * place that it reads is a cache miss.
     */
    uint64_t count = end > pcs ? (end - pcs) / size : 0;
    uint64_t low = 0;
    int64_t offset = (int64_t)(pc - blob->begin), low_at = 0,
            high_at = (int64_t)(blob->end - blob->begin);
    if (count > BLOB_SIZE_MAX / size)
        return false;
    for (unsigned probes = 0; low < count; probes++) {
        uint64_t middle = low + (count - low) / 2;
        if (probes < GUESSES && offset >= low_at && offset < high_at)
            middle =
                low + (count - low) * (uint64_t)(offset - low_at) / (uint64_t)(high_at - low_at);
        int32_t at;
        if (!load_i32(m, pcs + middle * size, &at))
            return false;
        if (at < offset) {
            low = middle + 1;
            low_at = at;
        } else {
            count = middle;
            high_at = at;
        }
    }
    uint32_t scope = 0;
    if (pcs + low * size < end &&
        !load_u32(m, pcs + low * size + (uint64_t)c->layout->pc_scope, &scope))
        return false;
    fetch(s.scopes + scope);
    fetch(s.scopes + scope - 64); /* the caller's scope is stored before that of its callee */
    s.next = scope;
    *ret = s;
    return true;
}

/* The first numbers of a scope lie in one or two words, which are loaded once. */
struct byte_reader {
    const struct memory *memory;
    uint64_t at, word_at, word;
};

static bool next_byte(struct byte_reader *r, uint8_t *ret)
{
    uint64_t aligned = r->at & ~UINT64_C(7);
    if (aligned != r->word_at) {
        if (!load_u64(r->memory, aligned, &r->word))
            return false;
        r->word_at = aligned;
    }
    *ret = (uint8_t)(r->word >> (r->at++ & 7) * 8);
    return true;
}

/*
 * Decodes one number of the compressed stream (UNSIGNED5): up to five bytes; a byte below the limit
 * is the last one.
 */
at_each_sample static bool read_number(struct byte_reader *r, uint32_t base, uint32_t *ret)
{
    uint32_t final = 256 - 64 - base, sum = 0;
    for (unsigned i = 0; i < 5; i++) {
        uint8_t byte;
        if (!next_byte(r, &byte) || byte < base)
            return false;
        uint32_t value = byte - base;
        sum += value << (6 * i);
        if (value < final)
            break;
    }
    *ret = sum;
    return true;
}

at_each_sample bool code_scopes_next(struct code_scopes *s, struct code_scope *ret)
{
    uint32_t sender, method, bci;
    if (s->next == 0) {
        if (s->started || !s->method)
            return false;
        s->started = true;
        *ret = (struct code_scope){.method = s->method};
        return true;
    }
    s->started = true;
    struct byte_reader r = {.memory = s->memory, .at = s->scopes + s->next, .word_at = UINT64_MAX};
    uint32_t base = s->cache->layout->unsigned5_base;
    struct code_scope scope = {0};
    if (!read_number(&r, base, &sender) || !read_number(&r, base, &method) ||
        !read_number(&r, base, &bci))
        return false;
    /* The callers of a scope are stored before it. */
    if (method == 0 || sender >= s->next ||
        !load_u64(s->memory, s->metadata + 8 * ((uint64_t)method - 1), &scope.method))
        return false;
    scope.bci = (int32_t)bci - 1;
    scope.inlined = sender != 0;
    s->next = sender;
    *ret = scope;
    return true;
}

at_each_sample int code_level(const struct code_cache *c, const struct memory *m,
                              const struct code_blob *blob)
{
    uint8_t level;
    return load_u8(m, blob->address + (uint64_t)c->layout->nm_comp_level, &level) ? level : 0;
}

at_each_sample uint64_t code_entry(const struct code_cache *c, const struct memory *m,
                                   const struct code_blob *blob)
{
    const struct hotspot_layout *l = c->layout;
    uint64_t entry = blob->begin;
    uint16_t offset;
    if (l->nm_entry_point != LAYOUT_NONE) {
        if (!load_u64(m, blob->address + (uint64_t)l->nm_entry_point, &entry))
            return blob->begin;
    } else if (load_u16(m, blob->address + (uint64_t)l->nm_entry_offset, &offset)) {
        entry += offset;
    }
    return entry >= blob->begin && entry < blob->end ? entry : blob->begin;
}

at_each_sample static bool is_handler(const struct memory *m, const struct code_blob *b,
                                      int32_t offset_field, int32_t address_field, uint64_t pc)
{
    uint64_t address;
    int32_t offset;
    if (address_field != LAYOUT_NONE)
        return load_u64(m, b->address + (uint64_t)address_field, &address) && address == pc;
    return offset_field != LAYOUT_NONE &&
           load_i32(m, b->address + (uint64_t)offset_field, &offset) &&
           b->address + (uint64_t)offset == pc;
}

at_each_sample uint64_t code_original_pc(const struct code_cache *c, const struct memory *m,
                                         const struct code_blob *blob, uint64_t pc, uint64_t sp)
{
    const struct hotspot_layout *l = c->layout;
    int32_t slot;
    uint64_t original;
    if (blob->kind != CODE_COMPILED ||
        !(is_handler(m, blob, l->nm_deopt_offset, l->nm_deopt_begin, pc) ||
          is_handler(m, blob, l->nm_deopt_mh_offset, l->nm_deopt_mh_begin, pc)))
        return pc;
    if (load_i32(m, blob->address + (uint64_t)l->nm_orig_pc, &slot) &&
        load_u64(m, sp + (uint64_t)slot, &original) &&
        original - blob->begin < blob->end - blob->begin)
        return original;
    return pc;
}
