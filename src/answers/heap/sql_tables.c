/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/sql_tables.h"

#include "answers/heap/paths.h"
#include "answers/heap/threads.h"
#include "answers/heap/value.h"
#include "base/generated_name.h"
#include "heap/text.h"

#include <string.h>

static void put_text(sqlite3_context *to, const char *text)
{
    sqlite3_result_text(to, text, -1, SQLITE_TRANSIENT);
}

static void put_id(sqlite3_context *to, uint64_t id)
{
    if (id)
        sqlite3_result_int64(to, (sqlite3_int64)id);
    else
        sqlite3_result_null(to);
}

static void put_object(sqlite3_context *to, const struct heap *h, uint64_t i)
{
    if (i < h->n)
        put_id(to, heap_id(h, i));
    else
        sqlite3_result_null(to);
}

/* Sets the result to an object in readable form; for a string, to its characters. */
static void put_value(sqlite3_context *to, const struct heap *h, uint64_t i)
{
    _cleanup_(buf_release) struct buf b = BUF((size_t)64 << 20);
    bool shown = i < h->n && !heap_is_agents(h, i) &&
                 (heap_class_of(h, i) == h->dump->string_class ? heap_string(h, i, &b, b.limit - 8)
                                                               : heap_value(h, i, &b, 0));
    if (shown && !buf_error(&b))
        sqlite3_result_text(to, buf_str(&b), (int)b.len, SQLITE_TRANSIENT);
    else
        sqlite3_result_null(to);
}

static void put_primitive(sqlite3_context *to, unsigned type, uint64_t bits)
{
    float f;
    double d;
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case HPROF_FLOAT:
        sqlite3_result_double(to, (double)*(float *)memcpy(&f, &low, 4));
        break;
    case HPROF_DOUBLE:
        sqlite3_result_double(to, *(double *)memcpy(&d, &bits, 8));
        break;
    case HPROF_BYTE:
        sqlite3_result_int(to, (int8_t)bits);
        break;
    case HPROF_SHORT:
        sqlite3_result_int(to, (int16_t)bits);
        break;
    case HPROF_INT:
        sqlite3_result_int(to, (int32_t)bits);
        break;
    default:
        sqlite3_result_int64(to, (sqlite3_int64)bits);
    }
}

/* objects, and the tables whose rows follow the objects one by one */

/* Moves from c->at on to the next object of the selection. */
static void settle(struct sql_cursor *c)
{
    const struct heap *h = c->sql->h;
    const uint8_t *wants = c->way == SQL_BY_CLASS ? c->wants : c->vtab->wants;
    while (c->at < h->n && ((wants && !wants[heap_class_of(h, c->at)]) || heap_is_agents(h, c->at)))
        c->at++;
    c->end = c->at >= h->n;
}

static void objects_start(struct sql_cursor *c)
{
    const struct heap *h = c->sql->h;
    if (c->way == SQL_BY_DOMINATOR) {
        uint64_t count;
        heap_children(h, c->key, &c->child, &count);
        c->children_end = c->child + count;
        c->end = !count;
        c->at = count ? heap_child(h, c->child) : 0;
        return;
    }
    c->one = c->way == SQL_BY_KEY;
    c->at = c->one ? c->key : 0;
    if (!c->one)
        settle(c);
    else
        c->end = c->vtab->wants && !c->vtab->wants[heap_class_of(h, c->at)];
}

static void objects_next(struct sql_cursor *c)
{
    if (c->way == SQL_BY_DOMINATOR) {
        c->end = ++c->child >= c->children_end;
        c->at = c->end ? 0 : heap_child(c->sql->h, c->child);
        return;
    }
    c->at++;
    if (c->one)
        c->end = true;
    else
        settle(c);
}

static void objects_column(struct sql_cursor *c, sqlite3_context *to, int column)
{
    const struct heap *h = c->sql->h;
    struct hprof_item item;
    switch (column) {
    case 0:
        put_object(to, h, c->at);
        break;
    case 1:
        put_text(to, heap_class_name(h, c->at));
        break;
    case 2:
        sqlite3_result_int64(to, (sqlite3_int64)heap_shallow(h, c->at));
        break;
    case 3:
        sqlite3_result_int64(to, (sqlite3_int64)heap_retained(h, c->at));
        break;
    case 4:
        put_object(to, h, heap_idom(h, c->at));
        break;
    case 5:
        if (heap_idom(h, c->at) != HEAP_NONE)
            put_text(to, h->path_weak[c->at / 8] >> (c->at % 8) & 1 ? "weak" : "strong");
        break;
    case 6:
        if (heap_item(h, c->at, &item) &&
            (item.tag == HPROF_OBJECT_ARRAY_DUMP || item.tag == HPROF_PRIMITIVE_ARRAY_DUMP))
            sqlite3_result_int64(to, item.count);
        break;
    default:
        put_value(to, h, c->at);
    }
}

