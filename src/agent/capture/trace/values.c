/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/values.h"

#include "agent/capture/trace/drain.h"
#include "base/real.h"
#include "base/utf8.h"
#include "options/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void trace_put_class(struct buf *b, uint32_t number)
{
    const char *s = drain_class(number);
    if (!s || !signature_put_type(b, s, s + strlen(s)))
        buf_string(b, "?");
}

void trace_put_utf16(struct buf *b, const uint16_t *chars, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint16_t c = chars[i];
        /* Modified UTF-8, which the JSON writer understands. */
        if (c)
            utf8_put(b, c);
        else
            buf_bytes(b, "\xc0\x80", 2);
    }
}

static bool is_array(uint32_t number)
{
    const char *s = drain_class(number);
    return s && s[0] == '[';
}

static bool is_class(uint32_t number, const char *signature)
{
    const char *s = drain_class(number);
    return s && strcmp(s, signature) == 0;
}

/*
 * Reads the text at *at: its full length and the characters that follow. Returns false when it is
 * truncated.
 */
static bool take_text(const uint8_t **at, const uint8_t *end, struct value *v)
{
    int64_t raw;
    if (end - *at < 8)
        return false;
    memcpy(&raw, *at, 8);
    *at += 8;
    v->length = (int32_t)raw;
    v->n_chars = (uint32_t)((uint64_t)raw >> 32);
    v->chars = (const uint16_t *)*at;
    uint32_t bytes = (v->n_chars + 3) / 4 * 8;
    if (v->n_chars > RING_TEXT_MAX || end - *at < (int64_t)bytes)
        return false;
    *at += bytes;
    return true;
}

static bool take(const uint8_t **at, const uint8_t *end, char type, bool inside, struct value *ret);

/* Reads n values at *at whose type is that of a field, an element or a box. */
static bool take_parts(const uint8_t **at, const uint8_t *end, const char *types, uint32_t n,
                       struct value *v)
{
    struct value part;
    v->parts = *at;
    for (v->n_parts = 0; v->n_parts < n; v->n_parts++)
        if (!take(at, end, types ? types[v->n_parts] : 'L', false, &part))
            return false;
    v->parts_end = *at;
    return true;
}

/* Returns the type of an array's elements. */
static char element_type(uint32_t class)
{
    char c = drain_class(class)[1];
    return c == '[' ? 'L' : c;
}

/* Reads size, number of elements and elements of an array, a collection or a map. */
static bool take_elements(const uint8_t **at, const uint8_t *end, char type, struct value *v)
{
    enum { IS_MAP = 1 << 30, ELEMENTS_MAX = 32 };

    uint32_t n;
    int32_t length;
    char types[2 * ELEMENTS_MAX];
    if (end - *at < 8)
        return false;
    memcpy(&length, *at, 4);
    memcpy(&n, *at + 4, 4);
    *at += 8;
    v->length = length;
    v->is_map = n & IS_MAP;
    n &= ~(uint32_t)IS_MAP;
    memset(types, type, sizeof(types));
    return n <= ELEMENTS_MAX && take_parts(at, end, types, v->is_map ? 2 * n : n, v);
}

/* Reads the contents of an object, as JvmscopeTrace.inside writes them. */
static bool take_inside(const uint8_t **at, const uint8_t *end, bool inside, struct value *v)
{
    int64_t n;
    switch (v->shown->kind) {
    case SHAPE_TO_STRING:
        return !inside || take_text(at, end, v);
    case SHAPE_FIELDS:
    case SHAPE_PARTS:
        if (!inside && v->shown->kind == SHAPE_FIELDS)
            return true;
        if (end - *at < 8)
            return false;
        memcpy(&n, *at, 8);
        *at += 8;
        return n >= 0 && n <= v->shown->n && take_parts(at, end, v->shown->types, (uint32_t)n, v);
    case SHAPE_VALUE:
    case SHAPE_SUM:
        return take_parts(at, end, v->shown->types, 1, v);
    case SHAPE_NAME:
    case SHAPE_CHARS:
        return take_text(at, end, v);
    case SHAPE_NUMBERS:
    case SHAPE_BIT_SET:
        return take_elements(at, end, v->shown->types[0], v);
    case SHAPE_CLASS:
        if (end - *at < 8)
            return false;
        memcpy(&v->number, *at, 8);
        *at += 8;
        return true;
    default:
        return take_elements(at, end, 'L', v);
    }
}

