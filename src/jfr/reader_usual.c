/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes each thread, class and method once and finds it by its id afterwards. The same thread,
 * class or method in several chunks is recognized by the numbers of its texts, because the ids of
 * each chunk are different.
 */
#include "jfr/reader_usual.h"

#include "base/class_name.h"

#include <stdio.h>

void usual_remember(struct type *t, uint64_t id, const void *what)
{
    struct constant *c = id < t->constants.len ? &t->constants.data[id] : constant_far(t, id);
    if (c) {
        c->what = what;
        c->decoded = t->round;
    }
}

bool usual_reference(const struct rec_object *o, const char *path, enum usual usual,
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
            rec_chunk_skip_value(at.chunk, &at.type->fields[j], &c, 0);
        *ret = (struct reference){at.chunk, (struct type *)(void *)f->type,
                                  (uint64_t)rec_read_long(at.chunk, &c)};
        return !c.failed && ret->type->usual == usual;
    }
    return false;
}

bool usual_resolve(struct reference *ref, struct rec_object *ret, bool *ret_raw)
{
    uint64_t place = rec_chunk_constant_place(&ref->chunk, &ref->type, ref->id);
    if (!place)
        return false;
    struct recording *r = ref->chunk->recording;
    *ret = (struct rec_object){r, ref->chunk, &ref->type->pub, r->data + (place & ~PLACE_RAW),
                               ref->chunk->end};
    *ret_raw = place & PLACE_RAW;
    return true;
}

const char *usual_text_at(const struct rec_object *o, const char *path)
{
    const char *s = rec_string(o, path, NULL);
    return s ? recording_text(o->recording, s, strlen(s)) : NULL;
}

/* ---- threads ---- */

static const struct rec_thread *decode_thread(const struct rec_object *o,
                                              const struct rec_thread *before)
{
    struct recording *r = o->recording;
    struct rec_thread t = {.java_name = usual_text_at(o, "javaName"),
                           .os_name = usual_text_at(o, "osName"),
                           .java_id = rec_long(o, "javaThreadId", 0),
                           .os_id = rec_long(o, "osThreadId", 0),
                           .group = usual_text_at(o, "group.name"),
                           .is_virtual = rec_long(o, "virtual", 0) != 0};
    if (!t.java_name && !t.os_name)
        t.os_name = usual_text_at(o, "name"); /* chunks of version 1 */
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

/* ---- objects and texts ---- */

/* The fields of an object that have roles, as numbers or ids of constants. */
struct slots {
    /* NULL if the object has no fields that can be read in this way */
    const struct rec_field *field[ROLES];
    uint64_t number[ROLES];
};

static bool has_number(const struct rec_field *f)
{
    return !f->array && (f->constant || f->type->kind <= REC_LONG);
}

/* Reads the object's fields one after the other. Returns false when its bytes are damaged. */
static bool read_slots(const struct rec_object *o, struct slots *ret)
{
    const struct type *t = (const struct type *)(const void *)o->type;
    const struct rec_chunk *k = o->chunk;
    struct cursor c = cursor_of(o->at, (size_t)(o->end - o->at));
    memset(ret->field, 0, sizeof(ret->field));
    for (uint32_t i = 0; i < t->pub.n_fields && !c.failed; i++) {
        const struct rec_field *f = &t->fields[i];
        enum role role = t->roles[i];
        if (role == ROLE_NONE || ret->field[role] || !has_number(f)) {
            rec_chunk_skip_value(k, f, &c, 0);
            continue;
        }
        ret->field[role] = f;
        if (!f->constant && f->type->kind <= REC_BYTE)
            ret->number[role] = cursor_u8(&c);
        else if (!f->constant && f->type->kind < REC_INT && !k->compressed)
            ret->number[role] = cursor_be16(&c);
        else
            ret->number[role] = f->constant || f->type->kind == REC_LONG
                                    ? (uint64_t)rec_read_long(k, &c)
                                    : (uint32_t)rec_read_int(k, &c);
    }
    return !c.failed;
}

/* The number of a text that is null, or that could not be stored because memory was exhausted. */
enum { NO_TEXT = -1 };

/* Returns the number of a text of the recording, or NO_TEXT. */
static int64_t text_number(struct recording *r, const char *s, size_t len)
{
    int64_t number = strpool_add(&r->texts, s, len);
    return number < 0 ? NO_TEXT : number;
}

static const char *text_of(const struct recording *r, int64_t number)
{
    return number < 0 ? NULL : strpool_get(&r->texts, (uint64_t)number).data;
}

static int64_t text_number_at(const struct rec_object *o, const char *path)
{
    const char *s = rec_string(o, path, NULL);
    return s ? text_number(o->recording, s, strlen(s)) : NO_TEXT;
}

/*
 * Returns the length of a text that can be used as it is, or 0 if there is none or it must be
 * converted.
 */
static size_t plain_text(const uint8_t *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!s[i] || s[i] & 0x80)
            return 0;
    return len;
}

