/* SPDX-License-Identifier: Apache-2.0 */
/* `heap objects`: the contents of one object, or a list of objects. */
#include "base/real.h"
#include "cli/heap/paths.h"
#include "cli/heap/select.h"
#include "cli/heap/verbs.h"
#include "heap/incoming.h"

#include <inttypes.h>
#include <string.h>

static const struct page_column field_columns[] = {{"field", "field", PAGE_TEXT},
                                                   {"type", "type", PAGE_TEXT},
                                                   {"object", "object", PAGE_ID},
                                                   {"retained", "retained", PAGE_BYTES},
                                                   {"value", "value", PAGE_TEXT, true}};

static const char *const type_names[16] = {
    [HPROF_OBJECT] = "object", [HPROF_BOOLEAN] = "boolean", [HPROF_CHAR] = "char",
    [HPROF_FLOAT] = "float",   [HPROF_DOUBLE] = "double",   [HPROF_BYTE] = "byte",
    [HPROF_SHORT] = "short",   [HPROF_INT] = "int",         [HPROF_LONG] = "long"};

static void heap_primitive_text(unsigned type, uint64_t bits, char text[32])
{
    float f;
    double d;
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case HPROF_BOOLEAN:
        snprintf(text, 32, "%s", bits ? "true" : "false");
        break;
    case HPROF_CHAR:
        snprintf(text, 32, bits >= 0x20 && bits < 0x7f ? "'%c'" : "\\u%04x", (int)bits);
        break;
    case HPROF_FLOAT:
        real_text((double)*(float *)memcpy(&f, &low, 4), true, text);
        break;
    case HPROF_DOUBLE:
        real_text(*(double *)memcpy(&d, &bits, 8), false, text);
        break;
    case HPROF_BYTE:
        snprintf(text, 32, "%d", (int8_t)bits);
        break;
    case HPROF_SHORT:
        snprintf(text, 32, "%d", (int16_t)bits);
        break;
    case HPROF_INT:
        snprintf(text, 32, "%" PRId32, (int32_t)bits);
        break;
    default:
        snprintf(text, 32, "%" PRId64, (int64_t)bits);
    }
}

static void value_row(struct page *p, const struct heap *h, const char *name, unsigned type,
                      uint64_t bits)
{
    char text[32];
    page_text(p, name);
    if (type != HPROF_OBJECT) {
        page_text(p, type_names[type & 15]);
        page_null(p);
        page_null(p);
        heap_primitive_text(type, bits, text);
        page_text(p, text);
        return;
    }
    uint64_t to = bits ? heap_ids_find(&h->ids, bits) : HEAP_NONE;
    page_text(p, to == HEAP_NONE ? (bits ? "(not in the dump)" : "null") : heap_class_name(h, to));
    if (bits)
        page_number(p, bits);
    else
        page_null(p);
    if (to == HEAP_NONE) {
        page_null(p);
        page_null(p);
        return;
    }
    page_number(p, heap_retained(h, to));
    heap_page_value(p, h, to);
}

static void show_class(struct page *p, const struct heap *h, const struct hprof_item *item)
{
    struct hprof_class c;
    struct hprof_static s;
    if (hprof_class_read(item, h->dump->header.id_size, &c) < 0)
        return;
    value_row(p, h, "<super class>", HPROF_OBJECT, c.super);
    value_row(p, h, "<class loader>", HPROF_OBJECT, c.loader);
    for (unsigned k = c.statics;
         k && hprof_static_read(&c.statics_at, h->dump->header.id_size, false, &s); k--) {
        struct str name = heap_dump_string(h->dump, s.name);
        char text[300];
        snprintf(text, sizeof(text), "static %.*s", (int)MIN(name.len, (size_t)250),
                 name.data ? name.data : "");
        value_row(p, h, text, s.type, s.value);
    }
}

static void show_fields(const struct heap_call *c, uint64_t i)
{
    const struct heap *h = c->heap;
    const unsigned n = h->dump->header.id_size;
    struct hprof_item item;
    struct heap_field f;
    uint64_t limit = heap_rows(c->options, 50, 10000);
    page_table(c->page, "fields", "Fields", field_columns, ARRAY_SIZE(field_columns));
    if (!heap_item(h, i, &item))
        return;
    if (item.tag == HPROF_CLASS_DUMP) {
        show_class(c->page, h, &item);
    } else if (item.tag == HPROF_INSTANCE_DUMP) {
        for (unsigned k = 0; heap_field_at(h->dump, heap_class_of(h, i), k, &f); k++) {
            if (f.offset + hprof_type_size(f.type, n) <= item.body_len)
                value_row(c->page, h, f.name, f.type,
                          hprof_value_at(item.body + f.offset, f.type, n));
        }
    } else {
        unsigned type = item.tag == HPROF_OBJECT_ARRAY_DUMP ? HPROF_OBJECT : item.type;
        unsigned size = hprof_type_size(type, n);
        for (uint64_t k = 0; k < item.count && k < limit; k++) {
            char name[32];
            snprintf(name, sizeof(name), "[%" PRIu64 "]", k);
            value_row(c->page, h, name, type, hprof_value_at(item.body + k * size, type, n));
        }
        if (item.count > limit)
            page_note(c->page, "%" PRIu64 " of %u elements are shown (--limit).", limit,
                      item.count);
    }
}