/* The table of a class: the columns that all objects have, then the fields of its instances. */
static void class_column(struct sql_cursor *c, sqlite3_context *to, int column)
{
    const struct heap *h = c->sql->h;
    const unsigned width = h->dump->header.id_size;
    struct hprof_item item;
    if (column < 5) {
        static const int as_objects[] = {0, 2, 3, 7, 1};
        objects_column(c, to, as_objects[column]);
        return;
    }
    const struct sql_fields *fields = sql_fields_of(c->sql, c->vtab->class);
    struct heap_field f = fields->list[column - 5];
    /*
     * A subclass's own fields come first, so the fields of this class are found by counting from
     * the end.
     */
    const struct heap_class *table = &h->dump->classes.data[c->vtab->class];
    uint32_t own = h->dump->classes.data[heap_class_of(h, c->at)].fields_bytes;
    uint64_t at = (uint64_t)f.offset + own - table->fields_bytes;
    if (own < table->fields_bytes || !heap_item(h, c->at, &item) ||
        item.tag != HPROF_INSTANCE_DUMP || at + hprof_type_size(f.type, width) > item.body_len)
        return;
    uint64_t bits = hprof_value_at(item.body + at, f.type, width);
    if (f.type == HPROF_OBJECT)
        put_id(to, bits);
    else
        put_primitive(to, f.type, bits);
}

/* classes */

static void classes_settle(struct sql_cursor *c)
{
    const struct heap_dump *d = c->sql->h->dump;
    while (c->at < d->classes.len &&
           (generated_name_is_agents(d->classes.data[c->at].name,
                                     strlen(d->classes.data[c->at].name)) ||
            (c->way == SQL_BY_CLASS && !c->wants[c->at]) ||
            (c->way == SQL_BY_KEY && d->classes.data[c->at].id != heap_id(c->sql->h, c->key))))
        c->at++;
    c->end = c->at >= d->classes.len;
}

static void classes_start(struct sql_cursor *c)
{
    c->at = 0;
    classes_settle(c);
}

static void classes_next(struct sql_cursor *c)
{
    c->at++;
    classes_settle(c);
}

static void classes_column(struct sql_cursor *c, sqlite3_context *to, int column)
{
    const struct heap_dump *d = c->sql->h->dump;
    const struct heap_class *class = &d->classes.data[c->at];
    switch (column) {
    case 0:
        put_id(to, class->record ? class->id : 0);
        break;
    case 1:
        put_text(to, class->name);
        break;
    case 2:
        if (class->super != HEAP_NO_CLASS)
            put_text(to, d->classes.data[class->super].name);
        break;
    case 3:
        put_id(to, class->loader_id);
        break;
    case 4:
        sqlite3_result_int64(to, (sqlite3_int64) class->objects);
        break;
    case 5:
        sqlite3_result_int64(to, (sqlite3_int64) class->bytes);
        break;
    default:
        sqlite3_result_int64(to, (sqlite3_int64) class->retained);
    }
}

/* fields: a row for each field of an instance or static field of a class object */

static bool field_here(struct sql_cursor *c)
{
    const struct heap *h = c->sql->h;
    const unsigned width = h->dump->header.id_size;
    if (c->item.tag == HPROF_CLASS_DUMP) {
        struct hprof_static s;
        if (c->field >= c->refs.mirror.statics ||
            !hprof_static_read(&c->refs.mirror.statics_at, width, false, &s))
            return false;
        struct str name = heap_dump_string(h->dump, s.name);
        int64_t kept =
            strpool_add(&h->dump->names, name.data ? name.data : "?", name.data ? name.len : 1);
        c->f = (struct heap_field){
            .name = kept < 0 ? "?" : strpool_get(&h->dump->names, (uint64_t)kept).data,
            .type = s.type};
        c->id = s.value;
        return true;
    }
    const struct sql_fields *fields = sql_fields_of(c->sql, heap_class_of(h, c->at));
    if (c->item.tag != HPROF_INSTANCE_DUMP || c->field >= fields->n)
        return false;
    c->f = fields->list[c->field];
    if (c->f.offset + hprof_type_size(c->f.type, width) > c->item.body_len)
        return false;
    c->id = hprof_value_at(c->item.body + c->f.offset, c->f.type, width);
    return true;
}