/*
 * Reads a value. What show= and tostring= request is present only where the value is not inside an
 * object.
 */
static bool take(const uint8_t **at, const uint8_t *end, char type, bool inside, struct value *ret)
{
    struct value v = {.type = type == '[' ? 'L' : type};
    int64_t raw;
    if (type == '#') {
        if (!take_elements(at, end, 'I', &v))
            return false;
        *ret = v;
        return true;
    }
    if (end - *at < 8)
        return false;
    memcpy(&raw, *at, 8);
    *at += 8;
    v.number = raw;
    if (type == 'F') {
        int32_t bits = (int32_t)raw;
        float f;
        memcpy(&f, &bits, 4);
        v.real = (double)f;
    } else if (v.type == 'L') {
        v.hash = (uint32_t)raw;
        v.class = (uint32_t)((uint64_t)raw >> 32);
        v.shown = v.class ? trace_shown(v.class) : NULL;
        if (value_is_string(&v)) {
            if (!take_text(at, end, &v))
                return false;
        } else if (is_array(v.class)) {
            if (!take_elements(at, end, element_type(v.class), &v))
                return false;
        } else if (v.shown && !take_inside(at, end, inside, &v)) {
            return false;
        }
    }
    *ret = v;
    return true;
}

bool value_take(const uint8_t **at, const uint8_t *end, char type, struct value *ret)
{
    return take(at, end, type, true, ret);
}

/* Returns the value in a box, or the value itself. */
static struct value value_unboxed(const struct value *v)
{
    const uint8_t *at = v->parts;
    struct value box;
    bool boxed = v->shown && v->n_parts == 1 &&
                 (v->shown->kind == SHAPE_VALUE || v->shown->kind == SHAPE_SUM);
    return boxed && take(&at, v->parts_end, v->shown->types[0], false, &box) ? box : *v;
}

static char part_type(const struct value *v, uint32_t i)
{
    enum shape_kind kind = v->shown ? v->shown->kind : SHAPE_TO_STRING;
    if (kind == SHAPE_NUMBERS || kind == SHAPE_SUM || kind == SHAPE_BIT_SET)
        return v->shown->types[0];
    if (kind == SHAPE_FIELDS || kind == SHAPE_VALUE || kind == SHAPE_PARTS)
        return v->shown->types[i];
    return is_array(v->class) ? element_type(v->class) : 'L';
}

unsigned value_parts(const struct value *v, struct value ret[SHOWN_FIELDS_MAX])
{
    const uint8_t *at = v->parts;
    unsigned n = 0;
    while (n < v->n_parts && n < SHOWN_FIELDS_MAX &&
           take(&at, v->parts_end, part_type(v, n), false, &ret[n]))
        n++;
    return n;
}

unsigned value_ints(const struct value *v, uint32_t *ret, unsigned max)
{
    const uint8_t *at = v->parts;
    struct value part;
    unsigned n = 0;
    while (n < v->n_parts && n < max && take(&at, v->parts_end, 'I', false, &part))
        ret[n++] = (uint32_t)part.number;
    return n;
}

struct value value_held(const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX], held = {.type = 'L'};
    if (v->shown && v->shown->kind == SHAPE_FIXED && v->shown->style == STYLE_OBJECT && !v->is_map)
        return value_parts(v, parts) && parts[0].class ? value_unboxed(&parts[0]) : *v;
    if (!v->shown || v->shown->style != STYLE_OPTIONAL)
        return value_unboxed(v);
    unsigned n = value_parts(v, parts);
    if (v->shown->kind == SHAPE_PARTS)
        return n < 2 ? *v : parts[0].number ? parts[1] : held;
    if (v->length > 0 && n == 0)
        return *v;
    return value_unboxed(n ? &parts[0] : &held);
}

/* ---- as text ---- */

void trace_put_text(struct buf *b, const struct value *v)
{
    trace_put_utf16(b, v->chars, v->n_chars);
    if (v->length > v->n_chars)
        buf_printf(b, "... (%lld)", (long long)v->length);
}

/* The mark of what was left out stands behind the quotation marks: it is no part of the text. */
static void put_quoted(struct buf *b, const struct value *v)
{
    _cleanup_(buf_release) struct buf text = BUF(4096);
    trace_put_utf16(&text, v->chars, v->n_chars);
    struct json j = {.out = b};
    json_string_n(&j, (const char *)text.data, text.len);
    if (v->length > v->n_chars)
        buf_printf(b, "... (%lld)", (long long)v->length);
}

