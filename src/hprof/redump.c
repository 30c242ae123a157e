/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/redump.h"

#include "base/cursor.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <errno.h>

enum { ID = 8, FILTER_BITS = 1 << 16 };

struct field {
    uint32_t offset; /* of a reference in the bytes of an instance */
    const char *name;
};

struct class
{
    uint64_t id, super, name;          /* name: the string's id */
    const uint8_t *fields;             /* of CLASS DUMP: name id and type each */
    uint32_t n_fields, own_size, size; /* bytes of its own fields in a dump; shallow size of an instance */
    uint32_t fields_size;              /* those of the superclasses too */
    bool flat, is_thread, dumped;
    uint32_t id_offset; /* of Thread.tid in an instance, when is_thread */
    uint32_t n_references;
    const struct field *references; /* in the order of the bytes */
    const char *source_name;        /* "java.lang.String", "byte[]" */
    const char *descriptor;         /* the internal name */
};

struct thread {
    uint64_t object, our_object;
    uint32_t serial, our_serial, trace;
};

struct redump {
    const struct hprof_redump *how;
    struct arena arena;
    struct map strings;                /* id -> address of the record's body; its length lies before it */
    struct map by_id;                  /* class id -> index of classes */
    struct map by_serial;              /* class serial of the dump -> index of classes */
    struct map serials;                /* class serial of the dump -> ours */
    struct map traces;                 /* trace serial of the dump -> ours */
    struct map frames;                 /* frame id -> address of the record's body */
    struct map thread_serials;         /* the dump's -> index of threads */
    struct map thread_instances;       /* object id of a java.lang.Thread -> address of its sub-record */
    struct map substitutes;            /* object id of a thread -> ours */
    uint64_t filter[FILTER_BITS / 64]; /* bits of the ids in substitutes */
    VEC(struct class) classes;
    VEC(struct thread) threads;
    VEC(const uint8_t *) early; /* instances that came before their class */
    struct class *last;         /* the class of the last instance */
    struct hprof_redump_totals totals;
    int error;
};

static void fail(struct redump *r, int error)
{
    if (!r->error)
        r->error = error;
}

static uint64_t id_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, ID);
    return be64toh(v);
}

static uint32_t u4_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}

static void put_id_at(uint8_t *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, ID);
}

static void put_u4_at(uint8_t *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, 4);
}

static struct str string_of(const struct redump *r, uint64_t id)
{
    const uint64_t *at = map_get(&r->strings, id);
    if (!at)
        return (struct str){"", 0};
    const uint8_t *body = (const uint8_t *)(uintptr_t)*at; /* NOLINT: the map holds addresses */
    return (struct str){(const char *)body + ID, u4_at(body - 4) - ID};
}

static struct class *class_of(struct redump *r, uint64_t id)
{
    if (r->last && r->last->id == id)
        return r->last;
    const uint64_t *index = map_get(&r->by_id, id);
    return index ? r->last = &r->classes.data[*index] : NULL;
}

/* "[[I" or "java/lang/String" in source form. */
static const char *source_name(struct redump *r, struct str s)
{
    static const char *const primitives[26] = {['Z' - 'A'] = "boolean", ['C' - 'A'] = "char", ['F' - 'A'] = "float",
                                               ['D' - 'A'] = "double",  ['B' - 'A'] = "byte", ['S' - 'A'] = "short",
                                               ['I' - 'A'] = "int",     ['J' - 'A'] = "long"};
    size_t dims = 0;
    while (dims < s.len && s.data[dims] == '[')
        dims++;
    struct str element = {s.data + dims, s.len - dims};
    if (dims && element.len == 1 && *element.data >= 'A' && *element.data <= 'Z' && primitives[*element.data - 'A'])
        element = (struct str){primitives[*element.data - 'A'], strlen(primitives[*element.data - 'A'])};
    else if (dims && element.len > 1 && element.data[0] == 'L' && element.data[element.len - 1] == ';')
        element = (struct str){element.data + 1, element.len - 2};
    char *name = arena_alloc(&r->arena, element.len + 2 * dims + 1);
    if (!name) {
        fail(r, -ENOMEM);
        return "";
    }
    for (size_t i = 0; i < element.len; i++)
        name[i] = element.data[i];
    for (size_t i = 0; i < element.len; i++)
        if (name[i] == '/')
            name[i] = '.';
    char *p = name + element.len;
    for (size_t i = 0; i < dims; i++) {
        *p++ = '[';
        *p++ = ']';
    }
    *p = '\0';
    return name;
}

