/* SPDX-License-Identifier: Apache-2.0 */
/* The first pass: collects strings, classes, frames, threads and totals. */
#include "hprof/redump_private.h"

#include "base/generated_name.h"

#include <errno.h>

void redump_substitute(struct redump *r, uint64_t id, uint64_t ours)
{
    if (map_put(&r->substitutes, id, ours) < 0)
        redump_fail(r, -ENOMEM);
    r->filter[redump_filter_bit(id) / 64] |= UINT64_C(1) << redump_filter_bit(id) % 64;
}

static void learn_record(struct redump *r, unsigned tag, struct cursor b)
{
    const uint8_t *at = b.at;
    int e = 0;
    if (tag == HPROF_UTF8 && cursor_left(&b) >= ID) {
        e = map_put(&r->strings, cursor_be64(&b), (uintptr_t)at);
    } else if (tag == HPROF_FRAME && cursor_left(&b) >= 4 * ID + 8) {
        e = map_put(&r->frames, cursor_be64(&b), (uintptr_t)at);
    } else if (tag == HPROF_LOAD_CLASS && cursor_left(&b) >= 2 * ID + 8) {
        uint64_t serial = cursor_be32(&b);
        struct class c = {.id = cursor_be64(&b)};
        cursor_skip(&b, 4);
        c.name = cursor_be64(&b);
        struct str name = redump_string(r, c.name);
        c.agents = generated_name_is_agents(name.data, name.len);
        if (c.agents)
            redump_substitute(r, c.id, 0);
        e = map_put(&r->by_id, c.id, r->classes.len);
        if (e == 0)
            e = map_put(&r->by_serial, serial, r->classes.len);
        if (e == 0)
            e = vec_push(&r->classes, c);
        memset(r->recent, 0, sizeof(r->recent)); /* the classes may have moved */
    }
    if (e < 0)
        redump_fail(r, e);
}

static void learn_root(struct redump *r, const uint8_t *at, size_t n)
{
    r->totals.roots++;
    if (*at != HPROF_ROOT_THREAD_OBJECT)
        return;
    struct thread t = {.object = redump_id_at(at + 1),
                       .serial = redump_u4_at(at + ROOT_THREAD),
                       .trace = redump_u4_at(at + ROOT_THREAD + 4)};
    if (map_put(&r->thread_serials, t.serial, r->threads.len) < 0 || vec_push(&r->threads, t) < 0)
        redump_fail(r, -ENOMEM);
}

static void learn_class(struct redump *r, const uint8_t *at, size_t n)
{
    struct class *c = redump_class_of(r, redump_id_at(at + 1));
    struct cursor b = cursor_of(at, n);
    if (!c || c->dumped)
        return;
    r->totals.objects++;
    c->dumped = true;
    c->super = redump_id_at(at + 1 + ID + 4);
    cursor_skip(&b, CLASS_FIXED);
    redump_skip_typed(&b, 2);
    redump_skip_typed(&b, ID);
    c->n_fields = cursor_be16(&b);
    c->fields = b.at;
    for (uint32_t i = 0; i < c->n_fields; i++)
        c->own_size += hprof_type_size(c->fields[i * (ID + 1) + ID], ID);
}

static uint64_t aligned(const struct redump *r, uint64_t bytes)
{
    uint64_t a = r->how->shapes->alignment;
    return (bytes + a - 1) / a * a;
}

/*
 * Computes the shallow size of an instance when the VM did not report it: the header and the
 * fields, with references as wide as in the heap.
 */
static uint32_t reckoned_size(const struct redump *r, const struct class *c)
{
    uint64_t fields = c->fields_size - c->n_references * (uint64_t)(ID - r->how->shapes->reference);
    return (uint32_t)aligned(r, r->how->shapes->header[0] + fields);
}

/*
 * Determines the layout of instances of c, once its superclasses are known. Returns false if they
 * are not.
 */