/*
 * Returns the text of a struct with a single string, such as jdk.types.Symbol. It is probably the
 * one with the number `before`, if that is not negative.
 */
static int64_t symbol_text(const struct rec_object *o, int64_t before)
{
    enum { UTF8 = 3 };

    if (o->type->n_fields != 1)
        return NO_TEXT;
    struct cursor c = cursor_of(o->at, (size_t)(o->end - o->at));
    if (o->type->fields[0].type->kind == REC_STRING && cursor_u8(&c) == UTF8) {
        uint32_t n = (uint32_t)rec_read_int(o->chunk, &c);
        const uint8_t *bytes = cursor_take(&c, n);
        struct str text =
            before < 0 ? (struct str){0} : strpool_get(&o->recording->texts, (uint64_t)before);
        if (bytes && n && n == text.len && memcmp(bytes, text.data, n) == 0 && plain_text(bytes, n))
            return before;
        if (bytes && plain_text(bytes, n))
            return text_number(o->recording, (const char *)bytes, n);
    }
    return text_number_at(o, o->type->fields[0].name);
}

/*
 * Returns the text of a field for which an object was read. `path` is the field's name, by which it
 * is read if it holds the text itself.
 */
static int64_t slot_text(const struct rec_object *o, const struct slots *s, enum role role,
                         const char *path)
{
    const struct rec_field *f = s->field[role];
    if (!f || !f->constant)
        return text_number_at(o, path);
    struct type *type = (struct type *)(void *)f->type;
    uintptr_t known = (uintptr_t)usual_decoded(type, USUAL_SYMBOL, s->number[role]);
    if (known)
        return (int64_t)known - 1;
    struct reference ref = {o->chunk, type, s->number[role]};
    struct rec_object at;
    bool raw;
    bool is_symbol = type->usual == USUAL_SYMBOL;
    int64_t before =
        is_symbol ? (int64_t)(uintptr_t)usual_before(type, s->number[role]) - 1 : NO_TEXT;
    int64_t number = usual_resolve(&ref, &at, &raw) ? symbol_text(&at, before) : NO_TEXT;
    if (number >= 0 && is_symbol)
        usual_remember(type, s->number[role], (const void *)(uintptr_t)(number + 1));
    return number;
}

/* ---- classes ---- */

/* Converts "[Ljava/lang/String;" to "java.lang.String[]". Returns the number of a text. */
static int64_t external_name(struct recording *r, const char *s)
{
    struct buf b = BUF(1 << 20);
    class_name_put(&b, (struct str){s, strlen(s)});
    int64_t name = text_number(r, buf_str(&b), strlen(buf_str(&b)));
    buf_release(&b);
    return name;
}

/*
 * Returns the number of a class's external name, given the number of the internal one. Each is
 * converted once.
 */
static int64_t class_name(struct recording *r, int64_t internal)
{
    if (internal < 0)
        return internal;
    uint64_t i = (uint64_t)internal;
    if (i < r->class_names.len && r->class_names.data[i])
        return r->class_names.data[i] - 1;
    int64_t name = external_name(r, strpool_get(&r->texts, i).data);
    if (name >= 0 &&
        (i < r->class_names.len || vec_extend(&r->class_names, i + 1 - r->class_names.len) == 0))
        r->class_names.data[i] = (uint32_t)name + 1;
    return name;
}

struct package {
    const char *name, *module;
};

/* Returns the package whose id a class has. */
static const struct package *package_of(const struct rec_object *o, const struct slots *s)
{
    static const struct package none;
    const struct rec_field *f = s->field[ROLE_PACKAGE];
    if (!f || !f->constant)
        return &none;
    struct type *type = (struct type *)(void *)f->type;
    const struct package *known = usual_decoded(type, USUAL_PACKAGE, s->number[ROLE_PACKAGE]);
    if (known)
        return known;
    struct recording *r = o->recording;
    struct package *fresh = arena_alloc(&o->chunk->decoded, sizeof(*fresh));
    if (!fresh)
        return &none;
    *fresh = (struct package){.name = text_of(r, class_name(r, text_number_at(o, "package.name"))),
                              .module = usual_text_at(o, "package.module.name")};
    if (type->usual == USUAL_PACKAGE)
        usual_remember(type, s->number[ROLE_PACKAGE], fresh);
    return fresh;
}

