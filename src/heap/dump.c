/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/dump.h"

#include "base/buf.h"
#include "base/class_name.h"
#include "base/generated_name.h"
#include "heap/heap.h"
#include "heap/shape.h"
#include "heap/spool.h"

#include <stdio.h>
#include <unistd.h>

/*
 * Returns the binary name: "java/lang/String" and "[Ljava/lang/String;" become "java.lang.String"
 * and "java.lang.String[]". *ret_made says that the VM generated the class and numbered it; the
 * number is removed from the name (base/generated_name.h).
 */
static const char *binary_name(struct heap_dump *d, struct str raw, bool *ret_made)
{
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    *ret_made = class_name_put(&b, raw);
    int64_t number =
        buf_error(&b)
            ? -ENOMEM
            : strpool_add(&d->names, (const char *)(b.data ? b.data : (uint8_t *)""), b.len);
    return number < 0 ? "?" : strpool_get(&d->names, (uint64_t)number).data;
}

struct str heap_dump_string(const struct heap_dump *d, uint64_t id)
{
    const uint64_t *at = map_get(&d->strings, id);
    if (!at)
        return (struct str){0};
    struct cursor c = cursor_of(d->data + *at - 4, 4);
    uint64_t len = cursor_be32(&c);
    len = MIN(len, d->len - *at);
    if (len < d->header.id_size)
        return (struct str){0};
    return (struct str){(const char *)d->data + *at + d->header.id_size, len - d->header.id_size};
}

int32_t heap_dump_class(const struct heap_dump *d, uint64_t id)
{
    const uint64_t *number = map_get(&d->class_of_id, id);
    return number ? (int32_t)*number : HEAP_NO_CLASS;
}

int32_t heap_dump_class_named(const struct heap_dump *d, const char *name)
{
    for (size_t i = 0; i < d->classes.len; i++) {
        if (strcmp(d->classes.data[i].name, name) == 0)
            return (int32_t)i;
    }
    return HEAP_NO_CLASS;
}

int32_t heap_dump_class_of(const struct heap_dump *d, const struct hprof_item *item)
{
    if (item->tag == HPROF_PRIMITIVE_ARRAY_DUMP)
        return d->primitive_arrays[item->type & 15];
    return item->tag == HPROF_CLASS_DUMP ? d->class_class : heap_dump_class(d, item->class_id);
}

static int take_load_class(struct heap_dump *d, struct cursor c)
{
    uint32_t serial = cursor_be32(&c);
    uint64_t class = hprof_id(&c, d->header.id_size);
    cursor_skip(&c, 4);
    uint64_t name = hprof_id(&c, d->header.id_size);
    if (c.failed)
        return 0;
    int error = map_put(&d->class_names, class, name);
    return error ? error : map_put(&d->class_serials, serial, class);
}

static int take_segment(struct heap_dump *d, const struct hprof_record *r, unsigned *current)
{
    /* A HEAP DUMP record is a whole dump; segments belong to one dump until HEAP DUMP END. */
    if (r->tag == HPROF_HEAP_DUMP || *current == d->dumps)
        *current = d->dumps++;
    struct heap_chunk segment = {.start = r->offset, .end = r->offset + r->len, .first = *current};
    if (r->tag == HPROF_HEAP_DUMP)
        *current = d->dumps;
    return r->len ? vec_push(&d->segments, segment) : 0;
}

static int take_record(struct heap_dump *d, const struct hprof_record *r, unsigned *current)
{
    struct cursor c = cursor_of(r->body, r->len);
    switch (r->tag) {
    case HPROF_UTF8: {
        uint64_t id = hprof_id(&c, d->header.id_size);
        return c.failed ? 0 : map_put(&d->strings, id, r->offset);
    }
    case HPROF_LOAD_CLASS:
        return take_load_class(d, c);
    case HPROF_FRAME:
        return map_put(&d->frames, hprof_id(&c, d->header.id_size), r->offset);
    case HPROF_TRACE:
        return map_put(&d->traces, cursor_be32(&c), r->offset);
    case HPROF_HEAP_DUMP:
    case HPROF_HEAP_DUMP_SEGMENT:
        return take_segment(d, r, current);
    case HPROF_HEAP_DUMP_END:
        *current = d->dumps;
        return 0;
    default:
        return 0;
    }
}