/* Moves to the first object of the selection. Returns false when there is none. */
static bool first_source(struct sql_cursor *c)
{
    c->one = c->way == SQL_BY_KEY;
    c->source = 0;
    c->at = c->one ? c->key : 0;
    if (c->way == SQL_BY_TARGET && c->sources.list.len)
        c->at = c->sources.list.data[0];
    c->end = c->way == SQL_BY_TARGET && !c->sources.list.len;
    return !c->end;
}

/* Moves to the next one; h->n after the last. */
static void next_source(struct sql_cursor *c)
{
    if (c->way == SQL_BY_TARGET)
        c->at = ++c->source < c->sources.list.len ? c->sources.list.data[c->source] : c->sql->h->n;
    else
        c->at = c->one ? c->sql->h->n : c->at + 1;
}

/* Moves from object c->at on to the first object that has a field (or, for refs, a reference). */
static void fields_settle(struct sql_cursor *c)
{
    const struct heap *h = c->sql->h;
    for (; c->at < h->n; next_source(c)) {
        c->field = 0;
        if (!heap_is_agents(h, c->at) && heap_item(h, c->at, &c->item)) {
            bool class = c->item.tag == HPROF_CLASS_DUMP;
            if ((!class ||
                 hprof_class_read(&c->item, h->dump->header.id_size, &c->refs.mirror) == 0) &&
                field_here(c))
                return;
        }
    }
    c->end = true;
}

static void fields_start(struct sql_cursor *c)
{
    if (first_source(c))
        fields_settle(c);
}

static void fields_next(struct sql_cursor *c)
{
    c->field++;
    if (field_here(c))
        return;
    next_source(c);
    fields_settle(c);
}

static void fields_column(struct sql_cursor *c, sqlite3_context *to, int column)
{
    const struct heap *h = c->sql->h;
    switch (column) {
    case 0:
        put_object(to, h, c->at);
        break;
    case 1:
        put_text(to, c->f.name);
        break;
    case 2:
        put_text(to, hprof_type_name(c->f.type));
        break;
    case 3:
        if (c->f.type == HPROF_OBJECT)
            put_value(to, h, c->id ? heap_ids_find(&h->ids, c->id) : HEAP_NONE);
        else
            put_primitive(to, c->f.type, c->id);
        break;
    default:
        if (c->f.type == HPROF_OBJECT)
            put_id(to, c->id);
    }
}

/* refs: which object refers to which, including elements of arrays */

static void refs_settle(struct sql_cursor *c)
{
    const struct heap *h = c->sql->h;
    for (; c->at < h->n; next_source(c)) {
        if (heap_item(h, c->at, &c->item)) {
            heap_refs_begin(&c->refs, h->dump, &c->item);
            if (heap_refs_next(&c->refs, &c->id))
                return;
        }
    }
    c->end = true;
}

static void refs_start(struct sql_cursor *c)
{
    if (first_source(c))
        refs_settle(c);
}

static void refs_next(struct sql_cursor *c)
{
    if (heap_refs_next(&c->refs, &c->id))
        return;
    next_source(c);
    refs_settle(c);
}

static void refs_column(struct sql_cursor *c, sqlite3_context *to, int column)
{
    const struct heap *h = c->sql->h;
    if (column == 0) {
        put_object(to, h, c->at);
    } else if (column == 1) {
        put_id(to, c->id);
    } else {
        _cleanup_(buf_release) struct buf b = BUF(1 << 16);
        uint64_t target = heap_ids_find(&h->ids, c->id);
        if (target != HEAP_NONE)
            heap_link_name(h, c->at, target, &b);
        put_text(to, buf_str(&b));
    }
}

/* strings */

static void strings_settle(struct sql_cursor *c)
{
    const struct heap *h = c->sql->h;
    while (c->at < h->n && heap_class_of(h, c->at) != h->dump->string_class)
        c->at++;
    c->end = c->at >= h->n;
}

static void strings_start(struct sql_cursor *c)
{
    c->one = c->way == SQL_BY_KEY;
    c->at = c->one ? c->key : 0;
    if (c->one)
        c->end = heap_class_of(c->sql->h, c->at) != c->sql->h->dump->string_class;
    else
        strings_settle(c);
}

