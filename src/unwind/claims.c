/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal.h"

enum { BCI_NATIVE = -3 };

static void fetch(uint64_t address)
{
    __builtin_prefetch((const void *)(uintptr_t)address);
}

/* What a method is checked against, where it is known. A torn entry fetches what nobody needs. */
static void fetch_parts(const struct walk *k, uint64_t method)
{
    const struct walker *w = k->w;
    const struct hotspot_layout *l = &w->layout;
    const struct known_method *known = known_at(w->known, method);
    if (known->method != method)
        return;
    fetch(method + (uint64_t)l->method_const);
    fetch(known->parts.constant + (uint64_t)l->const_pool);
    fetch(known->parts.pool + (uint64_t)l->pool_holder);
    if (k->epoch && known->epoch == k->epoch)
        return;
    fetch(known->parts.holder + (uint64_t)l->klass_name);
    fetch(known->parts.class_name);
}

static bool settle_method(struct walk *k, const struct method_claim *claim)
{
    const struct walker *w = k->w;
    struct walk_frame *f = &k->frames[claim->frame];
    uint64_t method = walk_id_method(f->id);
    struct known_method known;
    if (!known_method_get(w->known, &w->layout, &w->memory, method, k->epoch, &known))
        return false;
    f->id = walk_id_of_method(method, known.check);
    f->kind = known.code_size ? WALK_INTERPRETED : WALK_NATIVE_METHOD;
    f->bci = known.code_size ? known_method_bci(&known, &w->layout, claim->bcp) : BCI_NATIVE;
    return true;
}

at_each_sample bool claims_settle(struct walk *k)
{
    struct claims *c = k->claims;
    bool hold = !k->refuted;
    for (unsigned i = 0; i < c->methods; i++)
        fetch_parts(k, walk_id_method(k->frames[c->of_method[i].frame].id));
    for (unsigned i = 0; i < c->sites && hold; i++)
        hold = compilation_holds(&k->w->layout, &k->w->memory, &c->of_site[i]);
    for (unsigned i = 0; i < c->methods && hold; i++)
        hold = settle_method(k, &c->of_method[i]);
    c->sites = c->methods = 0;
    k->refuted = !hold;
    return hold;
}

at_each_sample bool claim_site(struct walk *k, const struct compilation *of)
{
    struct claims *c = k->claims;
    if (c->sites == CLAIMS_MAX && !claims_settle(k))
        return false;
    c->of_site[c->sites++] = *of;
    fetch(of->blob + (uint64_t)k->w->layout.nm_method);
    fetch(of->blob + (uint64_t)k->w->layout.nm_compile_id);
    return true;
}

at_each_sample bool claim_method(struct walk *k, uint64_t method, uint64_t bcp)
{
    struct claims *c = k->claims;
    unsigned at = k->count;
    if (c->methods == CLAIMS_MAX && !claims_settle(k))
        return false;
    walk_emit_java(k, WALK_INTERPRETED, method, -1);
    if (k->count == at)
        return true; /* one more than was asked for */
    c->of_method[c->methods++] = (struct method_claim){.bcp = bcp, .frame = at};
    fetch((uint64_t)(uintptr_t)known_at(k->w->known, method));
    return true;
}