static bool flatten(struct redump *r, struct class *c)
{
    enum { DEEPEST = 10000 };

    if (c->flat)
        return true;
    VEC(struct field) refs = {0};
    struct class *k = c;
    uint32_t offset = 0;
    for (int depth = 0; k && depth < DEEPEST; depth++) {
        const uint64_t *super = k->super ? map_get(&r->by_id, k->super) : NULL;
        if (!k->dumped || (k->super && !super)) {
            vec_release(&refs);
            return false;
        }
        struct str name = redump_string(r, k->name);
        bool thread = name.len == 16 && memcmp(name.data, "java/lang/Thread", 16) == 0;
        for (uint32_t i = 0; i < k->n_fields; i++) {
            const uint8_t *f = k->fields + i * (ID + 1);
            struct str s = redump_string(r, redump_id_at(f));
            if (f[ID] == HPROF_OBJECT) {
                const char *copy = arena_copy(&r->arena, s.data, s.len);
                if (!copy || vec_push(&refs, ((struct field){offset, copy})) < 0)
                    redump_fail(r, -ENOMEM);
            } else if (thread && f[ID] == HPROF_LONG && s.len == 3 &&
                       memcmp(s.data, "tid", 3) == 0) {
                c->is_thread = true;
                c->id_offset = offset;
            }
            offset += hprof_type_size(f[ID], ID);
        }
        k = super ? &r->classes.data[*super] : NULL;
    }
    struct str name = redump_string(r, c->name);
    c->fields_size = offset;
    c->n_references = (uint32_t)refs.len;
    struct field *kept = arena_alloc(&r->arena, (refs.len + 1) * sizeof(*refs.data));
    if (!kept)
        redump_fail(r, -ENOMEM);
    else if (refs.len)
        memcpy(kept, refs.data, refs.len * sizeof(*refs.data));
    c->references = kept;
    c->source_name = redump_source_name(r, name);
    c->size =
        r->how->instance_size ? r->how->instance_size(r->how->ctx, name.data, name.len, offset) : 0;
    if (!c->size)
        c->size = reckoned_size(r, c);
    c->flat = true;
    vec_release(&refs);
    return !r->error;
}

uint64_t redump_array_size(const struct redump *r, unsigned type, uint64_t n)
{
    const struct hprof_shapes *s = r->how->shapes;
    return aligned(r, s->header[type] +
                          n * (type == HPROF_OBJECT ? s->reference : hprof_type_size(type, ID)));
}

/* Some versions write roots after objects, so threads are assembled at the end of the pass. */
static void learn_thread(struct redump *r, const uint8_t *at)
{
    if (map_put(&r->thread_instances, redump_id_at(at + 1), (uintptr_t)at) < 0)
        redump_fail(r, -ENOMEM);
}

static void learn_instance(struct redump *r, const uint8_t *at, size_t n)
{
    struct class *c = redump_class_of(r, redump_id_at(at + INSTANCE_CLASS));
    r->totals.objects++;
    if (!c || !flatten(r, c)) {
        if (vec_push(&r->early, at) < 0)
            redump_fail(r, -ENOMEM);
        return;
    }
    if (n < INSTANCE_BYTES + (size_t)c->fields_size)
        redump_fail(r, -EBADMSG);
    r->totals.bytes += c->size;
    if (c->is_thread)
        learn_thread(r, at);
}

static void learn_object_array(struct redump *r, const uint8_t *at, size_t n)
{
    r->totals.objects++;
    r->totals.bytes += redump_array_size(r, HPROF_OBJECT, redump_u4_at(at + ARRAY_LENGTH));
}

static void learn_primitive_array(struct redump *r, const uint8_t *at, size_t n)
{
    r->totals.objects++;
    r->totals.bytes += redump_array_size(r, at[ARRAY_TYPE], redump_u4_at(at + ARRAY_LENGTH));
}

static const struct visitor learn = {learn_root,         learn_class,           learn_instance,
                                     learn_object_array, learn_primitive_array, true};

/*
 * Completes the first pass: handles instances that preceded their class, and maps the dump's
 * threads to ours.
 */
static void settle(struct redump *r)
{
    for (size_t i = 0; i < r->early.len && !r->error; i++) {
        const uint8_t *at = r->early.data[i];
        struct class *c = redump_class_of(r, redump_id_at(at + INSTANCE_CLASS));
        if (!c || !flatten(r, c) || redump_u4_at(at + INSTANCE_BYTES - 4) < c->fields_size) {
            redump_fail(r, r->error ? r->error : -EBADMSG);
            return;
        }
        r->totals.bytes += c->size;
        if (c->is_thread)
            learn_thread(r, at);
    }
    /* The names may come after the classes. */
    for (size_t i = 0; i < r->classes.len; i++) {
        struct class *c = &r->classes.data[i];
        if (!c->source_name)
            c->source_name = redump_source_name(r, redump_string(r, c->name));
    }
    for (size_t i = 0; i < r->threads.len; i++) {
        struct thread *t = &r->threads.data[i];
        t->our_serial = r->how->unknown_thread;
        const uint64_t *found = map_get(&r->thread_instances, t->object);
        if (!found)
            continue;
        const uint8_t *instance =
            (const uint8_t *)(uintptr_t)*found; /* NOLINT: the map holds addresses */
        const struct class *c = redump_class_of(r, redump_id_at(instance + INSTANCE_CLASS));
        uint64_t java_id = redump_id_at(instance + INSTANCE_BYTES + c->id_offset);
        if (!r->how->thread ||
            !r->how->thread(r->how->ctx, java_id, &t->our_serial, &t->our_object) || !t->our_object)
            continue;
        redump_substitute(r, t->object, t->our_object);
    }
}

void redump_learn(struct redump *r, struct cursor file)
{
    redump_visit(r, file, &learn, learn_record);
    if (!r->error)
        settle(r);
}