/*
 * Returns the name of the loader whose id a class has. NO_TEXT stands for the boot loader, or an
 * unknown one.
 */
static int64_t loader_of(const struct rec_object *o, const struct slots *s)
{
    const struct rec_field *f = s->field[ROLE_LOADER];
    if (!f || !f->constant)
        return NO_TEXT;
    struct type *type = (struct type *)(void *)f->type;
    uintptr_t known = (uintptr_t)usual_decoded(type, USUAL_LOADER, s->number[ROLE_LOADER]);
    if (known)
        return (int64_t)known - 2;
    struct recording *r = o->recording;
    int64_t name = text_number_at(o, "classLoader.name");
    if (name < 0)
        name = class_name(r, text_number_at(o, "classLoader.type.name"));
    /* The JDK has called the boot loader "bootstrap" since version 11. */
    if (name >= 0 && str_is(strpool_get(&r->texts, (uint64_t)name), "bootstrap"))
        name = NO_TEXT;
    if (type->usual == USUAL_LOADER)
        usual_remember(type, s->number[ROLE_LOADER], (const void *)(uintptr_t)(name + 2));
    return name;
}

/* Returns whether two texts, which are interned, are the same, or both are null or empty. */
static bool same_text(const char *a, const char *b)
{
    return a == b || ((!a || !*a) && (!b || !*b));
}

/* Decodes a class. `before` is the class for which the constant probably stands, or NULL. */
static const struct rec_class *decode_class(const struct rec_object *o,
                                            const struct rec_class *before)
{
    struct recording *r = o->recording;
    struct slots s;
    if (!read_slots(o, &s)) {
        recording_damage(r, o->at, "an event's contents are damaged");
        return NULL;
    }
    int64_t name = class_name(r, slot_text(o, &s, ROLE_NAME, "name")), loader = loader_of(o, &s);
    const char *loader_text = text_of(r, loader);
    if (before && name >= 0 && before->name == text_of(r, name) &&
        same_text(before->loader, loader_text))
        return before;
    int64_t key[2] = {name, loader_text && *loader_text ? loader : NO_TEXT};
    int64_t number = strpool_add(&r->class_keys, (const char *)key, sizeof(key));
    if (number < 0)
        return NULL;
    if ((size_t)number < r->classes.len)
        return r->classes.data[number];
    const struct package *package = package_of(o, &s);
    struct rec_class *fresh = arena_alloc(&r->usual, sizeof(*fresh));
    if (!fresh || vec_push(&r->classes, fresh))
        return NULL;
    const char *text = text_of(r, name);
    *fresh = (struct rec_class){.number = (uint32_t)number,
                                .name = text ? text : "",
                                .loader = loader_text,
                                .package = package->name,
                                .module = package->module,
                                .hidden = s.field[ROLE_HIDDEN] && s.number[ROLE_HIDDEN]};
    return fresh;
}

/* ---- methods ---- */

/*
 * Returns the method of this class, name and descriptor, which is added from *m if it is new.
 * `before` is the method that it probably is, or NULL.
 */
static const struct rec_method *intern_method(struct recording *r, const struct rec_method *m,
                                              int64_t name, int64_t descriptor,
                                              const struct rec_method *before)
{
    const char *text = text_of(r, descriptor);
    if (before && name >= 0 && before->class == m->class && before->name == text_of(r, name) &&
        same_text(before->descriptor, text))
        return before;
    int64_t key[3] = {m->class ? (int64_t)m->class->number : -1, name,
                      text && *text ? descriptor : NO_TEXT};
    int64_t number = strpool_add(&r->method_keys, (const char *)key, sizeof(key));
    if (number < 0)
        return NULL;
    if ((size_t)number < r->methods.len)
        return r->methods.data[number];
    struct rec_method *fresh = arena_alloc(&r->usual, sizeof(*fresh));
    if (!fresh || vec_push(&r->methods, fresh))
        return NULL;
    *fresh = *m;
    fresh->number = (uint32_t)number;
    fresh->name = fresh->full = name < 0 ? "" : text_of(r, name);
    fresh->descriptor = text;
    if (m->class) {
        buf_clear(&r->key);
        buf_printf(&r->key, "%s.%s", m->class->name, fresh->name);
        fresh->full = recording_text(r, buf_str(&r->key), strlen(buf_str(&r->key)));
    }
    return fresh;
}

