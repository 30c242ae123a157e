/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes each thread, class, method and stack once and finds it by its id afterwards. */
#include "base/made_name.h"
#include "jfr/reader_internal.h"

#include <stdio.h>

/* Returns what an id was decoded to before, or NULL if it was not or the type is another one. */
static void *decoded(const struct type *t, enum usual usual, uint64_t id)
{
    if (t->usual != usual)
        return NULL;
    if (id < DIRECT_IDS)
        return id < t->direct.len ? t->direct.data[id] : NULL;
    const uint64_t *known = map_get(&t->decoded, id);
    return known ? (void *)(uintptr_t)*known : NULL;
}

static void remember(struct type *t, uint64_t id, const void *what)
{
    if (id < DIRECT_IDS) {
        if (id < t->direct.len || vec_extend(&t->direct, id + 1 - t->direct.len) == 0)
            t->direct.data[id] = (void *)(uintptr_t)what;
    } else if (map_put(&t->decoded, id, (uintptr_t)what))
        return; /* when out of memory it is decoded again later */
}

/* The object whose id a field holds, before it is looked up. */
struct reference {
    struct rec_chunk *chunk;
    struct type *type;
    uint64_t id;
};

/* Like rec_get, but does not follow the last field's constant, because most are already decoded. */
static bool find_reference(const struct rec_object *o, const char *path, enum usual usual,
                           struct reference *ret)
{
    struct rec_object at = *o;
    struct rec_value v;
    const char *dot;
    for (; (dot = strchr(path, '.')); path = dot + 1) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)MIN(dot - path, 100), path);
        if (rec_get(&at, name, &v) || v.is_null || v.field->type->kind != REC_STRUCT ||
            v.field->array)
            return false;
        at = v.object;
    }
    if (!at.type)
        return false;
    for (uint32_t i = 0; i < at.type->n_fields; i++) {
        const struct rec_field *f = &at.type->fields[i];
        if (strcmp(f->name, path) != 0)
            continue;
        if (!f->constant || f->array)
            return false;
        struct cursor c = cursor_of(at.at, (size_t)(at.end - at.at));
        for (uint32_t j = 0; j < i && !c.failed; j++)
            chunk_skip_value(at.chunk, &at.type->fields[j], &c, 0);
        *ret = (struct reference){at.chunk, (struct type *)(void *)f->type,
                                  (uint64_t)read_long(at.chunk, &c)};
        return !c.failed && ret->type->usual == usual;
    }
    return false;
}

/*
 * Looks up the object of a reference, whose chunk may be changed to an earlier one. Returns false
 * when it is not defined.
 */
static bool look_up(struct reference *ref, struct rec_object *ret, bool *ret_raw)
{
    uint64_t place = chunk_constant_place(&ref->chunk, &ref->type, ref->id);
    if (!place)
        return false;
    struct recording *r = ref->chunk->recording;
    *ret = (struct rec_object){r, ref->chunk, &ref->type->pub, r->data + (place & ~PLACE_RAW),
                               ref->chunk->end};
    *ret_raw = place & PLACE_RAW;
    return true;
}

static const char *text_at(const struct rec_object *o, const char *path)
{
    const char *s = rec_string(o, path, NULL);
    return s ? recording_text(o->recording, s, strlen(s)) : NULL;
}

/* ---- threads ---- */

static const struct rec_thread *decode_thread(const struct rec_object *o)
{
    struct recording *r = o->recording;
    struct rec_thread t = {.java_name = text_at(o, "javaName"),
                           .os_name = text_at(o, "osName"),
                           .java_id = rec_long(o, "javaThreadId", 0),
                           .os_id = rec_long(o, "osThreadId", 0),
                           .group = text_at(o, "group.name"),
                           .is_virtual = rec_long(o, "virtual", 0) != 0};
    if (!t.java_name && !t.os_name)
        t.os_name = text_at(o, "name"); /* chunks of version 1 */
    if (t.java_name && !*t.java_name && t.java_id <= 0)
        t.java_name = NULL;
    t.name = t.java_name ? t.java_name : t.os_name ? t.os_name : "";
    /* Most virtual threads have no name, and they must be distinguishable. */
    if (!*t.name && t.java_id > 0) {
        char text[48];
        int len = snprintf(text, sizeof(text), "%s #%lld", t.is_virtual ? "virtual" : "thread",
                           (long long)t.java_id);
        t.name = recording_text(r, text, (size_t)len);
    }
    buf_clear(&r->key);
    buf_be64(&r->key, (uint64_t)t.java_id);
    if (t.java_id <= 0) {
        buf_be64(&r->key, (uint64_t)t.os_id);
        buf_string(&r->key, t.name);
    }
    int64_t number = strpool_add(&r->thread_keys, (const char *)r->key.data, r->key.len);
    if (number < 0)
        return NULL;
    t.number = (uint32_t)number;
    if (t.number == r->threads.len) {
        struct rec_thread *fresh = arena_alloc(&r->usual, sizeof(*fresh));
        if (!fresh || vec_push(&r->threads, fresh))
            return NULL;
    }
    *r->threads.data[t.number] = t; /* keeps the latest name of a renamed thread */
    return r->threads.data[t.number];
}