static int show_incoming(const struct heap_call *c, uint64_t i)
{
    static const struct page_column columns[] = {{"object", "object", PAGE_ID},
                                                 {"via", "through", PAGE_TEXT},
                                                 {"retained", "retained", PAGE_BYTES},
                                                 {"class", "class", PAGE_TEXT},
                                                 {"value", "value", PAGE_TEXT, true}};
    const struct heap *h = c->heap;
    struct heap_sources from = {0};
    int error = heap_incoming_search(h, i, &from);
    page_fact(c->page, "incomingCount", "referred to by", PAGE_COUNT, from.list.len);
    page_table(c->page, "incoming", "Incoming", columns, ARRAY_SIZE(columns));
    size_t shown = MIN(from.list.len, heap_rows(c->options, 30, 10000));
    for (size_t k = 0; k < shown; k++) {
        _cleanup_(buf_release) struct buf link = BUF(1 << 16);
        uint64_t source = from.list.data[k];
        heap_link_name(h, source, i, &link);
        page_number(c->page, heap_id(h, source));
        page_text(c->page, buf_str(&link));
        page_number(c->page, heap_retained(h, source));
        page_text(c->page, heap_class_name(h, source));
        heap_page_value(c->page, h, source);
    }
    page_left(c->page, from.list.len, shown);
    vec_release(&from.list);
    return error ? page_refuse(c->page, NULL, "objects", strerror(-error)) : 0;
}

static int show_object(const struct heap_call *c, uint64_t i)
{
    const struct heap *h = c->heap;
    struct page *p = c->page;
    _cleanup_(buf_release) struct buf what = BUF(1 << 20), roots = BUF(1 << 16);
    heap_describe(h, i, &what);
    heap_root_kinds(h, i, &roots);
    page_fact_text(p, "what", "object", buf_str(&what));
    page_fact(p, "shallow", "shallow", PAGE_BYTES, heap_shallow(h, i));
    page_fact(p, "retained", "retained", PAGE_BYTES, heap_retained(h, i));
    if (roots.len)
        page_fact_text(p, "root", "GC root", buf_str(&roots));
    uint64_t over = heap_idom(h, i);
    what.len = 0;
    if (over == HEAP_NONE)
        buf_string(&what, "nobody: it is not reachable");
    else
        heap_describe(h, over, &what);
    page_fact_text(p, "dominator", "dominated by", buf_str(&what));
    show_fields(c, i);
    return show_incoming(c, i);
}

static int heap_answer_objects(const struct heap_call *c)
{
    static const struct page_column columns[] = {{"object", "object", PAGE_ID},
                                                 {"class", "class", PAGE_TEXT},
                                                 {"shallow", "shallow", PAGE_BYTES},
                                                 {"retained", "retained", PAGE_BYTES},
                                                 {"value", "value", PAGE_TEXT, true}};
    const struct heap *h = c->heap;
    struct heap_selection s;
    uint64_t only;
    if (c->count && strncmp(c->operands[0], "0x", 2) == 0) {
        int status = heap_object_named(c, c->operands[0], &only);
        return status ? status : show_object(c, only);
    }
    int status = heap_select(c, &s);
    if (status)
        return status;
    page_fact(c->page, "count", "objects", PAGE_COUNT, s.count);
    page_table(c->page, "objects", NULL, columns, ARRAY_SIZE(columns));
    uint64_t limit = heap_rows(c->options, 40, 100000), shown = 0;
    for (uint64_t i = 0; i < h->n && shown < limit; i++) {
        if (!(s.bits[i / 64] >> (i % 64) & 1))
            continue;
        shown++;
        page_number(c->page, heap_id(h, i));
        page_text(c->page, heap_class_name(h, i));
        page_number(c->page, heap_shallow(h, i));
        page_number(c->page, heap_retained(h, i));
        heap_page_value(c->page, h, i);
    }
    page_left(c->page, s.count, shown);
    heap_selection_release(&s);
    return 0;
}

const struct command heap_verb_objects = {
    .name = "heap objects",
    .run = heap_run_verb,
    .heap_answer = heap_answer_objects,
    .operands = "FILE [CLASS|OBJECT]",
    .min_operands = 1,
    .max_operands = 2,
    .summary = "show the fields of an object, or list the objects of a class",
    .description = "For one object, prints its fields or elements, and which objects refer to it.",
    .examples = "  jvmscope heap objects app.hprof 0x7f01a8\n"
                "  jvmscope heap objects --limit 10 app.hprof java.lang.Thread\n",
    .sets = heap_select_sets,
};