/* The sub-records, one visit each. at is the tag, n the whole length. */
struct visitor {
    void (*root)(struct redump *r, const uint8_t *at, size_t n);
    void (*class)(struct redump *r, const uint8_t *at, size_t n);
    void (*instance)(struct redump *r, const uint8_t *at, size_t n);
    void (*object_array)(struct redump *r, const uint8_t *at, size_t n);
    void (*primitive_array)(struct redump *r, const uint8_t *at, size_t n);
};

static void skip_typed(struct cursor *c, unsigned name_size)
{
    unsigned n = cursor_be16(c);
    while (n-- && !c->failed) {
        cursor_skip(c, name_size);
        unsigned size = hprof_type_size(cursor_u8(c), ID);
        c->failed |= !size;
        cursor_skip(c, size);
    }
}

/* Offsets behind a sub-record's tag. */
enum {
    ROOT_THREAD = 1 + ID,
    OBJECT_TRACE = 1 + ID,
    INSTANCE_CLASS = OBJECT_TRACE + 4,
    INSTANCE_BYTES = INSTANCE_CLASS + ID + 4,
    ARRAY_LENGTH = OBJECT_TRACE + 4,
    ARRAY_CLASS = ARRAY_LENGTH + 4,
    ARRAY_TYPE = ARRAY_LENGTH + 4,
    CLASS_FIXED = 1 + 7 * ID + 8,
};

static void visit_segment(struct redump *r, struct cursor c, const struct visitor *v)
{
    static const uint8_t root_sizes[256] = {
        [HPROF_ROOT_UNKNOWN] = ID,          [HPROF_ROOT_JNI_GLOBAL] = 2 * ID,   [HPROF_ROOT_JNI_LOCAL] = ID + 8,
        [HPROF_ROOT_JAVA_FRAME] = ID + 8,   [HPROF_ROOT_NATIVE_STACK] = ID + 4, [HPROF_ROOT_STICKY_CLASS] = ID,
        [HPROF_ROOT_THREAD_BLOCK] = ID + 4, [HPROF_ROOT_MONITOR_USED] = ID,     [HPROF_ROOT_THREAD_OBJECT] = ID + 8,
    };
    while (cursor_left(&c) && !r->error) {
        const uint8_t *at = c.at;
        unsigned tag = cursor_u8(&c), type;
        const uint8_t *head;
        void (*visit)(struct redump *, const uint8_t *, size_t) = v->root;
        switch (tag) {
        case HPROF_INSTANCE_DUMP:
            head = cursor_take(&c, INSTANCE_BYTES - 1);
            cursor_skip(&c, head ? u4_at(head + INSTANCE_BYTES - 5) : 0);
            visit = v->instance;
            break;
        case HPROF_OBJECT_ARRAY_DUMP:
            head = cursor_take(&c, ARRAY_CLASS + ID - 1);
            cursor_skip(&c, head ? (size_t)ID * u4_at(head + ARRAY_LENGTH - 1) : 0);
            visit = v->object_array;
            break;
        case HPROF_PRIMITIVE_ARRAY_DUMP:
            head = cursor_take(&c, ARRAY_TYPE);
            type = head ? hprof_type_size(head[ARRAY_TYPE - 1], ID) : 0;
            c.failed |= !type;
            cursor_skip(&c, head ? (size_t)type * u4_at(head + ARRAY_LENGTH - 1) : 0);
            visit = v->primitive_array;
            break;
        case HPROF_CLASS_DUMP:
            cursor_skip(&c, CLASS_FIXED - 1);
            skip_typed(&c, 2);
            skip_typed(&c, ID);
            cursor_skip(&c, (size_t)cursor_be16(&c) * (ID + 1));
            visit = v->class;
            break;
        default:
            c.failed |= !root_sizes[tag];
            cursor_skip(&c, root_sizes[tag]);
        }
        if (c.failed) {
            r->totals.cut = true;
            return;
        }
        visit(r, at, (size_t)(c.at - at));
    }
}