static int read_records(struct heap_dump *d, int which)
{
    struct hprof_reader r;
    struct hprof_record record;
    int error = hprof_reader_init(&r, d->data, d->len);
    if (error)
        return error;
    d->header = r.header;
    unsigned current = 0;
    uint64_t end = r.at; /* of what can be read */
    while (!error && hprof_next(&r, &record)) {
        /* The specification knows no such records, so something else follows the dump. */
        if (!hprof_tag_known(record.tag) && !d->cut) {
            d->cut = true;
            d->garbage_at = record.offset - HPROF_RECORD_HEADER;
        }
        error = take_record(d, &record, &current);
        /* The objects of a dump that is cut are counted up to where they end. */
        bool objects = record.tag == HPROF_HEAP_DUMP || record.tag == HPROF_HEAP_DUMP_SEGMENT;
        end = record.cut && !objects ? record.offset - HPROF_RECORD_HEADER : r.at;
    }
    if (r.end != HPROF_END_CLEAN && !d->cut) {
        d->cut = true;
        d->garbage_at = end;
    }
    if (error)
        return error;
    if (!d->dumps)
        return -ENOMSG;
    if (which >= (int)d->dumps)
        return -ERANGE;
    d->chosen = which < 0 ? d->dumps - 1 : (unsigned)which;
    size_t kept = 0;
    for (size_t i = 0; i < d->segments.len; i++) {
        if (d->segments.data[i].first == d->chosen) {
            d->segments.data[kept] = d->segments.data[i];
            d->segments.data[kept++].first = 0;
        }
    }
    d->segments.len = kept;
    return 0;
}

/*
 * Finds the agent's classes. This is done at the end, because strings may follow the classes that
 * they name.
 */
static int find_agents(struct heap_dump *d)
{
    uint64_t class, name;
    int error = 0;
    for (size_t i = 0; !error && map_next(&d->class_names, &i, &class, &name);) {
        struct str s = heap_dump_string(d, name);
        if (s.data && generated_name_is_agents(s.data, s.len))
            error = map_put(&d->agents, class, 1);
    }
    return error;
}

static bool is_agents_frame(const struct heap_dump *d, uint64_t id)
{
    const uint64_t *at = map_get(&d->frames, id), *class;
    if (!at)
        return false;
    struct cursor c = cursor_of(d->data + *at, d->len - *at);
    cursor_skip(&c, 4 * (size_t)d->header.id_size);
    class = map_get(&d->class_serials, cursor_be32(&c));
    return !c.failed && class && map_get(&d->agents, *class);
}

static int leave_out_frames(struct heap_dump *d)
{
    uint64_t trace, offset;
    int error = 0;
    for (size_t i = 0; d->agents.len && !error && map_next(&d->traces, &i, &trace, &offset);) {
        struct cursor c = cursor_of(d->data + offset, d->len - offset);
        cursor_skip(&c, 8);
        uint32_t n = cursor_be32(&c);
        for (uint32_t k = 0; k < n && !c.failed && !error; k++)
            if (is_agents_frame(d, hprof_id(&c, d->header.id_size)))
                error = left_out_add(&d->left_out, (uint32_t)trace, n, k);
    }
    return error;
}

int heap_dump_open(struct heap_dump **ret, const char *path, int which)
{
    struct heap_dump *d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    d->threads = processors < 1 ? 1 : processors > 8 ? 8 : (unsigned)processors;
    memset(d->primitive_arrays, 0xff, sizeof(d->primitive_arrays));
    d->string_class = d->class_class = d->object_class = HEAP_NO_CLASS;
    bool damaged;
    int error = heap_spool_open(path, &d->map, &d->spooled, &damaged);
    if (!error) {
        d->data = d->map.data;
        d->len = d->map.len;
        error = read_records(d, which);
    }
    if (damaged && !d->cut) {
        d->cut = true;
        d->garbage_at = d->len;
    }
    if (!error)
        error = find_agents(d);
    if (!error)
        error = leave_out_frames(d);
    if (error) {
        heap_dump_free(d);
        return error;
    }
    *ret = d;
    return 0;
}

