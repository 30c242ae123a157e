/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/internal.h"

enum { BCI_NATIVE = -3 };

static void fetch(uint64_t address)
{
    __builtin_prefetch((const void *)(uintptr_t)address);
}

/*
 * Prefetches what a method is checked against, if the method is known. If its entry is being
 * written, this may prefetch something useless.
 */
static bool fetch_known(const struct walk *k, uint64_t method)
{
    const struct walker *w = k->w;
    const struct hotspot_layout *l = &w->layout;
    const struct known_method *known = known_method_at(w->known, method);
    if (known->method != method)
        return false;
    fetch(method + (uint64_t)l->method_const);
    fetch(known->parts.constant + (uint64_t)l->const_pool);
    fetch(known->parts.pool + (uint64_t)l->pool_holder);
    if (k->epoch && known->epoch == k->epoch)
        return true;
    fetch(known->parts.holder + (uint64_t)l->klass_name);
    fetch(known->parts.class_name);
    return true;
}

/*
 * Prefetches what methods are checked against. For methods that are not known, each structure leads
 * to the next (method_parts), so all methods advance together, one step at a time.
 */
static void fetch_parts(const struct walk *k, const uint64_t *methods, unsigned n)
{
    const struct hotspot_layout *l = &k->w->layout;
    const int32_t fields[] = {l->method_const, l->const_pool, l->pool_holder, l->klass_name, 0};
    uint64_t at[CLAIMS_MAX];
    unsigned unknown = 0;
    for (unsigned i = 0; i < n; i++)
        if (!fetch_known(k, methods[i])) {
            at[unknown++] = methods[i];
            fetch(methods[i] + (uint64_t)l->method_const);
        }
    for (unsigned step = 0; step + 1 < ARRAY_SIZE(fields); step++)
        for (unsigned i = 0; i < unknown; i++)
            if (at[i] && load_u64(&k->w->memory, at[i] + (uint64_t)fields[step], &at[i]))
                fetch(at[i] + (uint64_t)fields[step + 1]);
            else
                at[i] = 0;
}

at_each_sample bool walk_method(struct walk *k, uint64_t method, struct known_method *ret)
{
    const struct walker *w = k->w;
    /*
     * If it is uncertain whether classes were unloaded, what is found now may belong to a dead
     * class whose memory has not been freed yet, which nothing reports. It must not be kept.
     */
    if (k->uncertain)
        return known_method_recall(w->known, method, k->epoch, ret) ||
               known_method_find(w->known, &w->layout, &w->memory, method, 0, ret);
    if (known_method_find(w->known, &w->layout, &w->memory, method, k->epoch, ret))
        return true;
    /* If the class was redefined meanwhile, the method may no longer exist. */
    if (!known_method_read(&w->layout, &w->memory, method, ret))
        return k->later && known_method_recall(w->known, method, k->epoch, ret);
    /* Nothing that was read while the class could be freed is trusted. */
    k->uncertain = k->later && unloads_epoch(&w->unloads, &w->memory) != k->epoch;
    if (k->uncertain)
        return known_method_recall(w->known, method, k->epoch, ret);
    known_method_note(w->known, k->epoch, ret);
    return true;
}

static bool settle_method(struct walk *k, const struct method_claim *claim)
{
    const struct walker *w = k->w;
    struct walk_frame *f = &k->frames[claim->frame];
    uint64_t method = walk_id_method(f->id);
    struct known_method known;
    if (!walk_method(k, method, &known))
        return false;
    f->id = walk_id_of_method(method, known.check);
    f->kind = known.code_size ? WALK_INTERPRETED : WALK_NATIVE_METHOD;
    f->bci = known.code_size ? known_method_bci(&known, &w->layout, claim->bcp) : BCI_NATIVE;
    if (k->later && f->bci == -1)
        f->id = walk_id_of_method(0, 0); /* another method has replaced it */
    if (k->words)
        walk_note_method(k, f->id);
    return true;
}

at_each_sample bool claims_settle(struct walk *k)
{
    struct claims *c = k->claims;
    bool hold = !k->refuted;
    uint64_t methods[CLAIMS_MAX];
    for (unsigned i = 0; i < c->methods; i++)
        methods[i] = walk_id_method(k->frames[c->of_method[i].frame].id);
    fetch_parts(k, methods, c->methods);
    for (unsigned i = 0; i < c->sites && hold; i++)
        hold = site_compilation_holds(&k->w->layout, &k->w->memory, &c->of_site[i]);
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
        return true; /* one more than was requested */
    c->of_method[c->methods++] = (struct method_claim){.bcp = bcp, .frame = at};
    fetch((uint64_t)(uintptr_t)known_method_at(k->w->known, method));
    return true;
}

/* Collects the next frames without a check, at most CLAIMS_MAX, starting at *at. */
static unsigned without_check(const struct walk *k, unsigned *at, unsigned frames[CLAIMS_MAX],
                              uint64_t methods[CLAIMS_MAX])
{
    unsigned n = 0;
    for (; *at < k->count && n < CLAIMS_MAX; ++*at) {
        const struct walk_frame *f = &k->frames[*at];
        if (!walk_is_java(f->kind) || walk_id_check(f->id) != 0)
            continue;
        frames[n] = *at;
        methods[n++] = walk_id_method(f->id);
    }
    return n;
}

static void add_checks(struct walk *k)
{
    unsigned frames[CLAIMS_MAX], n;
    uint64_t methods[CLAIMS_MAX];
    for (unsigned at = 0; (n = without_check(k, &at, frames, methods)) > 0;) {
        if (k->claims)
            fetch_parts(k, methods, n);
        for (unsigned i = 0; i < n; i++) {
            struct known_method known;
            if (walk_method(k, methods[i], &known))
                k->frames[frames[i]].id = walk_id_of_method(methods[i], known.check);
        }
    }
}

static bool has_checks(const struct walk_frame *frames, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (walk_id_check(frames[i].id) == 0)
            return false;
    return true;
}

/*
 * Returns whether what the walk found about compiled code belongs to the methods that it found
 * there. If classes were unloaded after the stack was copied, the methods may be those at the time
 * of the copy, while the code belongs to a class that has taken their place since.
 */
at_each_sample static bool may_keep_notes(const struct walk *k)
{
    return k->notes && (!k->later || (!k->uncertain &&
                                      unloads_epoch(&k->w->unloads, &k->w->memory) == k->epoch));
}

at_each_sample void walk_finish(struct walk *k)
{
    const struct walker *w = k->w;
    add_checks(k);
    bool keep = may_keep_notes(k);
    for (unsigned i = 0; keep && i < k->notes->count; i++) {
        const struct note *n = &k->notes->of[i];
        if (has_checks(k->frames + n->first, n->frames))
            site_note(w->sites, &n->of, n->frame_bytes, n->key, n->state, k->frames + n->first,
                      n->frames);
    }
}