/* Visits the records of the whole file: heap dumps by v, others by other() with the body; NULL passes over them. */
static void visit_file(struct redump *r, struct cursor c, const struct visitor *v,
                       void (*other)(struct redump *r, unsigned tag, struct cursor body))
{
    while (cursor_left(&c) >= HPROF_RECORD_HEADER && !r->error) {
        unsigned tag = cursor_u8(&c);
        cursor_skip(&c, 4);
        uint64_t len = cursor_be32(&c);
        bool heap = tag == HPROF_HEAP_DUMP || tag == HPROF_HEAP_DUMP_SEGMENT;
        if (len > cursor_left(&c)) {
            r->totals.cut = true;
            len = cursor_left(&c);
        }
        struct cursor body = cursor_sub(&c, len);
        if (heap && v)
            visit_segment(r, body, v);
        else if (!heap && other && !r->totals.cut)
            other(r, tag, body);
    }
}

/* First pass: strings, classes, frames, threads, totals. */

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
        e = map_put(&r->by_id, c.id, r->classes.len);
        if (e == 0)
            e = map_put(&r->by_serial, serial, r->classes.len);
        if (e == 0)
            e = vec_push(&r->classes, c);
        r->last = NULL;
    }
    if (e < 0)
        fail(r, e);
}

static void learn_root(struct redump *r, const uint8_t *at, size_t n)
{
    r->totals.roots++;
    if (*at != HPROF_ROOT_THREAD_OBJECT)
        return;
    struct thread t = {.object = id_at(at + 1), .serial = u4_at(at + ROOT_THREAD), .trace = u4_at(at + ROOT_THREAD + 4)};
    if (map_put(&r->thread_serials, t.serial, r->threads.len) < 0 || vec_push(&r->threads, t) < 0)
        fail(r, -ENOMEM);
}

static void learn_class(struct redump *r, const uint8_t *at, size_t n)
{
    struct class *c = class_of(r, id_at(at + 1));
    struct cursor b = cursor_of(at, n);
    if (!c || c->dumped)
        return;
    r->totals.objects++;
    c->dumped = true;
    c->super = id_at(at + 1 + ID + 4);
    cursor_skip(&b, CLASS_FIXED);
    skip_typed(&b, 2);
    skip_typed(&b, ID);
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

/* The shallow size of an instance when the VM did not tell: header and fields, references as they lie in the heap. */
static uint32_t reckoned_size(const struct redump *r, const struct class *c)
{
    uint64_t fields = c->fields_size - c->n_references * (uint64_t)(ID - r->how->shapes->reference);
    return (uint32_t)aligned(r, r->how->shapes->header[0] + fields);
}

/* Works out what instances of c look like; its superclasses are known by then. */
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
        struct str name = string_of(r, k->name);
        bool thread = name.len == 16 && memcmp(name.data, "java/lang/Thread", 16) == 0;
        for (uint32_t i = 0; i < k->n_fields; i++) {
            const uint8_t *f = k->fields + i * (ID + 1);
            struct str s = string_of(r, id_at(f));
            if (f[ID] == HPROF_OBJECT) {
                const char *copy = arena_copy(&r->arena, s.data, s.len);
                if (!copy || vec_push(&refs, ((struct field){offset, copy})) < 0)
                    fail(r, -ENOMEM);
            } else if (thread && f[ID] == HPROF_LONG && s.len == 3 && memcmp(s.data, "tid", 3) == 0) {
                c->is_thread = true;
                c->id_offset = offset;
            }
            offset += hprof_type_size(f[ID], ID);
        }
        k = super ? &r->classes.data[*super] : NULL;
    }
    struct str name = string_of(r, c->name);
    c->fields_size = offset;
    c->n_references = (uint32_t)refs.len;
    struct field *kept = arena_alloc(&r->arena, (refs.len + 1) * sizeof(*refs.data));
    if (!kept)
        fail(r, -ENOMEM);
    else if (refs.len)
        memcpy(kept, refs.data, refs.len * sizeof(*refs.data));
    c->references = kept;
    c->source_name = source_name(r, name);
    c->size = r->how->instance_size ? r->how->instance_size(r->how->ctx, name.data, name.len, offset) : 0;
    if (!c->size)
        c->size = reckoned_size(r, c);
    c->flat = true;
    vec_release(&refs);
    return !r->error;
}