/* ---- classes ---- */

/* Converts "[Ljava/lang/String;" to "java.lang.String[]". */
static const char *class_name(struct recording *r, const char *s)
{
    static const char *const primitives[128] = {
        ['Z'] = "boolean", ['B'] = "byte", ['C'] = "char",  ['S'] = "short",
        ['I'] = "int",     ['J'] = "long", ['F'] = "float", ['D'] = "double"};
    size_t dimensions = strspn(s, "[");
    size_t len = strlen(s + dimensions);
    const char *base = s + dimensions;
    if (dimensions && *base == 'L' && base[len - 1] == ';') {
        base++;
        len -= 2;
    } else if (dimensions && len == 1 && *base > 0 && primitives[(int)*base]) {
        base = primitives[(int)*base];
        len = strlen(base);
    }
    struct buf b = BUF(1 << 20);
    buf_bytes(&b, base, len);
    if (!buf_error(&b) && len)
        b.len = made_name_settle((char *)b.data, len);
    for (size_t i = 0; i < b.len; i++)
        b.data[i] = b.data[i] == '/' ? '.' : b.data[i];
    for (size_t i = 0; i < dimensions; i++)
        buf_string(&b, "[]");
    const char *name = recording_text(r, buf_str(&b), strlen(buf_str(&b)));
    buf_release(&b);
    return name;
}

static const struct rec_class *decode_class(const struct rec_object *o)
{
    struct recording *r = o->recording;
    struct rec_class c = {.name = class_name(r, rec_string(o, "name", "")),
                          .hidden = rec_long(o, "hidden", 0) != 0};
    const char *s;
    if ((s = rec_string(o, "package.name", NULL)))
        c.package = class_name(r, s);
    c.module = text_at(o, "package.module.name");
    c.loader = text_at(o, "classLoader.name");
    if (!c.loader && (s = rec_string(o, "classLoader.type.name", NULL)))
        c.loader = class_name(r, s);
    if (c.loader && !strcmp(c.loader, "bootstrap"))
        c.loader = NULL; /* how the JDK has named the boot loader since version 11 */
    buf_clear(&r->key);
    buf_string(&r->key, c.name);
    buf_u8(&r->key, 0);
    buf_string(&r->key, c.loader ? c.loader : "");
    int64_t number = strpool_add(&r->class_keys, (const char *)r->key.data, r->key.len);
    if (number < 0)
        return NULL;
    if ((size_t)number == r->classes.len) {
        struct rec_class *fresh = arena_alloc(&r->usual, sizeof(*fresh));
        if (!fresh || vec_push(&r->classes, fresh))
            return NULL;
        c.number = (uint32_t)number;
        *fresh = c;
    }
    return r->classes.data[number];
}

/* ---- methods ---- */

static const struct rec_method *intern_method(struct recording *r, struct rec_method m)
{
    buf_clear(&r->key);
    buf_be32(&r->key, m.class ? m.class->number : UINT32_MAX);
    buf_string(&r->key, m.name);
    buf_u8(&r->key, 0);
    buf_string(&r->key, m.descriptor ? m.descriptor : "");
    int64_t number = strpool_add(&r->method_keys, (const char *)r->key.data, r->key.len);
    if (number < 0)
        return NULL;
    if ((size_t)number < r->methods.len)
        return r->methods.data[number];
    struct rec_method *fresh = arena_alloc(&r->usual, sizeof(*fresh));
    if (!fresh || vec_push(&r->methods, fresh))
        return NULL;
    m.number = (uint32_t)number;
    m.full = m.name;
    if (m.class && *m.class->name) {
        buf_clear(&r->key);
        buf_printf(&r->key, "%s.%s", m.class->name, m.name);
        m.full = recording_text(r, buf_str(&r->key), strlen(buf_str(&r->key)));
    }
    *fresh = m;
    return fresh;
}

