/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/sites.h"

#include "base/mapped.h"
#include "base/seqlock.h"

enum {
    SITES_BYTES = sizeof(struct walk_site) << SITES_LOG2,
    KNOWN_BYTES = 64 << KNOWN_LOG2,
    KIND_BITS = 4
};

_Static_assert(WALK_KINDS <= 1 << KIND_BITS, "a kind has its bits");

struct walk_site *sites_new(void)
{
    return mapped_new_huge(SITES_BYTES);
}

void sites_free(struct walk_site *sites)
{
    mapped_free(sites, SITES_BYTES);
}

struct known_method *known_methods_new(void)
{
    return mapped_new_huge(KNOWN_BYTES);
}

void known_methods_free(struct known_method *known)
{
    mapped_free(known, KNOWN_BYTES);
}

/* Notes that a method was valid at another epoch, if the entry is still the same. */
static void renew(struct known_method *k, uint32_t version, uint32_t epoch)
{
    if (seqlock_begin_at(&k->version, version)) {
        k->epoch = epoch;
        seqlock_end(&k->version);
    }
}

/* Copies a whole entry; ret->version is its version. */
static bool known_load(struct known_method *known, uint64_t method, struct known_method *ret)
{
    if (!known)
        return false;
    struct known_method *k = known_method_at(known, method);
    uint32_t version = seqlock_read(&k->version);
    if (!version || k->method != method)
        return false;
    ret->method = method;
    ret->parts = k->parts;
    ret->code_size = k->code_size;
    ret->check = k->check;
    ret->epoch = k->epoch;
    ret->version = version;
    return seqlock_still(&k->version, version);
}

bool known_method_recall(struct known_method *known, uint64_t method, uint32_t epoch,
                         struct known_method *ret)
{
    return known_load(known, method, ret) && epoch && ret->epoch == epoch;
}

at_each_sample bool known_method_find(struct known_method *known, const struct hotspot_layout *l,
                                      const struct memory *m, uint64_t method, uint32_t epoch,
                                      struct known_method *ret)
{
    if (!known_load(known, method, ret))
        return false;
    if (epoch && ret->epoch == epoch)
        return method_parts_still_hold(l, m, method, &ret->parts);
    if (!method_parts_hold(l, m, method, &ret->parts))
        return false;
    if (epoch)
        renew(known_method_at(known, method), ret->version, epoch);
    return true;
}

at_each_sample bool known_method_read(const struct hotspot_layout *l, const struct memory *m,
                                      uint64_t method, struct known_method *ret)
{
    int32_t bci;
    bool native;
    if (!method_bci(l, m, method, 0, &bci, &native) || !method_parts(l, m, method, &ret->parts) ||
        !load_u16(m, ret->parts.constant + (uint64_t)l->const_code_size, &ret->code_size))
        return false;
    ret->method = method;
    ret->check = method_parts_check(&ret->parts);
    return true;
}

at_each_sample void known_method_note(struct known_method *known, uint32_t epoch,
                                      const struct known_method *of)
{
    struct known_method *k = known ? known_method_at(known, of->method) : NULL;
    if (!k || !seqlock_begin(&k->version))
        return;
    k->method = of->method;
    k->check = of->check;
    k->parts = of->parts;
    k->code_size = of->code_size;
    k->epoch = epoch;
    seqlock_end(&k->version);
}

at_each_sample bool site_read_compilation(const struct hotspot_layout *l, const struct memory *m,
                                          uint64_t blob, struct compilation *ret)
{
    ret->blob = blob;
    return load_u64(m, blob + (uint64_t)l->nm_method, &ret->method) &&
           load_u32(m, blob + (uint64_t)l->nm_compile_id, &ret->id);
}

at_each_sample bool site_compilation_holds(const struct hotspot_layout *l, const struct memory *m,
                                           const struct compilation *c)
{
    struct compilation now = {0};
    return site_read_compilation(l, m, c->blob, &now) && now.method == c->method && now.id == c->id;
}

at_each_sample void site_note(struct walk_site *sites, const struct compilation *of,
                              int32_t frame_bytes, uint64_t key, uint8_t state,
                              const struct walk_frame *frames, unsigned count)
{
    struct walk_site *s = site_at(sites, key);
    if (count > SITE_METHODS_MAX || !seqlock_begin(&s->version))
        return;
    s->frame_bytes = (uint32_t)frame_bytes;
    s->pc = key;
    s->blob = of->blob;
    s->method = of->method;
    s->compile_id = of->id;
    s->count = (uint8_t)count;
    s->state = state;
    for (unsigned i = 0; i < count; i++)
        s->methods[i] = (struct site_method){.id_low = (uint32_t)frames[i].id,
                                             .id_high = (uint32_t)(frames[i].id >> 32),
                                             .bci_and_kind = (uint32_t)frames[i].bci << KIND_BITS |
                                                             frames[i].kind};
    seqlock_end(&s->version);
}

void site_forget(struct walk_site *sites, uint64_t key)
{
    struct walk_site *s = site_at(sites, key);
    if (s->pc == key && seqlock_begin(&s->version)) {
        s->pc = 0;
        seqlock_end(&s->version);
    }
}