static uint64_t array_size(const struct redump *r, unsigned type, uint64_t n)
{
    const struct hprof_shapes *s = r->how->shapes;
    return aligned(r, s->header[type] + n * (type == HPROF_OBJECT ? s->reference : hprof_type_size(type, ID)));
}

/* Roots come behind the objects in some versions, so that threads are put together at the end. */
static void learn_thread(struct redump *r, const uint8_t *at)
{
    if (map_put(&r->thread_instances, id_at(at + 1), (uintptr_t)at) < 0)
        fail(r, -ENOMEM);
}

static void learn_instance(struct redump *r, const uint8_t *at, size_t n)
{
    struct class *c = class_of(r, id_at(at + INSTANCE_CLASS));
    r->totals.objects++;
    if (!c || !flatten(r, c)) {
        if (vec_push(&r->early, at) < 0)
            fail(r, -ENOMEM);
        return;
    }
    if (n < INSTANCE_BYTES + (size_t)c->fields_size)
        fail(r, -EBADMSG);
    r->totals.bytes += c->size;
    if (c->is_thread)
        learn_thread(r, at);
}

static void learn_object_array(struct redump *r, const uint8_t *at, size_t n)
{
    r->totals.objects++;
    r->totals.bytes += array_size(r, HPROF_OBJECT, u4_at(at + ARRAY_LENGTH));
}

static void learn_primitive_array(struct redump *r, const uint8_t *at, size_t n)
{
    r->totals.objects++;
    r->totals.bytes += array_size(r, at[ARRAY_TYPE], u4_at(at + ARRAY_LENGTH));
}

static const struct visitor learn = {learn_root, learn_class, learn_instance, learn_object_array, learn_primitive_array};

static size_t filter_bit(uint64_t id)
{
    return (size_t)(id / 8 ^ id >> 20) % FILTER_BITS;
}

