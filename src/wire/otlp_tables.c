/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/otlp_tables.h"

#include "wire/otlp_fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- checks ---- */

int otlp_refuse(struct otlp *o, const char *text)
{
    buf_clear(o->why);
    buf_string(o->why, text);
    return -EPROTO;
}

int otlp_check_index(struct otlp *o, const char *table, uint64_t index, size_t len)
{
    if (index < len)
        return 0;
    buf_clear(o->why);
    buf_printf(o->why, "a damaged message of OTLP: %s %" PRId64 " is not in its table of %zu",
               table, (int64_t)index, len);
    return -EPROTO;
}

int otlp_read_list(struct otlp *o, struct decode_numbers *to, struct protobuf_field f, bool fixed)
{
    uint64_t v;
    int r = 0;
    while (r == 0 && (fixed ? protobuf_next_fixed64(&f, &v) : protobuf_next_number(&f, &v)))
        r = DECODE_PUSH(o->b, to, v);
    return r < 0 ? r : f.bytes.failed ? -EPROTO : 0;
}

int64_t otlp_string_of(struct otlp *o, uint64_t index)
{
    int r = otlp_check_index(o, "string", index, o->strings.texts.len);
    return r < 0 ? r : decode_string(&o->strings, o->b, index);
}

static int text_of(struct otlp *o, uint64_t index, struct str *ret)
{
    int r = otlp_check_index(o, "string", index, o->strings.texts.len);
    if (r == 0)
        *ret = decode_text(&o->strings, index);
    return r;
}

/* ---- attributes ---- */

/*
 * Returns the text of an attribute's value as a string of the batch: numbers in decimal, and
 * nothing for lists and bytes, so that their nesting does not matter.
 */
static int64_t value_of(struct otlp *o, struct cursor c)
{
    char number[40] = "";
    struct str text = {"", 0};
    struct protobuf_field f;
    double d;
    while (protobuf_next(&c, &f)) {
        number[0] = 0;
        if (f.number == VALUE_STRING)
            text = (struct str){protobuf_text(&f), cursor_left(&f.bytes)};
        else if (f.number == VALUE_BOOL)
            text = f.value ? (struct str){"true", 4} : (struct str){"false", 5};
        else if (f.number == VALUE_INT)
            snprintf(number, sizeof(number), "%" PRId64, (int64_t)f.value);
        else if (f.number == VALUE_DOUBLE && f.type == PROTOBUF_FIXED64)
            snprintf(number, sizeof(number), "%.17g", (memcpy(&d, &f.value, sizeof(d)), d));
        else if (f.number == VALUE_STRING_INDEX && text_of(o, f.value, &text) < 0)
            return -EPROTO;
        if (number[0])
            text = (struct str){number, strlen(number)};
    }
    return c.failed ? -EPROTO : wire_string(o->b, text.data, text.len);
}

static int read_attribute(struct otlp *o, struct cursor c)
{
    int64_t key = 0, value = 0;
    struct protobuf_field f;
    while (key >= 0 && value >= 0 && protobuf_next(&c, &f)) {
        if (f.number == ATTRIBUTE_KEY && f.type == PROTOBUF_BYTES) {
            buf_string(o->why, "OTLP profiles of a release before 1.8, which is not read");
            return -ENOTSUP;
        }
        if (f.number == ATTRIBUTE_KEY)
            key = otlp_string_of(o, f.value);
        else if (f.number == ATTRIBUTE_VALUE)
            value = value_of(o, f.bytes);
    }
    if (key < 0 || value < 0 || c.failed)
        return key < 0 ? (int)key : value < 0 ? (int)value : -EPROTO;
    return DECODE_PUSH(o->b, &o->attributes, ((struct wire_label){(uint32_t)key, (uint32_t)value}));
}

int64_t otlp_set_of(struct otlp *o, const struct decode_numbers *indices)
{
    vec_clear(&o->labels);
    for (size_t i = 0; i < indices->len; i++) {
        int r = otlp_check_index(o, "attribute", indices->data[i], o->attributes.len);
        if (r == 0)
            r = DECODE_PUSH(o->b, &o->labels, o->attributes.data[indices->data[i]]);
        if (r < 0)
            return r;
    }
    return wire_labels(o->b, o->labels.data, o->labels.len);
}

static int read_pair(struct otlp *o, struct cursor c)
{
    struct str key = {"", 0};
    int64_t value = 0;
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && value >= 0 && protobuf_next(&c, &f)) {
        if (f.number == PAIR_KEY && f.type == PROTOBUF_BYTES)
            key = (struct str){protobuf_text(&f), cursor_left(&f.bytes)};
        else if (f.number == PAIR_KEY_INDEX)
            r = text_of(o, f.value, &key);
        else if (f.number == PAIR_VALUE)
            value = value_of(o, f.bytes);
    }
    if (r < 0 || value < 0 || c.failed)
        return r < 0 ? r : value < 0 ? (int)value : -EPROTO;
    int64_t k = wire_string(o->b, key.data, key.len);
    return k < 0
               ? (int)k
               : DECODE_PUSH(o->b, &o->labels, ((struct wire_label){(uint32_t)k, (uint32_t)value}));
}

