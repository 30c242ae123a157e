/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata event: a table of strings and a tree of elements with attributes, both of which are
 * numbers of strings. It is written again when types are added, which happens several times when a
 * recording begins, so the strings and the elements of types are kept and only new ones are added.
 */
#include "base/buf.h"
#include "jfr/internal.h"

#include <stdio.h>

#define ANNOTATION_BASE 20000u /* ids of annotation types, larger than all others */

static const struct primitive {
    const char *name;
    uint32_t id;
} primitives[] = {
    {"boolean", 4}, {"char", 5},  {"float", 6}, {"double", 7},
    {"byte", 8},    {"short", 9}, {"int", 10},  {"long", 11},
};

enum annotation {
    A_LABEL,
    A_DESCRIPTION,
    A_CATEGORY,
    A_TIMESTAMP,
    A_TIMESPAN,
    A_DATA_AMOUNT,
    A_MEMORY_ADDRESS,
    A_PERCENTAGE,
    A_UNSIGNED,
    A_FREQUENCY,
    A_CONTEXTUAL,
    N_ANNOTATIONS
};

static const struct {
    const char *name;
    /* the annotation has a member `value`, which is a string or an array of strings */
    bool value, array;
} annotations[N_ANNOTATIONS] = {
    [A_LABEL] = {"jdk.jfr.Label", true},
    [A_DESCRIPTION] = {"jdk.jfr.Description", true},
    [A_CATEGORY] = {"jdk.jfr.Category", true, true},
    [A_TIMESTAMP] = {"jdk.jfr.Timestamp", true},
    [A_TIMESPAN] = {"jdk.jfr.Timespan", true},
    [A_DATA_AMOUNT] = {"jdk.jfr.DataAmount", true},
    [A_MEMORY_ADDRESS] = {"jdk.jfr.MemoryAddress"},
    [A_PERCENTAGE] = {"jdk.jfr.Percentage"},
    [A_UNSIGNED] = {"jdk.jfr.Unsigned"},
    [A_FREQUENCY] = {"jdk.jfr.Frequency"},
    [A_CONTEXTUAL] = {"jdk.jfr.Contextual"},
};

static const struct {
    enum annotation annotation; /* A_LABEL is not a unit, so it stands for none */
    const char *value;
} units[] = {
    [JFR_TICKS_STAMP] = {A_TIMESTAMP, "TICKS"},
    [JFR_TICKS] = {A_TIMESPAN, "TICKS"},
    [JFR_NANOS] = {A_TIMESPAN, "NANOSECONDS"},
    [JFR_MICROS] = {A_TIMESPAN, "MICROSECONDS"},
    [JFR_MILLIS] = {A_TIMESPAN, "MILLISECONDS"},
    [JFR_MILLIS_STAMP] = {A_TIMESTAMP, "MILLISECONDS_SINCE_EPOCH"},
    [JFR_BYTES] = {A_DATA_AMOUNT, "BYTES"},
    [JFR_ADDRESS] = {A_MEMORY_ADDRESS},
    [JFR_PERCENTAGE] = {A_PERCENTAGE},
    [JFR_UNSIGNED] = {A_UNSIGNED},
    [JFR_HERTZ] = {A_FREQUENCY},
    [JFR_CONTEXTUAL] = {A_CONTEXTUAL},
    [JFR_UNITS] = {A_UNSIGNED},
};

#define PART BUF(UINT32_C(1) << 26)

/* A part of the tree. */
struct tree {
    struct strpool *strings;
    struct buf *out;
    bool failed;
};

static void put_text(struct tree *t, const char *s, size_t len)
{
    int64_t number = strpool_add(t->strings, s, len);
    if (number < 0)
        t->failed = true;
    buf_jfr_long(t->out, (uint64_t)MAX(number, 0));
}

static void open_element(struct tree *t, const char *name, unsigned attributes)
{
    put_text(t, name, strlen(name));
    buf_jfr_long(t->out, attributes);
}

static void attribute(struct tree *t, const char *name, const char *value)
{
    put_text(t, name, strlen(name));
    put_text(t, value, strlen(value));
}

static void attribute_number(struct tree *t, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    attribute(t, name, text);
}

static void children(struct tree *t, unsigned n)
{
    buf_jfr_long(t->out, n);
}

/*
 * Writes an annotation. value may be NULL. For an annotation with an array, "A|B" becomes value-0
 * and value-1.
 */