/* What the first pass left open: early instances, and which of our threads the threads of the dump are. */
static void settle(struct redump *r)
{
    for (size_t i = 0; i < r->early.len && !r->error; i++) {
        const uint8_t *at = r->early.data[i];
        struct class *c = class_of(r, id_at(at + INSTANCE_CLASS));
        if (!c || !flatten(r, c) || u4_at(at + INSTANCE_BYTES - 4) < c->fields_size) {
            fail(r, r->error ? r->error : -EBADMSG);
            return;
        }
        r->totals.bytes += c->size;
        if (c->is_thread)
            learn_thread(r, at);
    }
    /* Classes are objects too: instances of java.lang.Class, whose size the VM reports for the mirror. */
    for (size_t i = 0; i < r->classes.len; i++) {
        struct class *c = &r->classes.data[i];
        if (!c->source_name)
            c->source_name = source_name(r, string_of(r, c->name));
    }
    for (size_t i = 0; i < r->threads.len; i++) {
        struct thread *t = &r->threads.data[i];
        t->our_serial = r->how->unknown_thread;
        const uint64_t *found = map_get(&r->thread_instances, t->object);
        if (!found)
            continue;
        const uint8_t *instance = (const uint8_t *)(uintptr_t)*found; /* NOLINT: the map holds addresses */
        const struct class *c = class_of(r, id_at(instance + INSTANCE_CLASS));
        uint64_t java_id = id_at(instance + INSTANCE_BYTES + c->id_offset);
        if (!r->how->thread || !r->how->thread(r->how->ctx, java_id, &t->our_serial, &t->our_object) || !t->our_object)
            continue;
        if (map_put(&r->substitutes, t->object, t->our_object) < 0)
            fail(r, -ENOMEM);
        r->filter[filter_bit(t->object) / 64] |= UINT64_C(1) << filter_bit(t->object) % 64;
    }
}

/* An object's id in our stream. */
static uint64_t ours(const struct redump *r, uint64_t id)
{
    if (likely(!(r->filter[filter_bit(id) / 64] >> filter_bit(id) % 64 & 1)))
        return id;
    const uint64_t *other = map_get(&r->substitutes, id);
    return other ? *other : id;
}

static uint32_t our_thread(const struct redump *r, uint32_t serial)
{
    const uint64_t *index = map_get(&r->thread_serials, serial);
    return index ? r->threads.data[*index].our_serial : r->how->unknown_thread;
}

static uint32_t our_trace(const struct redump *r, uint32_t serial)
{
    const uint64_t *other = map_get(&r->traces, serial);
    return other ? (uint32_t)*other : r->how->empty_trace;
}

/* Where the object of a sub-record was allocated. */
static uint32_t object_trace(const struct redump *r, const uint8_t *at)
{
    uint32_t trace = r->how->allocated ? r->how->allocated(r->how->ctx, id_at(at + 1)) : 0;
    return trace ? trace : r->how->empty_trace;
}

/* Second pass: classes, traces and frames before the dump, then its sub-records. */

static void emit_class_name(struct redump *r, uint64_t dump_serial, const struct class *c)
{
    uint32_t serial = (*r->how->next_class)++;
    uint64_t name = *r->how->next_string;
    *r->how->next_string += 2;
    if (map_put(&r->serials, dump_serial, serial) < 0)
        fail(r, -ENOMEM);
    hprof_utf8(r->how->binary, name, c->source_name, strlen(c->source_name));
    hprof_load_class(r->how->binary, serial, c->id, r->how->empty_trace, name);
}

static void emit_names(struct redump *r)
{
    uint64_t id, value;
    for (size_t i = 0; map_next(&r->strings, &i, &id, &value);) {
        struct str s = string_of(r, id);
        hprof_utf8(r->how->binary, id, s.data, s.len);
    }
    for (size_t i = 0; map_next(&r->by_serial, &i, &id, &value);)
        emit_class_name(r, id, &r->classes.data[value]);
}

static void emit_frame(struct redump *r, const uint8_t *frame, uint64_t our_id)
{
    uint64_t method = id_at(frame + ID), signature = id_at(frame + 2 * ID), source = id_at(frame + 3 * ID);
    uint32_t serial = u4_at(frame + 4 * ID);
    int32_t line = (int32_t)u4_at(frame + 4 * ID + 4);
    if (r->how->binary) {
        const uint64_t *our_class = map_get(&r->serials, serial);
        hprof_frame(r->how->binary, our_id, method, signature, source, our_class ? (uint32_t)*our_class : 0, line);
        return;
    }
    const uint64_t *index = map_get(&r->by_serial, serial);
    struct str m = string_of(r, method), s = string_of(r, source);
    struct buf name = BUF(1 << 17);
    buf_printf(&name, "%s.%.*s", index ? r->classes.data[*index].source_name : "", (int)m.len, m.data);
    char *file = arena_copy(&r->arena, s.data, s.len);
    hprof_text_frame(r->how->text, buf_str(&name), file && *file ? file : NULL, line);
    buf_release(&name);
}