int64_t otlp_read_resource(struct otlp *o, struct cursor c)
{
    struct protobuf_field f;
    int r = 0;
    vec_clear(&o->labels);
    while (r == 0 && protobuf_next(&c, &f))
        if (f.number == RESOURCE_ATTRIBUTES)
            r = read_pair(o, f.bytes);
    return r < 0 ? r : c.failed ? -EPROTO : wire_labels(o->b, o->labels.data, o->labels.len);
}

/* ---- the dictionary ---- */

/* Tables that refer to others are read after all of those, because they may come in any order. */
static int read_flat_table(struct otlp *o, const struct protobuf_field *f)
{
    struct cursor c = f->bytes;
    struct protobuf_field part;
    struct function function = {0};
    uint64_t file = 0;
    switch (f->number) {
    case DICTIONARY_STRING:
        return decode_strings_add(&o->strings, o->b, c);
    case DICTIONARY_STACK:
        return DECODE_PUSH(o->b, &o->stacks, c);
    case DICTIONARY_MAPPING:
        while (protobuf_next(&c, &part))
            file = part.number == MAPPING_FILE ? part.value : file;
        return c.failed ? -EPROTO : DECODE_PUSH(o->b, &o->mappings, file);
    case DICTIONARY_FUNCTION:
        while (protobuf_next(&c, &part)) {
            if (part.number == FUNCTION_NAME)
                function.name = part.value;
            else if (part.number == FUNCTION_SYSTEM_NAME)
                function.system_name = part.value;
            else if (part.number == FUNCTION_FILE)
                function.file = part.value;
        }
        return c.failed ? -EPROTO : DECODE_PUSH(o->b, &o->functions, function);
    default:
        return 0;
    }
}

static int read_id(struct otlp *o, struct cursor c, uint8_t *ret, size_t size)
{
    size_t n = cursor_left(&c);
    if (n && n != size)
        return otlp_refuse(
            o, "a damaged message of OTLP: an id of a trace or span has another length");
    if (n)
        memcpy(ret, c.at, size);
    return 0;
}

static int read_link(struct otlp *o, struct cursor c)
{
    struct wire_link link = {0};
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f)) {
        if (f.number == LINK_TRACE)
            r = read_id(o, f.bytes, link.trace, sizeof(link.trace));
        else if (f.number == LINK_SPAN)
            r = read_id(o, f.bytes, link.span, sizeof(link.span));
    }
    int64_t n = r < 0 ? r : c.failed ? -EPROTO : wire_link(o->b, &link);
    return n < 0 ? (int)n : DECODE_PUSH(o->b, &o->links, (uint32_t)n);
}

static int read_line(struct otlp *o, struct cursor c, uint32_t kind)
{
    uint64_t function = 0, line = 0;
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == LINE_FUNCTION)
            function = f.value;
        else if (f.number == LINE_LINE)
            line = f.value;
    }
    int r = c.failed ? -EPROTO : otlp_check_index(o, "function", function, o->functions.len);
    if (r < 0)
        return r;
    const struct function *fn = &o->functions.data[function];
    struct str name, system_name, file;
    r = text_of(o, fn->name, &name);
    if (r == 0)
        r = text_of(o, fn->system_name, &system_name);
    if (r == 0)
        r = text_of(o, fn->file, &file);
    int64_t frame = r < 0 ? r : decode_frame(o->b, name, system_name, file, kind, (int64_t)line);
    return frame < 0 ? (int)frame : DECODE_PUSH(o->b, &o->frames, (uint32_t)frame);
}

/* Of a location without lines, only its library is known. */
static int add_mapped(struct otlp *o, uint64_t mapping, uint32_t kind)
{
    struct str name = {"", 0};
    int r = mapping ? otlp_check_index(o, "mapping", mapping, o->mappings.len) : 0;
    if (r == 0 && mapping)
        r = text_of(o, o->mappings.data[mapping], &name);
    if (r < 0)
        return r;
    const char *slash = name.len ? memrchr(name.data, '/', name.len) : NULL;
    if (slash)
        name = (struct str){slash + 1, name.len - (size_t)(slash + 1 - name.data)};
    if (!name.len)
        name = (struct str){"[unknown]", 9};
    int64_t frame = decode_frame(o->b, name, name, (struct str){"", 0}, kind, 0);
    return frame < 0 ? (int)frame : DECODE_PUSH(o->b, &o->frames, (uint32_t)frame);
}

