/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/values.h"

#include "agent/capture/trace/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void put_class(struct buf *b, uint32_t number)
{
    const char *s = hub_class(number);
    static const char codes[] = "ZBCSIJFD";
    static const char *const names[] = {"boolean", "byte", "char", "short", "int", "long", "float", "double"};
    size_t dims = s ? strspn(s, "[") : 0;
    if (!s) {
        buf_string(b, "?");
        return;
    }
    const char *code = s[dims] ? strchr(codes, s[dims]) : NULL;
    if (dims && code)
        buf_string(b, names[code - codes]);
    else
        for (const char *p = s + dims + 1; *p && *p != ';'; p++)
            buf_u8(b, *p == '/' ? '.' : (uint8_t)*p);
    for (; dims; dims--)
        buf_string(b, "[]");
}

void put_utf16(struct buf *b, const uint16_t *chars, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint16_t c = chars[i];
        /* Modified UTF-8, which the JSON writer understands. */
        if (c && c < 0x80) {
            buf_u8(b, (uint8_t)c);
        } else if (c < 0x800) {
            buf_u8(b, (uint8_t)(0xc0 | c >> 6));
            buf_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
        } else {
            buf_u8(b, (uint8_t)(0xe0 | c >> 12));
            buf_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
            buf_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
        }
    }
}

static bool is_array(uint32_t number)
{
    const char *s = hub_class(number);
    return s && s[0] == '[';
}

static bool is_class(uint32_t number, const char *signature)
{
    const char *s = hub_class(number);
    return s && strcmp(s, signature) == 0;
}

/* The text at *at: its length and how many characters follow. False when it is cut off. */
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

static bool take_fields(const uint8_t **at, const uint8_t *end, struct value *v)
{
    int64_t n;
    struct value field;
    if (v->shown->to_string)
        return take_text(at, end, v);
    if (end - *at < 8)
        return false;
    memcpy(&n, *at, 8);
    *at += 8;
    v->fields = *at;
    for (v->n_fields = 0; v->n_fields < n && v->n_fields < v->shown->n; v->n_fields++)
        if (!take(at, end, v->shown->types[v->n_fields], false, &field))
            return false;
    v->fields_end = *at;
    return true;
}

/* A value; what is inside an object too, unless it is itself inside one. */
static bool take(const uint8_t **at, const uint8_t *end, char type, bool inside, struct value *ret)
{
    struct value v = {.type = type == '[' ? 'L' : type};
    int64_t raw;
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
        v.shown = inside && v.class ? trace_shown(v.class) : NULL;
        if (value_is_string(&v)) {
            if (!take_text(at, end, &v))
                return false;
        } else if (is_array(v.class)) {
            if (end - *at < 8)
                return false;
            memcpy(&v.length, *at, 8);
            *at += 8;
        } else if (v.shown && !take_fields(at, end, &v)) {
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

static void put_fields(struct buf *text, const struct value *v)
{
    const uint8_t *at = v->fields;
    struct value field;
    for (unsigned i = 0; v->shown && i < v->n_fields && take(&at, v->fields_end, v->shown->types[i], false, &field); i++) {
        buf_printf(text, "%s%s=", i ? ", " : "{", v->shown->names[i]);
        value_text(text, &field);
    }
    buf_string(text, "}");
}

/* "Class@hash", "int[3]@hash", with what is shown of an object behind it in braces; or a string's characters. */
static void put_reference(struct buf *text, const struct value *v)
{
    if (value_is_string(v)) {
        put_utf16(text, v->chars, v->n_chars);
        if (v->length > v->n_chars)
            buf_printf(text, "... (%lld)", (long long)v->length);
        return;
    }
    size_t before = text->len;
    put_class(text, v->class);
    /* The length goes into the first brackets: int[3][]. */
    char *open = is_array(v->class) && buf_error(text) == 0 ? strchr(buf_str(text) + before, '[') : NULL;
    if (open) {
        _cleanup_free_ char *rest = strdup(open + 1);
        text->len = (size_t)(open - (char *)text->data);
        buf_printf(text, "[%lld%s", (long long)v->length, rest ? rest : "]");
    }
    buf_printf(text, "@%x", v->hash);
    if (v->shown && v->shown->to_string && v->length >= 0) {
        buf_string(text, "{");
        put_utf16(text, v->chars, v->n_chars);
        buf_string(text, v->length > v->n_chars ? "...}" : "}");
    } else if (v->n_fields) {
        put_fields(text, v);
    }
}

bool value_is_string(const struct value *v)
{
    return v->type == 'L' && is_class(v->class, "Ljava/lang/String;");
}

static const char *real_name(double d)
{
    return d - d == 0 ? NULL : d != d ? "NaN" : d > 0 ? "Infinity" : "-Infinity";
}

void value_text(struct buf *b, const struct value *v)
{
    uint16_t c = (uint16_t)v->number;
    switch (v->type) {
    case 'Z':
        buf_string(b, v->number ? "true" : "false");
        break;
    case 'C':
        put_utf16(b, &c, 1);
        break;
    case 'F':
    case 'D':
        if (real_name(v->real))
            buf_string(b, real_name(v->real));
        else
            buf_printf(b, v->type == 'F' ? "%.9g" : "%.17g", v->real);
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

void value_json(struct json *j, const struct value *v)
{
    char text[48];
    switch (v->type) {
    case 'Z':
        json_bool(j, v->number != 0);
        break;
    case 'C': {
        _cleanup_(buf_release) struct buf b = BUF(16);
        uint16_t c = (uint16_t)v->number;
        put_utf16(&b, &c, 1);
        json_string_n(j, (const char *)b.data, b.len);
        break;
    }
    case 'F':
    case 'D':
        if (real_name(v->real))
            json_string(j, real_name(v->real));
        else
            json_double(j, v->real);
        break;
    case 'L': {
        _cleanup_(buf_release) struct buf reference = BUF(4096);
        if (v->class == 0) {
            json_null(j);
            break;
        }
        put_reference(&reference, v);
        json_string_n(j, (const char *)reference.data, reference.len);
        break;
    }
    default:
        snprintf(text, sizeof(text), "%lld", (long long)v->number);
        if (v->number > (INT64_C(1) << 53) || v->number < -(INT64_C(1) << 53))
            json_string(j, text);
        else
            json_i64(j, v->number);
    }
}