static void strings_next(struct sql_cursor *c)
{
    c->at++;
    if (c->one)
        c->end = true;
    else
        strings_settle(c);
}

static void strings_column(struct sql_cursor *c, sqlite3_context *to, int column)
{
    const struct heap *h = c->sql->h;
    struct heap_text text;
    switch (column) {
    case 0:
        put_object(to, h, c->at);
        break;
    case 1:
        put_value(to, h, c->at);
        break;
    case 2:
        if (heap_text_of(h, c->at, &text))
            sqlite3_result_int64(to, (sqlite3_int64)text.len);
        break;
    default:
        sqlite3_result_int64(to, (sqlite3_int64)heap_retained(h, c->at));
    }
}

/* retained: everything that would be freed with an object, the object itself first */

static void retained_start(struct sql_cursor *c)
{
    c->at = c->key;
}

static void retained_next(struct sql_cursor *c)
{
    const struct heap *h = c->sql->h;
    uint64_t first, count;
    heap_children_near(h, c->at, c->child, &first, &count);
    c->child = first;
    for (uint64_t k = count; k-- > 0;) {
        if (vec_push(&c->stack, heap_child(h, first + k)) < 0)
            break;
    }
    c->end = !c->stack.len;
    if (!c->end)
        c->at = c->stack.data[--c->stack.len];
}

static void retained_column(struct sql_cursor *c, sqlite3_context *to, int column)
{
    if (column == 0)
        put_object(to, c->sql->h, c->key);
    else
        objects_column(c, to, column - 1);
}

/* roots */

static void roots_settle(struct sql_cursor *c)
{
    const struct heap_dump *d = c->sql->h->dump;
    while (c->at < d->roots.len && c->way == SQL_BY_KEY &&
           d->roots.data[c->at].id != heap_id(c->sql->h, c->key))
        c->at++;
    c->end = c->at >= d->roots.len;
}

static void roots_start(struct sql_cursor *c)
{
    c->at = 0;
    roots_settle(c);
}

static void roots_next(struct sql_cursor *c)
{
    c->at++;
    roots_settle(c);
}

static void roots_column(struct sql_cursor *c, sqlite3_context *to, int column)
{
    const struct heap *h = c->sql->h;
    const struct heap_root *r = &h->dump->roots.data[c->at];
    if (column == 0) {
        put_id(to, r->id);
    } else if (column == 1) {
        put_text(to, heap_root_name(r->tag));
    } else {
        _cleanup_(buf_release) struct buf b = BUF(1 << 16);
        heap_root_place(h, r, &b);
        const char *text = buf_str(&b);
        if (*text)
            put_text(to, strncmp(text, " of ", 4) == 0 ? text + 4 : text);
    }
}

const struct sql_table sql_tables[] = {
    {"objects",
     "id ADDRESS, class TEXT, shallow, retained, dominator ADDRESS, reachable, length, value TEXT",
     0, false, 4, 1, -1, 1, objects_start, objects_next, objects_column},
    {"classes", "id ADDRESS, name TEXT, super TEXT, loader ADDRESS, objects, shallow, retained", 0,
     false, -1, 1, -1, 1, classes_start, classes_next, classes_column},
    {"fields", "object ADDRESS, name TEXT, type TEXT, value, ref ADDRESS", 0, false, -1, -1, 4, 8,
     fields_start, fields_next, fields_column},
    {"refs", "source ADDRESS, target ADDRESS, name TEXT", 0, false, -1, -1, 1, 8, refs_start,
     refs_next, refs_column},
    {"strings", "object ADDRESS, value TEXT, length, retained", 0, false, -1, -1, -1, 1,
     strings_start, strings_next, strings_column},
    {"retained",
     "holder ADDRESS, id ADDRESS, class TEXT, shallow, retained, dominator ADDRESS, reachable, "
     "length, value TEXT",
     0, true, -1, -1, -1, 1000, retained_start, retained_next, retained_column},
    {"roots", "object ADDRESS, kind TEXT, place TEXT", 0, false, -1, -1, -1, 1, roots_start,
     roots_next, roots_column},
    {0},
};

const struct sql_table sql_class_table = {
    NULL,
    "object ADDRESS, shallow, retained, shown TEXT, class_name TEXT",
    0,
    false,
    -1,
    4,
    -1,
    1,
    objects_start,
    objects_next,
    class_column};
