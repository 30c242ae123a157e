/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void before_value(struct json *j)
{
    if (j->comma)
        buf_u8(j->out, ',');
    j->comma = true;
}

static void open_with(struct json *j, uint8_t c)
{
    before_value(j);
    buf_u8(j->out, c);
    j->comma = false;
}

static void close_with(struct json *j, uint8_t c)
{
    buf_u8(j->out, c);
    j->comma = true;
}

void json_begin_object(struct json *j)
{
    open_with(j, '{');
}

void json_end_object(struct json *j)
{
    close_with(j, '}');
}

void json_begin_array(struct json *j)
{
    open_with(j, '[');
}

void json_end_array(struct json *j)
{
    close_with(j, ']');
}

void json_put_utf8(struct buf *b, const char *s, size_t len)
{
    for (size_t n; len; s += n, len -= n) {
        uint32_t v;
        n = utf8_next(s, len, &v);
        utf8_put(b, v >= 0xd800 && v < 0xe000 ? UTF8_REPLACEMENT : v);
    }
}

/* Returns how many bytes at the beginning are characters that JSON takes as they are. */
static size_t plain_length(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

void json_string_n(struct json *j, const char *s, size_t len)
{
    before_value(j);
    buf_u8(j->out, '"');
    for (size_t n; len; s += n, len -= n) {
        uint32_t v;
        n = plain_length(s, len);
        if (n) {
            buf_bytes(j->out, s, n);
            continue;
        }
        n = utf8_next(s, len, &v);
        if (v == '"' || v == '\\')
            buf_printf(j->out, "\\%c", (int)v);
        else if (utf8_is_control(v))
            utf8_put_escaped(j->out, v);
        else
            utf8_put(j->out, v);
    }
    buf_u8(j->out, '"');
}

void json_string(struct json *j, const char *s)
{
    if (s)
        json_string_n(j, s, strlen(s));
    else
        json_null(j);
}

void json_key(struct json *j, const char *key)
{
    json_string(j, key);
    buf_u8(j->out, ':');
    j->comma = false;
}

void json_u64(struct json *j, uint64_t v)
{
    char digits[20], *end = digits + sizeof(digits), *at = end;
    before_value(j);
    do
        *--at = (char)('0' + v % 10);
    while (v /= 10);
    buf_bytes(j->out, at, (size_t)(end - at));
}

void json_i64(struct json *j, int64_t v)
{
    if (v >= 0) {
        json_u64(j, (uint64_t)v);
        return;
    }
    before_value(j);
    buf_u8(j->out, '-');
    j->comma = false;
    json_u64(j, -(uint64_t)v);
}

void json_double(struct json *j, double v)
{
    before_value(j);
    char text[40];
    if (!isfinite(v)) {
        buf_string(j->out, "null");
        return;
    }
    /* Use the fewest digits that read back as the same number. */
    int digits = 15;
    do
        snprintf(text, sizeof(text), "%.*g", digits, v);
    while (digits++ < 17 && strtod(text, NULL) != v);
    buf_string(j->out, text);
}

void json_bool(struct json *j, bool v)
{
    before_value(j);
    buf_string(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
    before_value(j);
    buf_string(j->out, "null");
}

void json_raw(struct json *j, const char *value, size_t len)
{
    before_value(j);
    buf_bytes(j->out, value, len);
}

void json_key_object(struct json *j, const char *key)
{
    json_key(j, key);
    json_begin_object(j);
}

void json_key_array(struct json *j, const char *key)
{
    json_key(j, key);
    json_begin_array(j);
}

void json_key_u64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

void json_key_i64(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_i64(j, v);
}

void json_key_double(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_double(j, v);
}

void json_key_bool(struct json *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}

void json_key_string(struct json *j, const char *key, const char *s)
{
    json_key(j, key);
    json_string(j, s);
}

void json_key_string_n(struct json *j, const char *key, const char *s, size_t len)
{
    json_key(j, key);
    json_string_n(j, s, len);
}
