/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a chunk's metadata event: a table of strings, then a tree of elements. Unknown elements are
 * skipped.
 */
#include "base/hash.h"
#include "jfr/reader_internal.h"

struct annotation {
    struct type *type;
    uint32_t field; /* UINT32_MAX for an annotation of the type itself */
    uint64_t class;
    const char *value; /* several are joined by '|'; NULL if none */
};

struct parse {
    struct rec_chunk *k;
    struct cursor c;
    const char **strings;
    uint64_t n_strings;
    VEC(struct rec_field) fields; /* of the class being read */
    VEC(uint64_t) field_types;    /* the type ids of all fields of all classes, in order */
    VEC(struct annotation) annotations;
    int error;
};

static const char *string_of(struct parse *p)
{
    uint64_t i = (uint64_t)rec_read_int(p->k, &p->c);
    if (i >= p->n_strings) {
        p->c.failed = true;
        return "";
    }
    return p->strings[i] ? p->strings[i] : "";
}

static void read_strings(struct parse *p)
{
    uint64_t n = (uint64_t)rec_read_int(p->k, &p->c);
    if (n > cursor_left(&p->c)) {
        p->c.failed = true;
        return;
    }
    p->strings = arena_zalloc(&p->k->types.arena, (size_t)(n + 1) * sizeof(*p->strings));
    if (!p->strings) {
        p->error = -ENOMEM;
        p->c.failed = true;
        return;
    }
    for (; p->n_strings < n && !p->c.failed; p->n_strings++) {
        struct rec_value v = {0};
        rec_chunk_read_string(p->k, &p->c, &v);
        if (v.string.data)
            p->strings[p->n_strings] = recording_text(p->k->recording, v.string.data, v.string.len);
    }
}

struct attribute {
    const char *name, *value;
};

#define MAX_ATTRIBUTES 24

static const char *attribute_of(const struct attribute *a, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(a[i].name, name))
            return a[i].value;
    return NULL;
}

static uint64_t number_of(const struct attribute *a, unsigned n, const char *name)
{
    const char *s = attribute_of(a, n, name);
    return s ? strtoull(s, NULL, 10) : 0;
}

static bool is_true(const char *s)
{
    return s && !strcmp(s, "true");
}

static enum rec_kind kind_of(const char *name)
{
    static const char *const names[] = {
        [REC_BOOLEAN] = "boolean", [REC_BYTE] = "byte",     [REC_CHAR] = "char",
        [REC_SHORT] = "short",     [REC_INT] = "int",       [REC_LONG] = "long",
        [REC_FLOAT] = "float",     [REC_DOUBLE] = "double", [REC_STRING] = "java.lang.String",
    };
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        if (!strcmp(names[i], name))
            return (enum rec_kind)i;
    return REC_STRUCT;
}

static enum usual usual_of(const char *name)
{
    static const char *const names[] = {
        [USUAL_STACK] = "StackTrace", [USUAL_THREAD] = "Thread",        [USUAL_CLASS] = "Class",
        [USUAL_METHOD] = "Method",    [USUAL_FRAME_TYPE] = "FrameType", [USUAL_SYMBOL] = "Symbol",
        [USUAL_PACKAGE] = "Package",  [USUAL_LOADER] = "ClassLoader"};
    const char *dot = strrchr(name, '.');
    for (unsigned i = 1; dot && i < ARRAY_SIZE(names); i++)
        if (!strcmp(names[i], dot + 1))
            return (enum usual)i;
    return USUAL_NONE;
}

static struct type *add_class(struct parse *p, const struct attribute *a, unsigned n)
{
    struct rec_chunk *k = p->k;
    struct type *t = arena_zalloc(&k->types.arena, sizeof(*t));
    const char *name = attribute_of(a, n, "name"), *super = attribute_of(a, n, "superType");
    int64_t number = name ? strpool_add(&k->recording->names, name, strlen(name)) : -EBADMSG;
    if (!t || number < 0 || vec_push(&k->types.list, t)) {
        p->error = name ? -ENOMEM : -EBADMSG;
        p->c.failed = true;
        return NULL;
    }
    t->pub = (struct rec_type){.id = number_of(a, n, "id"),
                               .number = (uint32_t)number,
                               .kind = kind_of(name),
                               .name = name,
                               .event = super && strstr(super, "Event"),
                               .simple = is_true(attribute_of(a, n, "simpleType")),
                               .tag = -1};
    t->round = 1;
    t->usual = usual_of(name);
    if (map_put(&k->types.by_id, t->pub.id, k->types.list.len - 1)) {
        p->error = -ENOMEM;
        p->c.failed = true;
    }
    if (t->pub.id < DIRECT_TYPES)
        k->types.direct[t->pub.id] = t;
    return t;
}