void heap_dump_free(struct heap_dump *d)
{
    if (!d)
        return;
    file_map_release(&d->map);
    struct map *maps[] = {&d->strings, &d->class_names, &d->class_serials, &d->frames,
                          &d->traces,  &d->class_of_id, &d->agents};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
        map_release(maps[i]);
    left_out_release(&d->left_out);
    strpool_release(&d->names);
    vec_release(&d->segments);
    vec_release(&d->chunks);
    vec_release(&d->classes);
    vec_release(&d->refs);
    vec_release(&d->roots);
    free(d);
}

/* Adds a class without a record, for objects whose class the dump does not describe. */
static int add_class(struct heap_dump *d, uint64_t id, const char *name)
{
    struct heap_class class = {.id = id, .name = name, .super = HEAP_NO_CLASS};
    int error = map_put(&d->class_of_id, id, d->classes.len);
    return error ? error : vec_push(&d->classes, class);
}

/* Adds a class whose name is not in the dump. */
static int add_unknown_class(struct heap_dump *d, uint64_t id)
{
    char name[40];
    snprintf(name, sizeof(name), "unknown.0x%llx", (unsigned long long)id);
    int64_t number = strpool_add(&d->names, name, strlen(name));
    return add_class(d, id, number < 0 ? "?" : strpool_get(&d->names, (uint64_t)number).data);
}

int heap_dump_add_class(struct heap_dump *d, const uint8_t *record, uint64_t len)
{
    struct hprof_items it = hprof_items_of(record, record + len, d->header.id_size);
    struct hprof_item item;
    struct hprof_class parsed;
    if (hprof_item_next(&it, &item) <= 0 || hprof_class_read(&item, d->header.id_size, &parsed) < 0)
        return -EBADMSG;
    if (heap_dump_class(d, parsed.id) != HEAP_NO_CLASS)
        return 0; /* JDK-8281267: some dumps repeat array classes */
    const uint64_t *name_id = map_get(&d->class_names, parsed.id);
    struct str name = name_id ? heap_dump_string(d, *name_id) : (struct str){0};
    bool made = false;
    int error = name.data ? add_class(d, parsed.id, binary_name(d, name, &made))
                          : add_unknown_class(d, parsed.id);
    if (error)
        return error;
    struct heap_class *class = &d->classes.data[d->classes.len - 1];
    class->made = made;
    class->super_id = parsed.super;
    class->loader_id = parsed.loader;
    class->record = record;
    class->record_len = (uint64_t)(it.at - record);
    return 0;
}

bool heap_class_read(const struct heap_dump *d, const struct heap_class *class,
                     struct hprof_class *ret)
{
    struct hprof_item item;
    if (!class->record)
        return false;
    struct hprof_items it =
        hprof_items_of(class->record, class->record + class->record_len, d->header.id_size);
    return hprof_item_next(&it, &item) > 0 && hprof_class_read(&item, d->header.id_size, ret) == 0;
}

/*
 * Finds a class's own fields: the number of bytes of their values and the positions of references.
 */
static void own_fields(const struct heap_dump *d, const struct heap_class *class,
                       struct cursor *ret, unsigned *ret_count)
{
    struct hprof_class parsed;
    *ret_count = 0;
    if (heap_class_read(d, class, &parsed)) {
        *ret = parsed.fields_at;
        *ret_count = parsed.fields;
    }
}

static int add_refs(struct heap_dump *d, struct heap_class *class)
{
    size_t first = d->refs.len;
    uint64_t offset = 0;
    int32_t number = (int32_t)(class - d->classes.data);
    class->refs_at = (uint32_t)first;
    for (int depth = 0; number != HEAP_NO_CLASS && depth < 1000; depth++) {
        const struct heap_class *c = &d->classes.data[number];
        struct cursor at;
        unsigned count;
        own_fields(d, c, &at, &count);
        while (count--) {
            uint64_t name = hprof_id(&at, d->header.id_size);
            unsigned type = cursor_u8(&at);
            if (type == HPROF_OBJECT) {
                if (vec_push(&d->refs, (uint32_t)offset) < 0)
                    return -ENOMEM;
                if (class->reference && strcmp(c->name, "java.lang.ref.Reference") == 0 &&
                    str_is(heap_dump_string(d, name), "referent")) {
                    d->refs.data[d->refs.len - 1] = d->refs.data[first];
                    d->refs.data[first] = (uint32_t)offset;
                }
            }
            offset += hprof_type_size(type, d->header.id_size);
        }
        number = c->super;
    }
    class->refs_len = (uint32_t)(d->refs.len - first);
    class->fields_bytes = (uint32_t)MIN(offset, (uint64_t)UINT32_MAX);
    return 0;
}