/* The kind of a frame is an attribute of its location. */
static int kind_of_location(struct otlp *o, struct cursor c, uint32_t *ret)
{
    struct protobuf_field f;
    int r = 0;
    bool exact = false;
    vec_clear(&o->numbers);
    while (r == 0 && protobuf_next(&c, &f))
        if (f.number == LOCATION_ATTRIBUTES)
            r = otlp_read_list(o, &o->numbers, f, false);
    *ret = 0;
    for (size_t i = 0; r == 0 && i < o->numbers.len; i++) {
        r = otlp_check_index(o, "attribute", o->numbers.data[i], o->attributes.len);
        if (r < 0)
            break;
        const struct wire_label *l = &o->attributes.data[o->numbers.data[i]];
        if (l->key == o->frame_kind || (l->key == o->frame_type && !exact))
            *ret = l->value;
        exact |= l->key == o->frame_kind;
    }
    return r;
}

static int read_location(struct otlp *o, struct cursor c)
{
    struct location at = {.first = (uint32_t)o->frames.len};
    struct protobuf_field f;
    uint64_t mapping = 0;
    uint32_t kind;
    bool zero = !cursor_left(&c); /* element 0 stands for none */
    int r = kind_of_location(o, c, &kind);
    while (r == 0 && protobuf_next(&c, &f)) {
        if (f.number == LOCATION_MAPPING)
            mapping = f.value;
        else if (f.number == LOCATION_LINES)
            r = read_line(o, f.bytes, kind);
    }
    if (r == 0 && c.failed)
        r = -EPROTO;
    if (r == 0 && !zero && o->frames.len == at.first)
        r = add_mapped(o, mapping, kind);
    at.n = (uint32_t)o->frames.len - at.first;
    return r < 0 ? r : DECODE_PUSH(o->b, &o->locations, at);
}

/* Reads the tables of one kind. */
static int read_table(struct otlp *o, struct cursor c, unsigned number)
{
    struct protobuf_field f;
    int r = 0;
    while (r == 0 && protobuf_next(&c, &f)) {
        if (f.type != PROTOBUF_BYTES || (number && f.number != number))
            continue;
        if (!number)
            r = read_flat_table(o, &f);
        else if (number == DICTIONARY_LINK)
            r = read_link(o, f.bytes);
        else if (number == DICTIONARY_ATTRIBUTE)
            r = read_attribute(o, f.bytes);
        else if (number == DICTIONARY_LOCATION)
            r = read_location(o, f.bytes);
    }
    return r < 0 ? r : c.failed ? -EPROTO : 0;
}

int otlp_read_dictionaries(struct otlp *o, struct cursor data)
{
    static const unsigned order[] = {0, DICTIONARY_ATTRIBUTE, DICTIONARY_LINK, DICTIONARY_LOCATION};
    int64_t type = wire_string(o->b, FRAME_TYPE, strlen(FRAME_TYPE)),
            kind = wire_string(o->b, FRAME_KIND, strlen(FRAME_KIND));
    int r = type < 0 ? (int)type : kind < 0 ? (int)kind : 0;
    o->frame_type = (uint32_t)type;
    o->frame_kind = (uint32_t)kind;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(order); i++) {
        struct cursor c = data;
        struct protobuf_field f;
        while (r == 0 && protobuf_next(&c, &f))
            if (f.number == DATA_DICTIONARY && f.type == PROTOBUF_BYTES)
                r = read_table(o, f.bytes, order[i]);
        r = r < 0 ? r : c.failed ? -EPROTO : 0;
    }
    return r < 0 ? r : vec_extend(&o->nodes, o->stacks.len);
}

static int64_t node_of_stack(struct otlp *o, uint64_t stack)
{
    struct cursor c = o->stacks.data[stack];
    struct protobuf_field f;
    int64_t node = 0;
    int r = 0;
    vec_clear(&o->numbers);
    while (r == 0 && protobuf_next(&c, &f))
        if (f.number == STACK_LOCATIONS)
            r = otlp_read_list(o, &o->numbers, f, false);
    if (r < 0 || c.failed)
        return r < 0 ? r : -EPROTO;
    for (size_t i = o->numbers.len; i-- > 0 && node >= 0;) {
        r = otlp_check_index(o, "location", o->numbers.data[i], o->locations.len);
        if (r < 0)
            return r;
        const struct location *l = &o->locations.data[o->numbers.data[i]];
        r = decode_frames(o->b, &o->walked, l->n);
        if (r < 0)
            return r;
        for (uint32_t k = l->n; k-- > 0 && node >= 0;)
            node = wire_node(o->b, (uint32_t)node, o->frames.data[l->first + k]);
    }
    return node;
}

int64_t otlp_node_of(struct otlp *o, uint64_t stack)
{
    if (!stack && !o->stacks.len)
        return 0;
    int r = otlp_check_index(o, "stack", stack, o->stacks.len);
    if (r < 0)
        return r;
    if (o->nodes.data[stack])
        return o->nodes.data[stack] - 1;
    int64_t node = node_of_stack(o, stack);
    if (node >= 0)
        o->nodes.data[stack] = (uint32_t)node + 1;
    return node;
}