static void add_field(struct parse *p, const struct attribute *a, unsigned n)
{
    struct rec_field f = {.name = attribute_of(a, n, "name"),
                          .constant = is_true(attribute_of(a, n, "constantPool")),
                          .array = number_of(a, n, "dimension") > 0};
    if (!f.name)
        f.name = "";
    if (p->field_types.len >= MAX_FIELDS) {
        p->c.failed = true;
        return;
    }
    if (vec_push(&p->fields, f) || vec_push(&p->field_types, number_of(a, n, "class"))) {
        p->error = -ENOMEM;
        p->c.failed = true;
    }
}

static void add_annotation(struct parse *p, struct type *t, bool of_field,
                           const struct attribute *a, unsigned n)
{
    struct buf joined = BUF(65536);
    const char *value = attribute_of(a, n, "value");
    for (unsigned i = 0; i < n; i++) {
        if (strncmp(a[i].name, "value-", 6) != 0)
            continue;
        buf_printf(&joined, "%s%s", joined.len ? "|" : "", a[i].value);
        value = "";
    }
    if (joined.len && !buf_error(&joined))
        value = recording_text(p->k->recording, (const char *)joined.data, joined.len);
    buf_release(&joined);
    struct annotation row = {t, of_field ? (uint32_t)p->fields.len - 1 : UINT32_MAX,
                             number_of(a, n, "class"), value};
    if (vec_push(&p->annotations, row)) {
        p->error = -ENOMEM;
        p->c.failed = true;
    }
}

/* Moves the collected fields into the type. */
static void end_class(struct parse *p, struct type *t)
{
    size_t bytes = p->fields.len * sizeof(*t->fields);
    t->fields = arena_alloc(&p->k->types.arena, bytes + 1);
    t->roles = arena_zalloc(&p->k->types.arena, p->fields.len + 1);
    if (!t->fields || !t->roles) {
        p->error = -ENOMEM;
        p->c.failed = true;
        return;
    }
    if (bytes)
        memcpy(t->fields, p->fields.data, bytes);
    t->pub.fields = t->fields;
    t->pub.n_fields = (uint32_t)p->fields.len;
    vec_clear(&p->fields);
}

static void read_element(struct parse *p, struct type *type, bool in_field, int depth)
{
    struct attribute a[MAX_ATTRIBUTES];
    unsigned n = 0;
    const char *name = string_of(p);
    uint32_t attributes = (uint32_t)rec_read_int(p->k, &p->c);
    for (uint32_t i = 0; i < attributes && !p->c.failed; i++) {
        struct attribute one;
        one.name = string_of(p);
        one.value = string_of(p);
        if (n < MAX_ATTRIBUTES)
            a[n++] = one;
    }
    if (p->c.failed || depth > MAX_NESTING) {
        p->c.failed = true;
        return;
    }
    bool class = !type && !strcmp(name, "class"),
         field = type && !in_field && !strcmp(name, "field");
    if (class)
        type = add_class(p, a, n);
    else if (field)
        add_field(p, a, n);
    else if (type && !strcmp(name, "annotation"))
        add_annotation(p, type, in_field, a, n);
    uint32_t children = (uint32_t)rec_read_int(p->k, &p->c);
    for (uint32_t i = 0; i < children && !p->c.failed; i++)
        read_element(p, type, in_field || field, depth + 1);
    if (class && !p->c.failed)
        end_class(p, type);
}

/* ---- what annotations mean ---- */

static enum rec_unit span_unit(const char *value)
{
    static const struct {
        const char *name;
        enum rec_unit unit;
    } rows[] = {{"TICKS", REC_TICKS},
                {"SECONDS", REC_SECONDS},
                {"MILLISECONDS", REC_MILLIS},
                {"MICROSECONDS", REC_MICROS},
                {"NANOSECONDS", REC_NANOS}};

    for (size_t i = 0; value && i < ARRAY_SIZE(rows); i++)
        if (!strcmp(rows[i].name, value))
            return rows[i].unit;
    return REC_PLAIN;
}

static enum rec_unit stamp_unit(const char *value)
{
    if (value && !strncmp(value, "MILLISECONDS", 12))
        return REC_MILLIS_STAMP;
    if (value && !strncmp(value, "NANOSECONDS", 11))
        return REC_NANOS_STAMP;
    return REC_TICKS_STAMP;
}