bool heap_class_is(const struct heap_dump *d, int32_t class, int32_t base)
{
    for (int depth = 0; class != HEAP_NO_CLASS && depth < 1000; depth++) {
        if (class == base)
            return true;
        class = d->classes.data[class].super;
    }
    return false;
}

static void find_references(struct heap_dump *d)
{
    static const struct {
        const char *name;
        enum heap_reference kind;
    } bases[] = {{"java.lang.ref.SoftReference", HEAP_SOFT},
                 {"java.lang.ref.WeakReference", HEAP_WEAK},
                 {"java.lang.ref.FinalReference", HEAP_FINAL},
                 {"java.lang.ref.PhantomReference", HEAP_PHANTOM}};

    for (size_t b = 0; b < ARRAY_SIZE(bases); b++) {
        int32_t base = heap_dump_class_named(d, bases[b].name);
        for (size_t i = 0; base != HEAP_NO_CLASS && i < d->classes.len; i++) {
            if (heap_class_is(d, (int32_t)i, base))
                d->classes.data[i].reference = bases[b].kind;
        }
    }
}

/*
 * MADE_UP_CLASS is the first id for classes that a dump does not have; no object has so large an
 * id.
 */
enum { MADE_UP_CLASS = 1, MAX_SUPERS = 1000 };

static uint64_t made_up_id(unsigned type)
{
    return UINT64_MAX - 2 * (uint64_t)type - MADE_UP_CLASS;
}

static const char *const primitive_arrays[] = {
    [HPROF_BOOLEAN] = "boolean[]", [HPROF_CHAR] = "char[]", [HPROF_FLOAT] = "float[]",
    [HPROF_DOUBLE] = "double[]",   [HPROF_BYTE] = "byte[]", [HPROF_SHORT] = "short[]",
    [HPROF_INT] = "int[]",         [HPROF_LONG] = "long[]"};

int heap_dump_made_up_class(struct heap_dump *d, uint64_t id)
{
    for (unsigned type = HPROF_BOOLEAN; type <= HPROF_LONG; type++) {
        if (id == made_up_id(type))
            return add_class(d, id, primitive_arrays[type]);
    }
    if (id == made_up_id(0))
        return add_class(d, id, "java.lang.Class");
    int error = add_unknown_class(d, id);
    if (!error)
        d->classes.data[d->classes.len - 1].size = d->shape.alignment * 2;
    return error;
}

/*
 * Finds the classes of arrays of primitives, which refer to no class, by name; creates those that
 * the dump lacks.
 */
static int find_primitive_arrays(struct heap_dump *d)
{
    for (unsigned type = HPROF_BOOLEAN; type <= HPROF_LONG; type++) {
        int32_t number = heap_dump_class_named(d, primitive_arrays[type]);
        if (number == HEAP_NO_CLASS) {
            int error = heap_dump_made_up_class(d, made_up_id(type));
            if (error)
                return error;
            number = (int32_t)d->classes.len - 1;
        }
        d->primitive_arrays[type] = number;
        d->classes.data[number].type = (uint8_t)type;
        d->classes.data[number].kind = HEAP_PRIMITIVE_ARRAY;
    }
    return 0;
}

/* By loader and name, of which the dump has each once. */
static int by_loader_and_name(const void *a, const void *b)
{
    const struct heap_class *x = *(struct heap_class *const *)a,
                            *y = *(struct heap_class *const *)b;
    return x->loader_id != y->loader_id ? (x->loader_id < y->loader_id ? -1 : 1)
           : x->name != y->name         ? ((uintptr_t)x->name < (uintptr_t)y->name ? -1 : 1)
                                        : 0;
}

/*
 * Marks the classes that have the loader and the name of another one. A loader defines one class of
 * a name at most, so the VM generated these (JDK 8's LambdaForms, for example), although their
 * names have no number.
 */
