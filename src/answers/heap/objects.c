/* SPDX-License-Identifier: Apache-2.0 */
/* `heap objects`: the contents of one object, or a list of objects. */
#include "answers/heap/heap.h"
#include "answers/heap/paths.h"
#include "answers/heap/select.h"
#include "base/real.h"
#include "heap/incoming.h"

#include <inttypes.h>
#include <string.h>

static const struct answer_column field_columns[] = {{"field", "field", ANSWER_TEXT},
                                                     {"type", "type", ANSWER_TEXT},
                                                     {"object", "object", ANSWER_ID},
                                                     {"retained", "retained", ANSWER_BYTES},
                                                     {"value", "value", ANSWER_TEXT, true}};

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

static void value_row(struct answer *a, const struct heap *h, const char *name, unsigned type,
                      uint64_t bits)
{
    char text[32];
    answer_text(a, name);
    if (type != HPROF_OBJECT) {
        answer_text(a, hprof_type_name(type));
        answer_null(a);
        answer_null(a);
        heap_primitive_text(type, bits, text);
        answer_text(a, text);
        return;
    }
    uint64_t to = bits ? heap_ids_find(&h->ids, bits) : HEAP_NONE;
    answer_text(a,
                to == HEAP_NONE ? (bits ? "(not in the dump)" : "null") : heap_class_name(h, to));
    if (bits)
        answer_number(a, bits);
    else
        answer_null(a);
    if (to == HEAP_NONE) {
        answer_null(a);
        answer_null(a);
        return;
    }
    answer_number(a, heap_retained(h, to));
    heap_answer_value(a, h, to);
}

static void show_class(struct answer *a, const struct heap *h, const struct hprof_item *item)
{
    struct hprof_class c;
    struct hprof_static s;
    if (hprof_class_read(item, h->dump->header.id_size, &c) < 0)
        return;
    value_row(a, h, "<super class>", HPROF_OBJECT, c.super);
    value_row(a, h, "<class loader>", HPROF_OBJECT, c.loader);
    for (unsigned k = c.statics;
         k && hprof_static_read(&c.statics_at, h->dump->header.id_size, false, &s); k--) {
        struct str name = heap_dump_string(h->dump, s.name);
        char text[300];
        snprintf(text, sizeof(text), "static %.*s", (int)MIN(name.len, (size_t)250),
                 name.data ? name.data : "");
        value_row(a, h, text, s.type, s.value);
    }
}

static void show_fields(const struct heap_call *c, uint64_t i)
{
    const struct heap *h = c->heap;
    const unsigned n = h->dump->header.id_size;
    struct hprof_item item;
    struct heap_field f;
    uint64_t limit = heap_rows(c->options, 50, 10000);
    answer_table(c->answer, "fields", "Fields", field_columns, ARRAY_SIZE(field_columns));
    if (!heap_item(h, i, &item))
        return;
    if (item.tag == HPROF_CLASS_DUMP) {
        show_class(c->answer, h, &item);
    } else if (item.tag == HPROF_INSTANCE_DUMP) {
        for (unsigned k = 0; heap_field_at(h->dump, heap_class_of(h, i), k, &f); k++) {
            if (f.offset + hprof_type_size(f.type, n) <= item.body_len)
                value_row(c->answer, h, f.name, f.type,
                          hprof_value_at(item.body + f.offset, f.type, n));
        }
    } else {
        unsigned type = item.tag == HPROF_OBJECT_ARRAY_DUMP ? HPROF_OBJECT : item.type;
        unsigned size = hprof_type_size(type, n);
        for (uint64_t k = 0; k < item.count && k < limit; k++) {
            char name[32];
            snprintf(name, sizeof(name), "[%" PRIu64 "]", k);
            value_row(c->answer, h, name, type, hprof_value_at(item.body + k * size, type, n));
        }
        if (item.count > limit)
            answer_note(c->answer, "%" PRIu64 " of %u elements are shown (--limit).", limit,
                        item.count);
    }
}