/* Writes a character inside an object, quoted and escaped as in Java. */
static void put_char(struct buf *b, const struct value *v)
{
    _cleanup_(buf_release) struct buf text = BUF(64), json = BUF(64);
    value_text(&text, v);
    struct json j = {.out = &json};
    json_string_n(&j, (const char *)text.data, text.len);
    const char *p = buf_str(&json) + 1;
    buf_u8(b, '\'');
    if (strcmp(p, "\\\"\"") == 0)
        buf_u8(b, '"');
    else if (*p == '\'')
        buf_string(b, "\\'");
    else
        buf_bytes(b, p, strlen(p) ? strlen(p) - 1 : 0);
    buf_u8(b, '\'');
}

void trace_put_part(struct buf *text, const struct value *v)
{
    struct value box = value_unboxed(v);
    if (box.type == 'C')
        put_char(text, &box);
    else if (value_is_string(v))
        put_quoted(text, v);
    else
        value_text(text, v);
}

void trace_put_parts(struct buf *text, const struct value *v)
{
    const uint8_t *at = v->parts;
    struct value part;
    int64_t count = v->is_map ? v->n_parts / 2 : v->n_parts;
    for (uint32_t i = 0; i < v->n_parts && take(&at, v->parts_end, part_type(v, i), false, &part);
         i++) {
        bool is_value = v->is_map && i % 2;
        buf_string(text, is_value ? "=" : i ? ", " : "");
        if (v->shown && v->shown->kind == SHAPE_FIELDS)
            buf_printf(text, "%s=", v->shown->names[i]);
        trace_put_part(text, &part);
    }
    if (v->length > count)
        buf_string(text, count ? ", ..." : "...");
}

/*
 * Writes the class: that of an array with its length in the first brackets, as in int[3][]; that of
 * a collection with its size, as in ArrayList(3).
 */
static void put_class_sized(struct buf *text, const struct value *v)
{
    size_t before = text->len;
    trace_put_class(text, v->class);
    char *open =
        is_array(v->class) && buf_error(text) == 0 ? strchr(buf_str(text) + before, '[') : NULL;
    if (open) {
        _cleanup_free_ char *rest = strdup(open + 1);
        text->len = (size_t)(open - (char *)text->data);
        buf_printf(text, "[%lld%s", (long long)v->length, rest ? rest : "]");
    } else if (v->shown && v->shown->style == STYLE_SIZED && v->length >= 0) {
        buf_printf(text, "(%lld)", (long long)v->length);
    }
}

static bool has_content(const struct value *v)
{
    if (v->n_parts)
        return true;
    return v->shown && v->chars && v->length >= 0;
}

/* Writes what the class's `put` writes, quoted like a string if the style requires that. */
static void put_known(struct buf *text, const struct value *v)
{
    enum shape_style style = v->shown->style;
    if (style != STYLE_QUOTED) {
        v->shown->put(text, v);
        return;
    }
    if (v->shown->kind == SHAPE_CHARS) {
        put_quoted(text, v);
        return;
    }
    _cleanup_(buf_release) struct buf plain = BUF(16 << 10);
    v->shown->put(&plain, v);
    struct json j = {.out = text};
    json_string_n(&j, (const char *)plain.data, plain.len);
}

bool value_known(const struct value *v)
{
    return v->type == 'L' && v->shown && v->shown->put && has_content(v);
}

/* Writes why the object has no text, if toString() was to be called, and counts it. */
static void put_why_without(struct buf *text, const struct value *v)
{
    if (!v->shown || v->shown->kind != SHAPE_TO_STRING || v->length >= 0)
        return;
    buf_string(text, " (toString: ");
    if (v->length == TEXT_THREW) {
        buf_string(text, "threw ");
        trace_put_utf16(text, v->chars, v->n_chars);
    } else {
        buf_string(text, v->length == TEXT_SLOW ? "longer than 100 ms" : "not called");
    }
    buf_string(text, ")");
    trace_objects_without_text((enum text_missing)v->length);
}

/*
 * Writes "Class@hash", followed in braces by what is known of the object, or the characters of a
 * string.
 */