static void put_annotation(struct tree *t, enum annotation a, const char *value)
{
    unsigned parts = value ? 1 : 0;
    for (const char *p = value; annotations[a].array && p && *p; p++)
        parts += *p == '|';
    open_element(t, "annotation", 1 + parts);
    attribute_number(t, "class", ANNOTATION_BASE + a);
    for (unsigned i = 0; i < parts; i++) {
        char name[24];
        snprintf(name, sizeof(name), annotations[a].array ? "value-%u" : "value", i);
        size_t len = annotations[a].array ? strcspn(value, "|") : strlen(value);
        put_text(t, name, strlen(name));
        put_text(t, value, len);
        value += len + 1;
    }
    children(t, 0);
}

static uint32_t type_id(struct jfr_writer *w, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(primitives); i++)
        if (!strcmp(primitives[i].name, name))
            return primitives[i].id;
    return (uint32_t)strpool_find(&w->names, name, strlen(name)) + JFR_TYPE_BASE;
}

static void put_field(struct jfr_writer *w, struct tree *t, const struct jfr_field *f)
{
    uint32_t id = type_id(w, f->type);
    bool constant = id >= JFR_TYPE_BASE && id != JFR_POOL_STRING + JFR_TYPE_BASE &&
                    w->types.data[id - JFR_TYPE_BASE]->row->kind == JFR_POOL;
    bool unit = f->unit && units[f->unit].annotation != A_LABEL;
    open_element(t, "field", 2u + constant + f->array);
    attribute(t, "name", f->name);
    attribute_number(t, "class", id);
    if (constant)
        attribute(t, "constantPool", "true");
    if (f->array)
        attribute(t, "dimension", "1");
    children(t, (unsigned)!!f->label + !!f->description + unit + f->contextual);
    if (f->label)
        put_annotation(t, A_LABEL, f->label);
    if (f->description)
        put_annotation(t, A_DESCRIPTION, f->description);
    if (unit)
        put_annotation(t, units[f->unit].annotation, units[f->unit].value);
    if (f->contextual)
        put_annotation(t, A_CONTEXTUAL, NULL);
}

static unsigned count_fields(const struct jfr_type *row)
{
    unsigned n = 0;
    for (const struct jfr_field *f = row->fields; f && f->name; f++)
        n++;
    return n;
}

/* Returns whether a type is a pool with a single string, which readers show as that string. */
static bool is_simple(const struct jfr_type *row)
{
    return row->kind == JFR_POOL && count_fields(row) == 1 &&
           !strcmp(row->fields->type, "java.lang.String");
}

const struct jfr_field jfr_event_fields[4] = {
    {"startTime", "Start Time", "long", JFR_TICKS_STAMP},
    {"duration", "Duration", "long", JFR_TICKS},
    {"eventThread", "Event Thread", "java.lang.Thread"},
    {"stackTrace", "Stack Trace", "jdk.types.StackTrace"},
};

static void put_class(struct jfr_writer *w, struct tree *t, uint32_t number)
{
    const struct jfr_type *row = w->types.data[number]->row;
    bool event = row->kind == JFR_EVENT;
    bool simple = is_simple(row);
    open_element(t, "class", 2u + event + simple);
    attribute(t, "name", row->name);
    attribute_number(t, "id", number + JFR_TYPE_BASE);
    if (event)
        attribute(t, "superType", "jdk.jfr.Event");
    if (simple)
        attribute(t, "simpleType", "true");
    unsigned n = count_fields(row) + !!row->label + !!row->description + !!row->category;
    for (unsigned i = 0; i < 4; i++)
        n += event && (i == 0 || row->has & 1u << (i - 1));
    children(t, n);
    if (row->label)
        put_annotation(t, A_LABEL, row->label);
    if (row->description)
        put_annotation(t, A_DESCRIPTION, row->description);
    if (row->category)
        put_annotation(t, A_CATEGORY, row->category);
    for (unsigned i = 0; i < 4; i++)
        if (event && (i == 0 || row->has & 1u << (i - 1)))
            put_field(w, t, &jfr_event_fields[i]);
    for (const struct jfr_field *f = row->fields; f && f->name; f++)
        put_field(w, t, f);
}

static void put_named_class(struct tree *t, const char *name, uint32_t id, const char *super)
{
    open_element(t, "class", super ? 3 : 2);
    attribute(t, "name", name);
    attribute_number(t, "id", id);
    if (super)
        attribute(t, "superType", super);
}