static void apply_to_field(struct rec_field *f, const char *name, const char *value)
{
    if (!strcmp(name, "Label"))
        f->label = value;
    else if (!strcmp(name, "Timespan"))
        f->unit = span_unit(value);
    else if (!strcmp(name, "Timestamp"))
        f->unit = stamp_unit(value);
    else if (!strcmp(name, "DataAmount"))
        f->unit = f->unit == REC_HERTZ ? (value && !strcmp(value, "BITS") ? REC_BITS_PER_SECOND
                                                                          : REC_BYTES_PER_SECOND)
                                       : (value && !strcmp(value, "BITS") ? REC_BITS : REC_BYTES);
    else if (!strcmp(name, "MemoryAddress"))
        f->unit = REC_ADDRESS;
    else if (!strcmp(name, "Percentage"))
        f->unit = REC_PERCENTAGE;
    else if (!strcmp(name, "Frequency"))
        f->unit = f->unit == REC_BYTES  ? REC_BYTES_PER_SECOND
                  : f->unit == REC_BITS ? REC_BITS_PER_SECOND
                                        : REC_HERTZ;
    else if (!strcmp(name, "Unsigned"))
        f->is_unsigned = true;
    else if (!strcmp(name, "Contextual"))
        f->contextual = true;
}

static void apply_annotations(struct parse *p)
{
    for (size_t i = 0; i < p->annotations.len; i++) {
        const struct annotation *a = &p->annotations.data[i];
        const struct type *class = rec_chunk_type(p->k, a->class);
        const char *dot = class ? strrchr(class->pub.name, '.') : NULL;
        if (!dot)
            continue;
        if (a->field != UINT32_MAX)
            apply_to_field(&a->type->fields[a->field], dot + 1, a->value);
        if (a->field != UINT32_MAX)
            a->type->pub.contextual |= a->type->fields[a->field].contextual;
        else if (!strcmp(dot, ".Label"))
            a->type->pub.label = a->value;
        else if (!strcmp(dot, ".Category"))
            a->type->pub.category = a->value;
    }
}

static const struct {
    const char *name;
    enum role role;
} field_roles[] = {
    {"method", ROLE_METHOD},       {"lineNumber", ROLE_LINE},     {"bytecodeIndex", ROLE_BCI},
    {"type", ROLE_TYPE},           {"name", ROLE_NAME},           {"descriptor", ROLE_DESCRIPTOR},
    {"modifiers", ROLE_MODIFIERS}, {"hidden", ROLE_HIDDEN},       {"package", ROLE_PACKAGE},
    {"classLoader", ROLE_LOADER},  {"truncated", ROLE_TRUNCATED}, {"frames", ROLE_FRAMES}};

/* Returns whether a value of the field is one compressed number in the file. */
static bool is_long(const struct rec_chunk *k, const struct rec_field *f)
{
    return k->compressed && !f->array &&
           (f->constant || (f->type->kind >= REC_CHAR && f->type->kind <= REC_LONG));
}

/*
 * Resolves the types of fields. A field of an unknown type would make its owner unreadable, so the
 * chunk is refused.
 */
static bool link_fields(struct parse *p)
{
    size_t next = 0;
    for (size_t i = 0; i < p->k->types.list.len; i++) {
        struct type *t = p->k->types.list.data[i];
        uint32_t longs = 0;
        for (uint32_t j = 0; j < t->pub.n_fields; j++) {
            struct rec_field *f = &t->fields[j];
            const struct type *type = rec_chunk_type(p->k, p->field_types.data[next++]);
            if (!type)
                return false;
            f->type = &type->pub;
            if (f->type->kind < REC_STRUCT)
                f->constant = false;
            longs += is_long(p->k, f);
            for (size_t r = 0; r < ARRAY_SIZE(field_roles); r++)
                if (!strcmp(field_roles[r].name, f->name))
                    t->roles[j] = (uint8_t)field_roles[r].role;
        }
        t->n_longs = longs == t->pub.n_fields ? longs : 0;
        const struct rec_field *f = t->fields;
        t->starts = t->pub.n_fields > 0 && !strcmp(f[0].name, "startTime") &&
                    f[0].type->kind == REC_LONG && !f[0].array;
        t->lasts = t->starts && t->pub.n_fields > 1 && !strcmp(f[1].name, "duration") &&
                   f[1].type->kind == REC_LONG && !f[1].array;
        if (t->pub.n_fields == 1 && t->pub.kind == REC_STRUCT && !t->pub.event &&
            f[0].type->kind == REC_STRING)
            t->pub.simple = true;
    }
    return true;
}

void described_release(struct described *types)
{
    for (size_t i = 0; i < types->list.len; i++) {
        map_release(&types->list.data[i]->far_index);
        vec_release(&types->list.data[i]->far);
        vec_release(&types->list.data[i]->constants);
    }
    vec_release(&types->list);
    vec_release(&types->public);
    map_release(&types->by_id);
    arena_release(&types->arena);
    *types = (struct described){0};
}