static int show_incoming(const struct heap_call *c, uint64_t i)
{
    static const struct answer_column columns[] = {{"object", "object", ANSWER_ID},
                                                   {"via", "through", ANSWER_TEXT},
                                                   {"retained", "retained", ANSWER_BYTES},
                                                   {"class", "class", ANSWER_TEXT},
                                                   {"value", "value", ANSWER_TEXT, true}};
    const struct heap *h = c->heap;
    struct heap_sources from = {0};
    int error = heap_incoming_search(h, i, &from);
    answer_fact(c->answer, "incomingCount", "referred to by", ANSWER_COUNT, from.list.len);
    answer_table(c->answer, "incoming", "Incoming", columns, ARRAY_SIZE(columns));
    size_t shown = MIN(from.list.len, heap_rows(c->options, 30, 10000));
    for (size_t k = 0; k < shown; k++) {
        _cleanup_(buf_release) struct buf link = BUF(1 << 16);
        uint64_t source = from.list.data[k];
        heap_link_name(h, source, i, &link);
        answer_number(c->answer, heap_id(h, source));
        answer_text(c->answer, buf_str(&link));
        answer_number(c->answer, heap_retained(h, source));
        answer_text(c->answer, heap_class_name(h, source));
        heap_answer_value(c->answer, h, source);
    }
    answer_left(c->answer, from.list.len, shown);
    vec_release(&from.list);
    return error ? answer_refuse(c->answer, NULL, "objects", strerror(-error)) : 0;
}

static int show_object(const struct heap_call *c, uint64_t i)
{
    const struct heap *h = c->heap;
    struct answer *a = c->answer;
    _cleanup_(buf_release) struct buf what = BUF(1 << 20), roots = BUF(1 << 16);
    heap_describe(h, i, &what);
    heap_root_kinds(h, i, &roots);
    answer_fact_text(a, "what", "object", buf_str(&what));
    answer_fact(a, "shallow", "shallow", ANSWER_BYTES, heap_shallow(h, i));
    answer_fact(a, "retained", "retained", ANSWER_BYTES, heap_retained(h, i));
    if (roots.len)
        answer_fact_text(a, "root", "GC root", buf_str(&roots));
    uint64_t over = heap_idom(h, i);
    what.len = 0;
    if (over == HEAP_NONE)
        buf_string(&what, "nothing: it is unreachable");
    else
        heap_describe(h, over, &what);
    answer_fact_text(a, "dominator", "dominated by", buf_str(&what));
    if (over < h->n) /* neither absent nor the virtual root */
        answer_fact(a, "dominatorObject", NULL, ANSWER_ID, heap_id(h, over));
    show_fields(c, i);
    return show_incoming(c, i);
}

static int heap_answer_objects(const struct heap_call *c)
{
    static const struct answer_column columns[] = {{"object", "object", ANSWER_ID},
                                                   {"class", "class", ANSWER_TEXT},
                                                   {"shallow", "shallow", ANSWER_BYTES},
                                                   {"retained", "retained", ANSWER_BYTES},
                                                   {"value", "value", ANSWER_TEXT, true}};
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
    answer_fact(c->answer, "count", "objects", ANSWER_COUNT, s.count);
    answer_table(c->answer, "objects", NULL, columns, ARRAY_SIZE(columns));
    uint64_t limit = heap_rows(c->options, 40, 100000), shown = 0;
    for (uint64_t i = 0; i < h->n && shown < limit; i++) {
        if (!(s.bits[i / 64] >> (i % 64) & 1))
            continue;
        shown++;
        answer_number(c->answer, heap_id(h, i));
        answer_text(c->answer, heap_class_name(h, i));
        answer_number(c->answer, heap_shallow(h, i));
        answer_number(c->answer, heap_retained(h, i));
        heap_answer_value(c->answer, h, i);
    }
    answer_left(c->answer, s.count, shown);
    heap_selection_release(&s);
    return 0;
}

const struct command heap_verb_objects = {
    .name = "heap objects",
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