/* STACK TRACE: the stacks of the threads. One that is empty is the VM's dummy. */
static void emit_record(struct redump *r, unsigned tag, struct cursor b)
{
    if (tag != HPROF_TRACE || cursor_left(&b) < 12)
        return;
    uint32_t serial = cursor_be32(&b), thread = our_thread(r, cursor_be32(&b)), n = cursor_be32(&b);
    if (!n || cursor_left(&b) / ID < n)
        return;
    uint32_t our_serial = (*r->how->next_trace)++;
    uint64_t *ids = calloc(n, sizeof(*ids));
    if (!ids || map_put(&r->traces, serial, our_serial) < 0)
        fail(r, -ENOMEM);
    if (r->how->text)
        hprof_text_trace(r->how->text, our_serial, r->how->thread_in_trace ? thread : 0);
    for (uint32_t i = 0; i < n && !r->error; i++) {
        const uint64_t *frame = map_get(&r->frames, cursor_be64(&b));
        if (!frame)
            continue;
        ids[i] = *r->how->next_frame;
        *r->how->next_frame += 2;
        emit_frame(r, (const uint8_t *)(uintptr_t)*frame, ids[i]); /* NOLINT: the map holds addresses */
    }
    if (r->how->binary && !r->error)
        hprof_trace(r->how->binary, our_serial, thread, ids, n);
    free(ids);
}

static void emit_root(struct redump *r, const uint8_t *at, size_t n)
{
    uint64_t object = ours(r, id_at(at + 1)), a = 0;
    uint32_t b = 0;
    const char *name = "";
    const struct class *c;
    switch (*at) {
    case HPROF_ROOT_THREAD_OBJECT:
        a = our_thread(r, u4_at(at + ROOT_THREAD));
        b = our_trace(r, u4_at(at + ROOT_THREAD + 4));
        break;
    case HPROF_ROOT_JNI_GLOBAL:
        a = id_at(at + 1 + ID);
        b = r->how->empty_trace;
        break;
    case HPROF_ROOT_JNI_LOCAL:
    case HPROF_ROOT_JAVA_FRAME:
        b = u4_at(at + ROOT_THREAD + 4);
        a = our_thread(r, u4_at(at + ROOT_THREAD));
        break;
    case HPROF_ROOT_NATIVE_STACK:
    case HPROF_ROOT_THREAD_BLOCK:
        a = our_thread(r, u4_at(at + ROOT_THREAD));
        break;
    case HPROF_ROOT_STICKY_CLASS:
        c = class_of(r, id_at(at + 1));
        name = c ? c->source_name : "";
        break;
    default:
        break;
    }
    if (r->how->binary)
        hprof_root(r->how->binary, *at, object, a, b);
    else
        hprof_text_root(r->how->text, *at, object, a, b, name);
}

/* Copies a sub-record with its trace; the copy when it is small enough to be changed further, else NULL. */
static uint8_t *copy(struct redump *r, const uint8_t *at, size_t n, size_t trace)
{
    struct hprof_writer *w = r->how->binary;
    hprof_sub(w, n);
    uint8_t *to = hprof_sub_add(w, n);
    if (to) {
        memcpy(to, at, n);
        put_id_at(to + 1, ours(r, id_at(at + 1)));
        put_u4_at(to + trace, object_trace(r, at));
        return to;
    }
    hprof_sub_u1(w, *at);
    hprof_sub_id(w, ours(r, id_at(at + 1)));
    hprof_sub_u4(w, object_trace(r, at));
    return NULL;
}