static const struct rec_method *decode_method(const struct rec_object *o)
{
    struct rec_method m = {.class = rec_class(o, "type"),
                           .name = text_at(o, "name"),
                           .descriptor = text_at(o, "descriptor"),
                           .modifiers = (uint32_t)rec_long(o, "modifiers", 0),
                           .hidden = rec_long(o, "hidden", 0) != 0};
    if (!m.name)
        m.name = "";
    if (m.class && !*m.class->name)
        m.class = NULL;
    return intern_method(o->recording, m);
}

static const struct rec_method *method_of(struct reference ref)
{
    static const struct rec_method none = {
        .number = UINT32_MAX, .name = "[unresolved method]", .full = "[unresolved method]"};
    struct rec_object o;
    bool raw;
    const struct rec_method *m = decoded(ref.type, USUAL_METHOD, ref.id);
    if (m)
        return m;
    struct type *type = ref.type;
    uint64_t id = ref.id;
    m = type->usual == USUAL_METHOD && look_up(&ref, &o, &raw)
            ? decode_method(&o)
            : intern_method(ref.chunk->recording, none);
    if (m && type->usual == USUAL_METHOD)
        remember(type, id, m);
    return m ? m : &none;
}

/* ---- stacks ---- */

/* Reads which ids of methods the writer's own numbers stand for. */
static void read_method_keys(struct rec_chunk *k)
{
    struct type *t = chunk_type_named(k, TYPE_OF_METHOD_KEYS);
    uint64_t id, place;
    for (size_t i = 0; t && map_next(&t->pool, &i, &id, &place);) {
        struct rec_object o = {k->recording, k, &t->pub, k->recording->data + (place & ~PLACE_RAW),
                               k->end};
        struct reference method;
        if (find_reference(&o, "method", USUAL_METHOD, &method) &&
            map_put(&k->method_of_key, (uint64_t)rec_long(&o, "key", 0), method.id))
            break;
    }
}

/*
 * Returns the id of a method, given the number that the writer's owner uses for it, as it appears
 * in stacks of a killed process.
 */
static uint64_t method_of_key(struct rec_chunk *chunk, uint64_t key)
{
    for (size_t i = chunk->index + 1; i-- > 0;) {
        struct rec_chunk *k = chunk->recording->chunks.data[i];
        if (k->state != CHUNK_READY && chunk_prepare(k))
            continue;
        if (!k->method_of_key.len) {
            struct type *t = chunk_type_named(k, TYPE_OF_METHODS);
            if (t)
                /* for its effect: reads the pools */
                (void)chunk_constant_place(&(struct rec_chunk *){k}, &t, 0);
            read_method_keys(k);
        }
        const uint64_t *id = map_get(&k->method_of_key, key);
        if (id)
            return *id;
    }
    return 0;
}

static const char *frame_type(struct reference ref)
{
    const char *s = decoded(ref.type, USUAL_FRAME_TYPE, ref.id);
    struct rec_object o;
    bool raw;
    struct type *type = ref.type;
    uint64_t id = ref.id;
    if (s || type->usual != USUAL_FRAME_TYPE || !look_up(&ref, &o, &raw) || !o.type->n_fields)
        return s;
    s = text_at(&o, o.type->fields[0].name);
    if (s)
        remember(type, id, s);
    return s;
}