/*
 * Drops the constants that the map has of a chunk with few of them: their ids are new in each chunk
 * and would fill the map.
 */
static void trim_far(struct type *t)
{
    enum { SMALL = 1024, WASTE = 4 };

    if (t->far.len <= SMALL + WASTE * t->n_constants)
        return;
    map_release(&t->far_index);
    vec_release(&t->far);
}

void described_keep(struct rec_chunk *k)
{
    struct recording *r = k->recording;
    if (!k->types.text || r->n_spare == SPARE_TYPES)
        return;
    for (size_t i = 0; i < k->types.list.len; i++) {
        struct type *t = k->types.list.data[i];
        trim_far(t);
        t->n_constants = 0;
        t->round++;
    }
    r->spare[r->n_spare++] = k->types;
    k->types = (struct described){0};
}

/* Copies the types of an earlier chunk with the same metadata. Returns whether there is one. */
static bool described_take(struct rec_chunk *k, const uint8_t *text, size_t len)
{
    struct recording *r = k->recording;
    for (size_t i = r->n_spare; i-- > 0;) {
        const struct described *spare = &r->spare[i];
        if (spare->text_len != len || spare->compressed != k->compressed ||
            memcmp(spare->text, text, len) != 0)
            continue;
        k->types = *spare;
        r->spare[i] = r->spare[--r->n_spare];
        return true;
    }
    return false;
}

/* Finds the types that are looked up by name for each chunk or stack. */
static void find_named(struct rec_chunk *k)
{
    static const char *const names[] = {[TYPE_OF_METHODS] = "jdk.types.Method",
                                        [TYPE_OF_METHOD_KEYS] = "jvmscope.types.MethodKey",
                                        [TYPE_OF_STRINGS] = "java.lang.String"};
    for (size_t i = k->types.list.len; i-- > 0;)
        for (size_t n = 0; n < ARRAY_SIZE(names); n++)
            if (!strcmp(k->types.list.data[i]->pub.name, names[n]))
                k->types.named[n] = k->types.list.data[i];
}

/* Reads the metadata after the head of its event. */
static int read_types(struct rec_chunk *k, struct cursor *c)
{
    struct parse p = {.k = k, .c = *c};
    k->types.direct = arena_zalloc(&k->types.arena, DIRECT_TYPES * sizeof(struct type *));
    if (!k->types.direct)
        return -ENOMEM;
    read_strings(&p);
    if (!p.c.failed)
        read_element(&p, NULL, false, 0);
    if (!p.c.failed && !link_fields(&p))
        p.c.failed = true;
    if (!p.c.failed)
        apply_annotations(&p);
    for (size_t i = 0; !p.c.failed && i < k->types.list.len; i++)
        if (vec_push(&k->types.public, k->types.list.data[i]->pub))
            p.error = -ENOMEM;
    find_named(k);
    vec_release(&p.fields);
    vec_release(&p.field_types);
    vec_release(&p.annotations);
    return p.error ? p.error : p.c.failed ? -EBADMSG : 0;
}

int rec_chunk_read_metadata(struct rec_chunk *k, const char **ret_why)
{
    struct cursor c = rec_chunk_cursor(
        k, k->metadata < (size_t)(k->end - k->start) ? k->start + k->metadata : NULL);
    *ret_why = "the description of its events is damaged or missing";
    const uint8_t *start = c.at;
    uint32_t size = (uint32_t)rec_read_int(k, &c);
    if (c.failed || size < (size_t)(c.at - start) || size > (size_t)(k->end - start))
        return -EBADMSG;
    c.end = start + size;
    if (rec_read_long(k, &c) != TYPE_METADATA)
        return -EBADMSG;
    for (int i = 0; i < 3; i++) /* start time, duration, metadata id */
        rec_read_long(k, &c);
    if (c.failed)
        return -EBADMSG;
    const uint8_t *text = c.at;
    size_t len = cursor_left(&c);
    if (described_take(k, text, len))
        return 0;
    int error = read_types(k, &c);
    k->types.text = text;
    k->types.text_len = len;
    k->types.text_hash = hash_bytes(text, len);
    k->types.compressed = k->compressed;
    return error;
}

struct type *rec_chunk_type_named(const struct rec_chunk *k, enum named_type which)
{
    return k->types.named[which];
}

struct type *rec_chunk_type_called(const struct rec_chunk *k, const char *name)
{
    for (size_t i = 0; i < k->types.list.len; i++)
        if (!strcmp(k->types.list.data[i]->pub.name, name))
            return k->types.list.data[i];
    return NULL;
}
