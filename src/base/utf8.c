/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include "base/macro.h"

#include <string.h>

size_t utf8_decode(const char *text, size_t len, uint32_t *ret)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned c = s[0];
    size_t n = c < 0x80                ? 1
               : c >= 0xc2 && c < 0xe0 ? 2
               : c >= 0xe0 && c < 0xf0 ? 3
               : c >= 0xf0 && c < 0xf5 ? 4
                                       : 0;
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
    if (v >= 0xd800 && v < 0xdc00 && len >= 6 && s[3] == 0xed && (s[4] & 0xf0) == 0xb0 &&
        (s[5] & 0xc0) == 0x80) {
        v = 0x10000 + ((v & 0x3ff) << 10) + ((s[4] & 0x0fu) << 6 | (s[5] & 0x3fu));
        n = 6;
    } else if (v >= 0xd800 && v < 0xe000) {
        return 0;
    }
    *ret = v;
    return n;
}

size_t utf8_next(const char *s, size_t len, uint32_t *ret)
{
    size_t n = utf8_decode(s, len, ret);
    if (n)
        return n;
    const unsigned char *u = (const unsigned char *)s;
    if (len >= 3 && u[0] == 0xed && (u[1] & 0xe0) == 0xa0 && (u[2] & 0xc0) == 0x80) {
        *ret = 0xd000 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
        return 3;
    }
    *ret = UTF8_REPLACEMENT;
    return 1;
}

bool utf8_equal(const char *a, const char *b)
{
    size_t a_left = strlen(a), b_left = strlen(b);
    while (a_left && b_left) {
        uint32_t a_next, b_next;
        size_t a_n = utf8_next(a, a_left, &a_next), b_n = utf8_next(b, b_left, &b_next);
        if (a_next != b_next)
            return false;
        a += a_n;
        a_left -= a_n;
        b += b_n;
        b_left -= b_n;
    }
    return a_left == b_left;
}

void utf8_put(struct buf *b, uint32_t v)
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

bool utf8_is_control(uint32_t v)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},   {0x180e, 0x180e},
        {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f}, {0xd800, 0xdfff},
        {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };

    for (size_t i = 0; i < ARRAY_SIZE(ranges) && v >= ranges[i].first; i++)
        if (v <= ranges[i].last)
            return true;
    return false;
}

void utf8_put_escaped(struct buf *b, uint32_t v)
{
    if (v == '\n' || v == '\t' || v == '\r')
        buf_printf(b, "\\%c", v == '\n' ? 'n' : v == '\t' ? 't' : 'r');
    else if (v < 0x10000)
        buf_printf(b, "\\u%04x", v);
    else
        buf_printf(b, "\\u%04x\\u%04x", 0xd800 + ((v - 0x10000) >> 10), 0xdc00 + (v & 0x3ff));
}