static void read_frame(struct rec_chunk *k, const struct type *t, struct cursor *c, bool raw,
                       struct rec_frame *ret)
{
    *ret = (struct rec_frame){.line = -1, .bci = -1};
    for (uint32_t i = 0; i < t->pub.n_fields && !c->failed; i++) {
        const struct rec_field *f = &t->fields[i];
        if (t->roles[i] == ROLE_NONE || f->array || (!f->constant && f->type->kind != REC_INT)) {
            chunk_skip_value(k, f, c, 1);
            continue;
        }
        int64_t number = f->constant ? read_long(k, c) : read_int(k, c);
        if (c->failed)
            break;
        struct reference ref = {k, (struct type *)(void *)f->type, (uint64_t)number};
        if (t->roles[i] == ROLE_LINE && !f->constant) {
            ret->line = raw ? -1 : (int32_t)number;
        } else if (t->roles[i] == ROLE_BCI && !f->constant) {
            ret->bci = (int32_t)number;
        } else if (t->roles[i] == ROLE_METHOD && f->constant) {
            ref.id = raw ? method_of_key(k, ref.id) : ref.id;
            ret->method = method_of(ref);
        } else if (t->roles[i] == ROLE_FRAME_TYPE && f->constant) {
            ret->type = frame_type(ref);
        }
    }
    if (!ret->method)
        ret->method = method_of((struct reference){k, chunk_type_named(k, TYPE_OF_METHODS), 0});
}

static const struct rec_stack *decode_stack(const struct rec_object *o, uint64_t id, bool raw)
{
    struct rec_chunk *k = o->chunk;
    struct rec_value frames;
    if (rec_get(o, "frames", &frames) || !frames.field->array || frames.field->constant ||
        frames.field->type->kind != REC_STRUCT || !chunk_type_named(k, TYPE_OF_METHODS))
        return NULL;
    struct rec_stack *s =
        arena_alloc(&k->stacks, sizeof(*s) + (size_t)frames.count * sizeof(s->frames[0]));
    if (!s)
        return NULL;
    *s = (struct rec_stack){.id = id, .truncated = rec_long(o, "truncated", 0) != 0};
    struct cursor c = cursor_of(frames.object.at, (size_t)(frames.object.end - frames.object.at));
    for (uint64_t i = 0; i < frames.count; i++) {
        read_frame(k, (const struct type *)(const void *)frames.field->type, &c, raw,
                   &s->frames[i]);
        if (c.failed)
            break;
        s->n++;
    }
    return s;
}

/* ---- by path ---- */

static const struct rec_stack *stack_by(struct reference ref)
{
    struct rec_object stack;
    bool raw;
    if (!ref.id)
        return NULL;
    struct type *type = ref.type;
    const struct rec_stack *s = decoded(type, USUAL_STACK, ref.id);
    if (s || !look_up(&ref, &stack, &raw))
        return s;
    s = decode_stack(&stack, ref.id, raw);
    if (s)
        remember(type, ref.id, s);
    return s;
}

#define BY_REFERENCE(name, usual, decode)                              \
    static const struct rec_##name *name##_by(struct reference ref)    \
    {                                                                  \
        struct rec_object at;                                          \
        bool raw;                                                      \
        if (!ref.id)                                                   \
            return NULL;                                               \
        struct type *type = ref.type;                                  \
        const struct rec_##name *found = decoded(type, usual, ref.id); \
        if (found || !look_up(&ref, &at, &raw))                        \
            return found;                                              \
        found = decode(&at);                                           \
        if (found)                                                     \
            remember(type, ref.id, found);                             \
        return found;                                                  \
    }

BY_REFERENCE(thread, USUAL_THREAD, decode_thread)
BY_REFERENCE(class, USUAL_CLASS, decode_class)
BY_REFERENCE(method, USUAL_METHOD, decode_method)

/* Defines the functions that look up a field by its name, and by an id that a field holds. */
#define BY_PATH(name, which, find)                                                    \
    const struct rec_##name *rec_##name(const struct rec_object *o, const char *path) \
    {                                                                                 \
        struct reference ref;                                                         \
        return find_reference(o, path, which, &ref) ? find(ref) : NULL;               \
    }                                                                                 \
    const struct rec_##name *rec_##name##_of(const struct rec_object *o,              \
                                             const struct rec_field *f, uint64_t id)  \
    {                                                                                 \
        struct reference ref = {o->chunk, (struct type *)(void *)f->type, id};        \
        return f->constant && ref.type->usual == (which) ? find(ref) : NULL;          \
    }

BY_PATH(stack, USUAL_STACK, stack_by)
BY_PATH(thread, USUAL_THREAD, thread_by)
BY_PATH(class, USUAL_CLASS, class_by)
BY_PATH(method, USUAL_METHOD, method_by)