static void put_beginning(const struct jfr_writer *w, struct tree *t)
{
    open_element(t, "root", 0);
    children(t, 2);
    open_element(t, "metadata", 0);
    children(t, (unsigned)(ARRAY_SIZE(primitives) + N_ANNOTATIONS + w->types.len));
    for (size_t i = 0; i < ARRAY_SIZE(primitives); i++) {
        put_named_class(t, primitives[i].name, primitives[i].id, NULL);
        children(t, 0);
    }
}

static void put_ending(struct tree *t)
{
    for (unsigned a = 0; a < N_ANNOTATIONS; a++) {
        put_named_class(t, annotations[a].name, ANNOTATION_BASE + a,
                        "java.lang.annotation.Annotation");
        children(t, annotations[a].value);
        if (annotations[a].value) {
            open_element(t, "field", 2u + annotations[a].array);
            attribute(t, "name", "value");
            attribute_number(t, "class", JFR_POOL_STRING + JFR_TYPE_BASE);
            if (annotations[a].array)
                attribute(t, "dimension", "1");
            children(t, 0);
        }
    }
    open_element(t, "region", 2);
    attribute(t, "locale", "en_US");
    attribute(t, "gmtOffset", "0");
    children(t, 0);
}

static void put_strings(struct metadata *m)
{
    for (; m->strings_done < m->strings.strings.len; m->strings_done++) {
        struct str s = strpool_get(&m->strings, m->strings_done);
        buf_u8(&m->string_bytes, s.len ? 3 : 1);
        if (s.len) {
            buf_jfr_long(&m->string_bytes, s.len);
            buf_bytes(&m->string_bytes, s.data, s.len);
        }
    }
}

/* Adds the new types to those that are kept, and writes the parts before and after all types. */
static int put_tree(struct jfr_writer *w, struct buf *beginning, struct buf *ending)
{
    struct metadata *m = &w->metadata;
    struct tree before = {&m->strings, beginning, false}, types = {&m->strings, &m->types, false},
                after = {&m->strings, ending, false};
    pthread_mutex_lock(&w->dict);
    put_beginning(w, &before);
    for (; m->types_done < w->types.len; m->types_done++)
        put_class(w, &types, (uint32_t)m->types_done);
    pthread_mutex_unlock(&w->dict);
    put_ending(&after);
    put_strings(m);
    if (before.failed || types.failed || after.failed)
        return -ENOMEM;
    int errors[] = {buf_error(beginning), buf_error(&m->types), buf_error(ending),
                    buf_error(&m->string_bytes)};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
        if (errors[i])
            return errors[i];
    return 0;
}

void metadata_init(struct metadata *m)
{
    *m = (struct metadata){.types = PART, .string_bytes = PART};
}

void metadata_release(struct metadata *m)
{
    strpool_release(&m->strings);
    buf_release(&m->types);
    buf_release(&m->string_bytes);
    metadata_init(m);
}

int metadata_write(struct jfr_writer *w, struct chunk *c)
{
    struct metadata *m = &w->metadata;
    struct buf head = PART, beginning = PART, ending = PART;
    int ret = put_tree(w, &beginning, &ending);
    buf_jfr_long(&head, 0); /* start time */
    buf_jfr_long(&head, 0); /* duration */
    /*
     * The JDK's reader assumes that metadata has not changed if it has the same id as that of the
     * previous chunk. The VM's recorder, whose chunks may follow, counts from 1.
     */
    buf_jfr_long(&head, clock_ns(CLOCK_REALTIME));
    buf_jfr_long(&head, m->strings.strings.len);
    ret = ret ? ret : buf_error(&head);
    const struct buf *parts[] = {&head, &m->string_bytes, &beginning, &m->types, &ending};
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        len += parts[i]->len;
    struct jfr_event e;
    if (!ret && !jfr_slot_begin(w, &c->own, c->region, true, len, &e))
        ret = -ENOSPC;
    if (!ret) {
        if ((JFR_EVENT_HEAD + len) % 4 == 0)
            /*
             * Encode the start time in one byte more. The event is then not aligned, and
             * jfr_slot_commit lengthens the type as CODE_METADATA requires.
             */
            jfr_put_byte(&e, 0x80);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
            jfr_put_bytes_(&e, parts[i]->data, parts[i]->len);
        jfr_slot_commit(&e, CODE_METADATA);
        jfr_header_store(c, HEAD_METADATA, jfr_offset_in_chunk(c, e.start));
    }
    w->described = ret ? 0 : m->types_done;
    if (ret && ret != -ENOSPC)
        metadata_release(m); /* the next attempt makes all of it again */
    buf_release(&head);
    buf_release(&beginning);
    buf_release(&ending);
    return ret;
}