static int mark_made(struct heap_dump *d)
{
    _cleanup_free_ struct heap_class **sorted = calloc(d->classes.len + 1, sizeof(*sorted));
    size_t n = 0;
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < d->classes.len; i++)
        if (d->classes.data[i].record)
            sorted[n++] = &d->classes.data[i];
    qsort(sorted, n, sizeof(*sorted), by_loader_and_name);
    for (size_t i = 1; i < n; i++)
        if (by_loader_and_name(&sorted[i - 1], &sorted[i]) == 0)
            sorted[i - 1]->made = sorted[i]->made = true;
    return 0;
}

/* Breaks cycles of super classes, so that following them terminates for any dump. */
static void cut_circles(struct heap_dump *d)
{
    for (size_t i = 0; i < d->classes.len; i++) {
        int depth = 0;
        for (int32_t c = d->classes.data[i].super; c != HEAP_NO_CLASS && depth <= MAX_SUPERS;
             c = d->classes.data[c].super)
            depth++;
        if (depth > MAX_SUPERS)
            d->classes.data[i].super = HEAP_NO_CLASS;
    }
}

int heap_dump_finish_classes(struct heap_dump *d)
{
    int error = find_primitive_arrays(d);
    if (!error && heap_dump_class_named(d, "java.lang.Class") == HEAP_NO_CLASS)
        error = heap_dump_made_up_class(d, made_up_id(0));
    if (!error)
        error = mark_made(d);
    if (error)
        return error;
    for (size_t i = 0; i < d->classes.len; i++) {
        struct heap_class *c = &d->classes.data[i];
        size_t len = strlen(c->name);
        c->super = c->super_id ? heap_dump_class(d, c->super_id) : HEAP_NO_CLASS;
        if (c->kind == HEAP_INSTANCE && len > 2 && strcmp(c->name + len - 2, "[]") == 0)
            c->kind = HEAP_OBJECT_ARRAY;
    }
    cut_circles(d);
    d->string_class = heap_dump_class_named(d, "java.lang.String");
    d->class_class = heap_dump_class_named(d, "java.lang.Class");
    d->object_class = heap_dump_class_named(d, "java.lang.Object");
    find_references(d);
    heap_shape_mark_injected(d);
    d->refs.len = 0;
    for (size_t i = 0; i < d->classes.len && !error; i++)
        error = add_refs(d, &d->classes.data[i]);
    return error;
}

bool heap_field_at(struct heap_dump *d, int32_t class, unsigned i, struct heap_field *ret)
{
    uint32_t offset = 0;
    for (int depth = 0; class != HEAP_NO_CLASS && depth < 1000; depth++) {
        struct cursor at;
        unsigned count;
        own_fields(d, &d->classes.data[class], &at, &count);
        for (; count; count--) {
            uint64_t name = hprof_id(&at, d->header.id_size);
            unsigned type = cursor_u8(&at);
            if (i-- == 0) {
                struct str s = heap_dump_string(d, name);
                int64_t number = strpool_add(&d->names, s.data ? s.data : "?", s.data ? s.len : 1);
                *ret = (struct heap_field){
                    number < 0 ? "?" : strpool_get(&d->names, (uint64_t)number).data, (uint8_t)type,
                    class, offset};
                return true;
            }
            offset += hprof_type_size(type, d->header.id_size);
        }
        class = d->classes.data[class].super;
    }
    return false;
}

bool heap_field_named(struct heap_dump *d, int32_t class, const char *name, struct heap_field *ret)
{
    struct heap_field f;
    for (unsigned i = 0; heap_field_at(d, class, i, &f); i++) {
        if (strcmp(f.name, name) == 0) {
            *ret = f;
            return true;
        }
    }
    return false;
}

bool heap_is_all_of(const char *path)
{
    _cleanup_(file_map_release) struct file_map map = {0};
    struct hprof_reader r;
    struct hprof_record record;
    bool dump = false, others = false;
    if (file_map_open(&map, path) < 0 || hprof_reader_init(&r, map.data, map.len) < 0)
        return false;
    while (!others && hprof_next(&r, &record)) {
        dump |= record.tag == HPROF_HEAP_DUMP || record.tag == HPROF_HEAP_DUMP_SEGMENT;
        others = record.tag == HPROF_CPU_SAMPLES || record.tag == HPROF_ALLOC_SITES;
    }
    return dump && !others;
}
