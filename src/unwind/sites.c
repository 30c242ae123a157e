/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/sites.h"

#include <sys/mman.h>

#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

enum { SITES_BYTES = sizeof(struct site) << SITES_LOG2, KNOWN_BYTES = 64 << KNOWN_LOG2, KIND_BITS = 4 };

_Static_assert(WALK_KINDS <= 1 << KIND_BITS, "a kind has its bits");

/* Zeroed memory that is there, aligned to its size. Now rather than page by page in the handler. */
static void *table_new(size_t bytes)
{
    char *memory = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)memory % bytes;
    if (before)
        munmap(memory, before);
    munmap(memory + before + bytes, bytes - before);
    memory += before;
    /* Where it is a huge page, one entry of the TLB holds all of it. */
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at < bytes; at += 4096)
        *(volatile char *)(memory + at) = 0;
    return memory;
}

static void table_free(void *table, size_t bytes)
{
    if (table)
        munmap(table, bytes);
}

struct site *sites_new(void)
{
    return table_new(SITES_BYTES);
}

void sites_free(struct site *sites)
{
    table_free(sites, SITES_BYTES);
}

struct known_method *known_methods_new(void)
{
    return table_new(KNOWN_BYTES);
}

void known_methods_free(struct known_method *known)
{
    table_free(known, KNOWN_BYTES);
}

/* Begins to write: false when another does. A version is odd then, and never 0 afterwards. */
static bool begin_write(_Atomic uint32_t *version)
{
    uint32_t v = atomic_load_explicit(version, memory_order_relaxed);
    return !(v & 1) && atomic_compare_exchange_strong(version, &v, v + 1);
}

static void end_write(_Atomic uint32_t *version)
{
    uint32_t v = atomic_load_explicit(version, memory_order_relaxed) + 1;
    atomic_store_explicit(version, v ? v : 2, memory_order_release);
}

static bool known_find(struct known_method *k, const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                       struct known_method *ret)
{
    uint32_t version = atomic_load_explicit(&k->version, memory_order_acquire);
    if (version == 0 || version & 1 || k->method != method)
        return false;
    ret->parts = k->parts;
    ret->code_size = k->code_size;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&k->version, memory_order_relaxed) == version && method_parts_hold(l, m, method, &ret->parts);
}

bool known_method_get(struct known_method *known, const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                      struct known_method *ret)
{
    struct known_method *k = known ? &known[(method * HASH_FACTOR) >> (64 - KNOWN_LOG2)] : NULL;
    int32_t bci;
    bool native;
    if (k && known_find(k, l, m, method, ret))
        return true;
    if (!method_bci(l, m, method, 0, &bci, &native) || !method_parts(l, m, method, &ret->parts) ||
        !load16(m, ret->parts.constant + (uint64_t)l->const_code_size, &ret->code_size))
        return false;
    if (k && begin_write(&k->version)) {
        k->method = method;
        k->parts = ret->parts;
        k->code_size = ret->code_size;
        end_write(&k->version);
    }
    return true;
}

/* What tells a compilation from a later one at its place. */
static bool read_identity(const struct hotspot_layout *l, const struct memory *m, uint64_t blob, uint64_t *ret_method,
                          uint32_t *ret_id)
{
    return load64(m, blob + (uint64_t)l->nm_method, ret_method) && load32(m, blob + (uint64_t)l->nm_compile_id, ret_id);
}

bool site_find(struct site *sites, const struct hotspot_layout *l, const struct memory *m, uint64_t pc, struct site *ret)
{
    struct site *s = site_at(sites, pc);
    uint32_t version = atomic_load_explicit(&s->version, memory_order_acquire), id;
    uint64_t method;
    if (version == 0 || version & 1 || s->pc != pc)
        return false;
    ret->frame_bytes = s->frame_bytes;
    ret->blob = s->blob;
    ret->method = s->method;
    ret->compile_id = s->compile_id;
    ret->count = MIN(s->count, SITE_METHODS_MAX);
    for (unsigned i = 0; i < ret->count; i++) {
        ret->ids[i] = s->ids[i];
        ret->bci_and_kind[i] = s->bci_and_kind[i];
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&s->version, memory_order_relaxed) == version && read_identity(l, m, ret->blob, &method, &id) &&
           method == ret->method && id == ret->compile_id;
}

void site_note(struct site *sites, const struct hotspot_layout *l, const struct memory *m, const struct code_blob *blob,
               uint64_t pc, const struct walk_frame *frames, unsigned count)
{
    struct site *s = site_at(sites, pc);
    uint32_t id;
    uint64_t method;
    if (count > SITE_METHODS_MAX || !read_identity(l, m, blob->address, &method, &id) || !begin_write(&s->version))
        return;
    s->frame_bytes = (uint32_t)blob->frame_bytes;
    s->pc = pc;
    s->blob = blob->address;
    s->method = method;
    s->compile_id = id;
    s->count = count;
    for (unsigned i = 0; i < count; i++) {
        s->ids[i] = frames[i].id;
        s->bci_and_kind[i] = (uint32_t)frames[i].bci << KIND_BITS | frames[i].kind;
    }
    end_write(&s->version);
}
