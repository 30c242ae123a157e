/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds-checked reading of untrusted bytes. A read that would leave the cursor's range returns 0
 * and sets `failed`, which stays set. A parser can therefore read a whole record and check once.
 */
#pragma once

#include "base/varint.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *at, *end; /* at <= end */
    bool failed;
};

static inline struct cursor cursor_of(const void *bytes, size_t len)
{
    /* In C17 even 0 may not be added to NULL. */
    return (struct cursor){bytes, bytes ? (const uint8_t *)bytes + len : NULL, false};
}

static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

/* Returns the next n bytes and advances past them, or returns NULL when fewer are left. */
static inline const uint8_t *cursor_take(struct cursor *c, size_t n)
{
    if (c->failed || cursor_left(c) < n) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += n;
    return p;
}

static inline void cursor_skip(struct cursor *c, size_t n)
{
    (void)cursor_take(c, n);
}

/*
 * Returns a cursor over the next n bytes and advances past them. When fewer are left, both cursors
 * have failed.
 */
static inline struct cursor cursor_sub(struct cursor *c, size_t n)
{
    const uint8_t *p = cursor_take(c, n);
    return p ? cursor_of(p, n) : (struct cursor){c->end, c->end, true};
}

static inline uint8_t cursor_u8(struct cursor *c)
{
    const uint8_t *p = cursor_take(c, 1);
    return p ? *p : 0;
}

#define CURSOR_READ_(name, type, convert)                \
    static inline type cursor_##name(struct cursor *c)   \
    {                                                    \
        const uint8_t *p = cursor_take(c, sizeof(type)); \
        type v = 0;                                      \
        if (p)                                           \
            memcpy(&v, p, sizeof(v));                    \
        return convert(v);                               \
    }
/* Big-endian numbers: class files, HPROF, JFR's numbers of fixed width. */
CURSOR_READ_(be16, uint16_t, be16toh)
CURSOR_READ_(be32, uint32_t, be32toh)
CURSOR_READ_(be64, uint64_t, be64toh)
/* Little-endian numbers. */
CURSOR_READ_(le16, uint16_t, le16toh)
CURSOR_READ_(le32, uint32_t, le32toh)
CURSOR_READ_(le64, uint64_t, le64toh)
#undef CURSOR_READ_

/*
 * Reads a LEB128 number as protobuf defines it, of up to ten bytes. A longer one is a failure.
 * Numbers of up to eight bytes are read without a branch for each byte.
 */
static inline uint64_t cursor_varint(struct cursor *c)
{
    uint64_t v = 0;
    if (!c->failed && cursor_left(c) >= VARINT_MAX) {
        memcpy(&v, c->at, sizeof(v));
        v = le64toh(v);
        uint64_t stop = ~v & UINT64_C(0x8080808080808080);
        v &= stop ^ (stop - 1);
        if (stop) {
            c->at += (unsigned)__builtin_ctzll(stop) / 8 + 1;
            return (uint32_t)stop ? varint_join_32((uint32_t)v) : varint_join_64(v);
        }
        v = 0;
    }
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = cursor_u8(c);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    c->failed = true;
    return 0;
}

/*
 * Reads JFR's compressed long: up to nine bytes, of which the ninth holds eight bits of the value.
 */
static inline uint64_t cursor_jfr_long(struct cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 56; shift += 7) {
        uint8_t b = cursor_u8(c);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    return v | (uint64_t)cursor_u8(c) << 56;
}
