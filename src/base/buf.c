/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include "base/varint.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

uint8_t *buf_add(struct buf *b, size_t n)
{
    if (b->failed)
        return NULL;
    if (n > b->limit || b->len > b->limit - n) {
        b->failed = -E2BIG;
        return NULL;
    }
    if (b->cap - b->len < n + 1) {
        size_t cap = MAX(b->cap + b->cap / 2, b->len + n + 1);
        uint8_t *p = realloc(b->data, MAX(cap, 64));
        if (!p) {
            b->failed = -ENOMEM;
            return NULL;
        }
        b->data = p;
        b->cap = MAX(cap, 64);
    }
    uint8_t *at = b->data + b->len;
    b->len += n;
    return at;
}

void buf_bytes(struct buf *b, const void *bytes, size_t n)
{
    uint8_t *p = buf_add(b, n);
    if (p && n)
        memcpy(p, bytes, n);
}

void buf_string(struct buf *b, const char *s)
{
    buf_bytes(b, s, strlen(s));
}

void buf_vprintf(struct buf *b, const char *format, va_list args)
{
    char small[256];
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(small, sizeof(small), format, args);
    if (n < 0) {
        b->failed = b->failed ? b->failed : -EINVAL;
    } else if ((size_t)n < sizeof(small)) {
        buf_bytes(b, small, (size_t)n);
    } else {
        /* buf_add keeps one byte free after the contents, which receives vsnprintf's NUL. */
        uint8_t *p = buf_add(b, (size_t)n);
        if (p)
            vsnprintf((char *)p, (size_t)n + 1, format, again);
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(b, format, args);
    va_end(args);
}

void buf_u8(struct buf *b, uint8_t v)
{
    buf_bytes(b, &v, 1);
}

void buf_be16(struct buf *b, uint16_t v)
{
    v = htobe16(v);
    buf_bytes(b, &v, sizeof(v));
}

void buf_be32(struct buf *b, uint32_t v)
{
    v = htobe32(v);
    buf_bytes(b, &v, sizeof(v));
}

void buf_be64(struct buf *b, uint64_t v)
{
    v = htobe64(v);
    buf_bytes(b, &v, sizeof(v));
}

void buf_varint(struct buf *b, uint64_t v)
{
    uint8_t bytes[VARINT_MAX];
    buf_bytes(b, bytes, (size_t)(varint_put(bytes, v) - bytes));
}

void buf_jfr_long(struct buf *b, uint64_t v)
{
    uint8_t bytes[9];
    size_t n = 0;
    for (; v >= 0x80 && n < 8; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    buf_bytes(b, bytes, n);
}

const char *buf_str(const struct buf *b)
{
    if (!b->data || b->failed)
        return "";
    b->data[b->len] = 0;
    return (const char *)b->data;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = 0;
}

void buf_release(struct buf *b)
{
    free(b->data);
    *b = BUF(b->limit);
}