static const struct rec_class *class_by(struct reference ref);

static const struct rec_method *decode_method(const struct rec_object *o,
                                              const struct rec_method *before)
{
    struct slots s;
    if (!read_slots(o, &s)) {
        recording_damage(o->recording, o->at, "an event's contents are damaged");
        return NULL;
    }
    const struct rec_field *f = s.field[ROLE_TYPE];
    struct rec_method m = {.modifiers =
                               s.field[ROLE_MODIFIERS] ? (uint32_t)s.number[ROLE_MODIFIERS] : 0,
                           .hidden = s.field[ROLE_HIDDEN] && s.number[ROLE_HIDDEN]};
    if (f && f->constant && ((const struct type *)(const void *)f->type)->usual == USUAL_CLASS)
        m.class = class_by(
            (struct reference){o->chunk, (struct type *)(void *)f->type, s.number[ROLE_TYPE]});
    if (m.class && !*m.class->name)
        m.class = NULL;
    return intern_method(o->recording, &m, slot_text(o, &s, ROLE_NAME, "name"),
                         slot_text(o, &s, ROLE_DESCRIPTOR, "descriptor"), before);
}

const struct rec_method *usual_method(struct reference ref)
{
    static const char unresolved[] = "[unresolved method]";
    static const struct rec_method none = {
        .number = UINT32_MAX, .name = unresolved, .full = unresolved};
    struct rec_object o;
    bool raw;
    const struct rec_method *m = usual_decoded(ref.type, USUAL_METHOD, ref.id);
    if (m)
        return m;
    struct recording *r = ref.chunk->recording;
    struct type *type = ref.type;
    uint64_t id = ref.id;
    m = type->usual == USUAL_METHOD && usual_resolve(&ref, &o, &raw)
            ? decode_method(&o, usual_before(type, id))
            : intern_method(r, &(struct rec_method){0},
                            text_number(r, unresolved, sizeof(unresolved) - 1), NO_TEXT, NULL);
    if (m && type->usual == USUAL_METHOD)
        usual_remember(type, id, m);
    return m ? m : &none;
}

/* ---- by path ---- */

#define BY_REFERENCE(name, usual, decode)                                    \
    static const struct rec_##name *name##_by(struct reference ref)          \
    {                                                                        \
        struct rec_object at;                                                \
        bool raw;                                                            \
        if (!ref.id)                                                         \
            return NULL;                                                     \
        struct type *type = ref.type;                                        \
        const struct rec_##name *found = usual_decoded(type, usual, ref.id); \
        if (found || !usual_resolve(&ref, &at, &raw))                        \
            return found;                                                    \
        found = decode(&at, usual_before(type, ref.id));                     \
        if (found)                                                           \
            usual_remember(type, ref.id, found);                             \
        return found;                                                        \
    }

BY_REFERENCE(thread, USUAL_THREAD, decode_thread)
BY_REFERENCE(class, USUAL_CLASS, decode_class)
BY_REFERENCE(method, USUAL_METHOD, decode_method)

/* Defines the function that looks up a field by its name. */
#define BY_PATH(name, which, find)                                                    \
    const struct rec_##name *rec_##name(const struct rec_object *o, const char *path) \
    {                                                                                 \
        struct reference ref;                                                         \
        return usual_reference(o, path, which, &ref) ? find(ref) : NULL;              \
    }

/* Defines the function that looks up an id that a field holds. */
#define BY_ID(name, which, find)                                                     \
    const struct rec_##name *rec_##name##_of(const struct rec_object *o,             \
                                             const struct rec_field *f, uint64_t id) \
    {                                                                                \
        struct reference ref = {o->chunk, (struct type *)(void *)f->type, id};       \
        return f->constant && ref.type->usual == (which) ? find(ref) : NULL;         \
    }

BY_PATH(stack, USUAL_STACK, usual_stack)
BY_PATH(thread, USUAL_THREAD, thread_by)
BY_PATH(class, USUAL_CLASS, class_by)
BY_PATH(method, USUAL_METHOD, method_by)
BY_ID(stack, USUAL_STACK, usual_stack)
BY_ID(thread, USUAL_THREAD, thread_by)
BY_ID(class, USUAL_CLASS, class_by)