static void emit_binary_class(struct redump *r, const uint8_t *at, size_t n)
{
    uint8_t *to = copy(r, at, n, OBJECT_TRACE);
    if (!to)
        hprof_sub_bytes(r->how->binary, at + INSTANCE_CLASS, n - INSTANCE_CLASS);
    else
        for (unsigned i = 0; i < 4; i++) /* super, loader, signers, domain */
            put_id_at(to + INSTANCE_CLASS + (size_t)i * ID, ours(r, id_at(at + INSTANCE_CLASS + (size_t)i * ID)));
}

static void emit_binary_instance(struct redump *r, const uint8_t *at, size_t n)
{
    const struct class *c = class_of(r, id_at(at + INSTANCE_CLASS));
    uint8_t *to = copy(r, at, n, OBJECT_TRACE);
    if (!to) {
        hprof_sub_bytes(r->how->binary, at + INSTANCE_CLASS, n - INSTANCE_CLASS);
        return;
    }
    for (uint32_t i = 0; i < c->n_references; i++) {
        size_t o = INSTANCE_BYTES + (size_t)c->references[i].offset;
        if (o + ID > n)
            break;
        uint64_t id = id_at(at + o), other = ours(r, id);
        if (unlikely(other != id))
            put_id_at(to + o, other);
    }
}

static void emit_binary_object_array(struct redump *r, const uint8_t *at, size_t n)
{
    const size_t elements = ARRAY_CLASS + ID;
    uint8_t *to = copy(r, at, n, OBJECT_TRACE);
    if (!to)
        hprof_sub_bytes(r->how->binary, at + ARRAY_LENGTH, elements - ARRAY_LENGTH);
    for (size_t o = elements; o < n; o += ID) {
        uint64_t id = id_at(at + o), other = ours(r, id);
        if (!to)
            hprof_sub_id(r->how->binary, other);
        else if (unlikely(other != id))
            put_id_at(to + o, other);
    }
}

static void emit_binary_primitive_array(struct redump *r, const uint8_t *at, size_t n)
{
    if (!copy(r, at, n, OBJECT_TRACE))
        hprof_sub_bytes(r->how->binary, at + ARRAY_LENGTH, n - ARRAY_LENGTH);
}

static const struct visitor emit_binary = {emit_root, emit_binary_class, emit_binary_instance, emit_binary_object_array,
                                           emit_binary_primitive_array};

static void emit_text_class(struct redump *r, const uint8_t *at, size_t n)
{
    static const char *const links[] = {"super", "loader", "signers", "domain"};
    const struct class *c = class_of(r, id_at(at + 1));
    struct hprof_text *t = r->how->text;
    struct cursor b = cursor_of(at, n);
    hprof_text_class(t, id_at(at + 1), c ? c->source_name : "", r->how->empty_trace);
    for (unsigned i = 0; i < ARRAY_SIZE(links); i++)
        hprof_text_class_link(t, links[i], ours(r, id_at(at + INSTANCE_CLASS + (size_t)i * ID)));
    cursor_skip(&b, CLASS_FIXED);
    for (unsigned statics = 0; statics < 2; statics++) {
        unsigned count = cursor_be16(&b);
        while (count-- && !b.failed) {
            uint64_t name = statics ? cursor_be64(&b) : cursor_be16(&b);
            unsigned type = cursor_u8(&b);
            const uint8_t *value = cursor_take(&b, hprof_type_size(type, ID));
            if (type != HPROF_OBJECT || !value)
                continue;
            if (!statics) {
                hprof_text_constant(t, (uint32_t)name, ours(r, id_at(value)));
                continue;
            }
            struct str s = string_of(r, name);
            char *text = arena_copy(&r->arena, s.data, s.len);
            hprof_text_static(t, text ? text : "", ours(r, id_at(value)));
        }
    }
}