static void put_reference(struct buf *text, const struct value *v)
{
    struct value box = value_unboxed(v);
    enum shape_style style = v->shown ? v->shown->style : STYLE_OBJECT;
    if (value_is_string(v)) {
        trace_put_text(text, v);
    } else if (style == STYLE_PLAIN && v->shown->kind == SHAPE_CLASS) {
        trace_put_class(text, (uint32_t)v->number);
        buf_string(text, ".class");
    } else if (style == STYLE_PLAIN && box.type != 'L') {
        value_text(text, &box);
    } else if (style == STYLE_ENUM && v->length >= 0) {
        buf_printf(text, "%s.", v->shown->enum_name ? v->shown->enum_name : "?");
        trace_put_text(text, v);
    } else if ((style == STYLE_NUMBER || style == STYLE_TEXT) && v->n_parts) {
        v->shown->put(text, v);
    } else if (style == STYLE_OPTIONAL && v->shown->put) {
        trace_put_class(text, v->class);
        v->shown->put(text, v);
    } else if (style == STYLE_OPTIONAL) {
        buf_string(text, v->length > 0 ? "java.util.Optional[" : "java.util.Optional.empty");
        trace_put_parts(text, v);
        buf_string(text, v->length > 0 ? "]" : "");
    } else {
        put_class_sized(text, v);
        buf_printf(text, "@%x", v->hash);
        put_why_without(text, v);
        if (!has_content(v))
            return;
        buf_string(text, "{");
        if (v->shown && v->shown->put)
            put_known(text, v);
        else if (v->n_parts)
            trace_put_parts(text, v);
        else if (v->shown->kind == SHAPE_NAME)
            put_quoted(text, v);
        else
            trace_put_utf16(text, v->chars, v->n_chars);
        buf_string(text, !v->n_parts && v->shown->kind == SHAPE_TO_STRING && v->length > v->n_chars
                             ? "...}"
                             : "}");
    }
}

bool value_is_string(const struct value *v)
{
    return v->type == 'L' && is_class(v->class, "Ljava/lang/String;");
}

bool value_is_message(const struct value *v)
{
    return v->type == 'L' && v->shown && v->shown->kind == SHAPE_NAME &&
           v->shown->style != STYLE_ENUM && v->chars && v->length >= 0;
}

bool value_has_length(const struct value *v)
{
    bool sized = v->shown && v->length >= 0 &&
                 (v->shown->style == STYLE_SIZED || v->shown->kind == SHAPE_CHARS);
    return v->type == 'L' && v->class && (value_is_string(v) || is_array(v->class) || sized);
}

void value_text(struct buf *b, const struct value *v)
{
    uint16_t c = (uint16_t)v->number;
    switch (v->type) {
    case 'Z':
        buf_string(b, v->number ? "true" : "false");
        break;
    case 'C':
        trace_put_utf16(b, &c, 1);
        break;
    case 'F':
    case 'D':
        real_put(b, v->real, v->type == 'F');
        break;
    case 'L':
        if (v->class == 0)
            buf_string(b, "null");
        else
            put_reference(b, v);
        break;
    default:
        buf_printf(b, "%lld", (long long)v->number);
    }
}

static void put_tagged(struct json *j, const char *key, const struct buf *text)
{
    json_begin_object(j);
    json_key_string_n(j, key, (const char *)text->data, text->len);
    json_end_object(j);
}

static bool is_json_number(const struct value *v)
{
    const int64_t exact = INT64_C(1) << 53;
    if (v->type == 'F' || v->type == 'D')
        return v->real - v->real == 0;
    return v->number <= exact && v->number >= -exact;
}

void value_json(struct json *j, const struct value *v)
{
    _cleanup_(buf_release) struct buf text = BUF(16 << 10);
    struct value box = value_unboxed(v);
    if (v->type == 'L' && v->class == 0) {
        json_null(j);
        return;
    }
    bool is_number = v->shown && v->shown->style == STYLE_NUMBER && v->n_parts;
    if (v->type == 'L' && box.type == 'C') { /* without quotes it would look like a String */
        put_char(&text, &box);
        put_tagged(j, "object", &text);
        return;
    }
    if (value_is_string(v) && v->length > v->n_chars) { /* not the string: the beginning of it */
        put_quoted(&text, v);
        put_tagged(j, "object", &text);
        return;
    }
    if (v->shown && v->shown->style == STYLE_PLAIN)
        v = &box;
    value_text(&text, v);
    if (v->type == 'C' || value_is_string(v))
        json_string_n(j, (const char *)text.data, text.len);
    else if (v->type == 'Z' || (v->type != 'L' && is_json_number(v)))
        json_raw(j, (const char *)text.data, text.len);
    else
        put_tagged(j, v->type == 'L' && !is_number ? "object" : "number", &text);
}
