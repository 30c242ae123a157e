/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/sites.h"

#include <string.h>
#include <sys/mman.h>

enum { SITES_BYTES = sizeof(struct site) << SITES_LOG2, KIND_BITS = 4 };

_Static_assert(WALK_KINDS <= 1 << KIND_BITS, "a kind has its bits");

struct site *sites_new(void)
{
    /* Aligned to its own size, which is that of a huge page: one entry of the TLB holds all of it. */
    char *memory = mmap(NULL, 2 * SITES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)memory % SITES_BYTES;
    if (before)
        munmap(memory, before);
    munmap(memory + before + SITES_BYTES, SITES_BYTES - before);
    struct site *sites = (struct site *)(void *)(memory + before);
    (void)madvise(sites, SITES_BYTES, MADV_HUGEPAGE);
    /* Now rather than page by page in the handler. */
    for (size_t at = 0; at < SITES_BYTES; at += 4096)
        *(volatile char *)((char *)sites + at) = 0;
    return sites;
}

void sites_free(struct site *sites)
{
    if (sites)
        munmap(sites, SITES_BYTES);
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
    uint32_t version = atomic_load_explicit(&s->version, memory_order_relaxed), id;
    uint64_t method;
    if (count > SITE_METHODS_MAX || version & 1 || !read_identity(l, m, blob->address, &method, &id) ||
        !atomic_compare_exchange_strong(&s->version, &version, version + 1))
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
    /* 0 is an empty one's. */
    atomic_store_explicit(&s->version, version + 2 ? version + 2 : 2, memory_order_release);
}