static void emit_text_instance(struct redump *r, const uint8_t *at, size_t n)
{
    const struct class *c = class_of(r, id_at(at + INSTANCE_CLASS));
    hprof_text_object(r->how->text, ours(r, id_at(at + 1)), c->size, object_trace(r, at), c->source_name, c->id);
    for (uint32_t i = 0; i < c->n_references; i++) {
        size_t o = INSTANCE_BYTES + (size_t)c->references[i].offset;
        if (o + ID > n)
            break;
        hprof_text_field(r->how->text, c->references[i].name, ours(r, id_at(at + o)));
    }
}

static void emit_text_object_array(struct redump *r, const uint8_t *at, size_t n)
{
    const struct class *c = class_of(r, id_at(at + ARRAY_CLASS));
    uint32_t len = u4_at(at + ARRAY_LENGTH);
    hprof_text_array(r->how->text, ours(r, id_at(at + 1)), array_size(r, HPROF_OBJECT, len), object_trace(r, at), len,
                     c ? c->source_name : "java.lang.Object[]", id_at(at + ARRAY_CLASS));
    for (uint32_t i = 0; i < len; i++)
        hprof_text_element(r->how->text, i, ours(r, id_at(at + ARRAY_CLASS + ID + (size_t)i * ID)));
}

static void emit_text_primitive_array(struct redump *r, const uint8_t *at, size_t n)
{
    static const char *const names[] = {
        [HPROF_BOOLEAN] = "boolean[]", [HPROF_CHAR] = "char[]",   [HPROF_FLOAT] = "float[]", [HPROF_DOUBLE] = "double[]",
        [HPROF_BYTE] = "byte[]",       [HPROF_SHORT] = "short[]", [HPROF_INT] = "int[]",     [HPROF_LONG] = "long[]"};
    uint32_t len = u4_at(at + ARRAY_LENGTH);
    unsigned type = at[ARRAY_TYPE];
    hprof_text_array(r->how->text, id_at(at + 1), array_size(r, type, len), object_trace(r, at), len, names[type], 0);
}

static const struct visitor emit_text = {emit_root, emit_text_class, emit_text_instance, emit_text_object_array,
                                         emit_text_primitive_array};

static void release(struct redump *r)
{
    struct map *maps[] = {&r->strings, &r->by_id,          &r->by_serial,        &r->serials,    &r->traces,
                          &r->frames,  &r->thread_serials, &r->thread_instances, &r->substitutes};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
        map_release(maps[i]);
    vec_release(&r->classes);
    vec_release(&r->threads);
    vec_release(&r->early);
    arena_release(&r->arena);
}

static void emit(struct redump *r, struct cursor file)
{
    const struct hprof_redump *how = r->how;
    if (how->binary)
        emit_names(r);
    visit_file(r, file, NULL, emit_record);
    if (how->binary) {
        hprof_dump_begin(how->binary);
        visit_file(r, file, &emit_binary, NULL);
        hprof_dump_end(how->binary);
        fail(r, hprof_error(how->binary));
    } else {
        hprof_text_heap_begin(how->text, r->totals.objects, r->totals.bytes, how->when);
        visit_file(r, file, &emit_text, NULL);
        hprof_text_heap_end(how->text);
        fail(r, how->text->error);
    }
}

int hprof_redump(const struct hprof_redump *how, const void *dump, size_t len, struct hprof_redump_totals *ret)
{
    struct cursor file = cursor_of(dump, len);
    const void *nul = memchr(dump, 0, MIN(len, 64));
    if (!nul || len < 13 || memcmp(dump, "JAVA PROFILE ", 13) != 0)
        return -EBADMSG;
    cursor_skip(&file, (size_t)((const uint8_t *)nul - (const uint8_t *)dump) + 1);
    if (cursor_be32(&file) != ID || (cursor_skip(&file, 8), file.failed))
        return -EBADMSG;
    struct redump *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->how = how;
    visit_file(r, file, &learn, learn_record);
    if (!r->error)
        settle(r);
    if (!r->error)
        emit(r, file);
    int e = r->error;
    *ret = r->totals;
    release(r);
    free(r);
    return e;
}
