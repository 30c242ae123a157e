/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
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

void json_object(struct json *j)
{
    open_with(j, '{');
}

void json_object_end(struct json *j)
{
    close_with(j, '}');
}

void json_array(struct json *j)
{
    open_with(j, '[');
}

void json_array_end(struct json *j)
{
    close_with(j, ']');
}

/*
 * Decodes one code point at s[0..len). Returns its bytes, 0 when there is none. A surrogate pair in six bytes (modified
 * UTF-8) is one code point, C0 80 is NUL, a lone surrogate is none.
 */
static size_t decode(const unsigned char *s, size_t len, uint32_t *ret)
{
    unsigned c = s[0];
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (c == 0xc0 && len >= 2 && s[1] == 0x80) {
        *ret = 0;
        return 2;
    }
    if (n == 0 || n > len)
        return 0;
    uint32_t v = n == 1 ? c : c & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (s[i] & 0x3f);
    }
    if ((n == 3 && v < 0x800) || (n == 4 && (v < 0x10000 || v > 0x10ffff)))
        return 0;
    if (v >= 0xd800 && v < 0xdc00 && len >= 6 && s[3] == 0xed && (s[4] & 0xf0) == 0xb0 && (s[5] & 0xc0) == 0x80) {
        v = 0x10000 + ((v & 0x3ff) << 10) + ((s[4] & 0x0fu) << 6 | (s[5] & 0x3fu));
        n = 6;
    } else if (v >= 0xd800 && v < 0xe000) {
        return 0;
    }
    *ret = v;
    return n;
}

static void put_code_point(struct buf *b, uint32_t v)
{
    uint8_t bytes[4];
    size_t n = 0;
    if (v < 0x80) {
        bytes[n++] = (uint8_t)v;
    } else if (v < 0x800) {
        bytes[n++] = (uint8_t)(0xc0 | v >> 6);
    } else if (v < 0x10000) {
        bytes[n++] = (uint8_t)(0xe0 | v >> 12);
        bytes[n++] = (uint8_t)(0x80 | (v >> 6 & 0x3f));
    } else {
        bytes[n++] = (uint8_t)(0xf0 | v >> 18);
        bytes[n++] = (uint8_t)(0x80 | (v >> 12 & 0x3f));
        bytes[n++] = (uint8_t)(0x80 | (v >> 6 & 0x3f));
    }
    if (v >= 0x80)
        bytes[n++] = (uint8_t)(0x80 | (v & 0x3f));
    buf_bytes(b, bytes, n);
}

void buf_utf8(struct buf *b, const char *s, size_t len)
{
    for (size_t n; len; s += n, len -= n) {
        uint32_t v;
        n = decode((const unsigned char *)s, len, &v);
        put_code_point(b, n ? v : 0xfffd);
        n = n ? n : 1;
    }
}

void json_string_n(struct json *j, const char *s, size_t len)
{
    before_value(j);
    buf_u8(j->out, '"');
    for (size_t n; len; s += n, len -= n) {
        uint32_t v;
        n = decode((const unsigned char *)s, len, &v);
        if (n == 0) {
            n = 1;
            v = 0xfffd;
        }
        if (v == '"' || v == '\\')
            buf_printf(j->out, "\\%c", (int)v);
        else if (v == '\n')
            buf_string(j->out, "\\n");
        else if (v < 0x20 || v == 0x7f || v == 0x2028 || v == 0x2029)
            buf_printf(j->out, "\\u%04x", v);
        else
            put_code_point(j->out, v);
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
    before_value(j);
    buf_printf(j->out, "%llu", (unsigned long long)v);
}

void json_i64(struct json *j, int64_t v)
{
    before_value(j);
    buf_printf(j->out, "%lld", (long long)v);
}

void json_double(struct json *j, double v)
{
    before_value(j);
    if (isfinite(v))
        buf_printf(j->out, "%.17g", v);
    else
        buf_string(j->out, "null");
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

void json_key_u64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

void json_key_string(struct json *j, const char *key, const char *s)
{
    json_key(j, key);
    json_string(j, s);
}
