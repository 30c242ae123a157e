/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/macro.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* bytes of the longest number, in general and in a file of JFR */
enum { VARINT_MAX = 10, VARINT_JFR_MAX = 9 };

/* Writes a number in LEB128 and returns the address after it. */
static inline uint8_t *varint_put(uint8_t *to, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *to++ = (uint8_t)(v | 0x80);
    *to++ = (uint8_t)v;
    return to;
}

/* Joins the low seven bits of each of four bytes, of which the first has the lowest. */
static inline uint32_t varint_join_32(uint32_t bytes)
{
    bytes = (bytes & 0x007f007f) | (bytes & 0x7f007f00) >> 1;
    return (bytes & 0x3fff) | (bytes & 0x3fff0000) >> 2;
}

/* Joins the low seven bits of each of eight bytes, of which the first has the lowest. */
static inline uint64_t varint_join_64(uint64_t bytes)
{
    bytes = (bytes & UINT64_C(0x007f007f007f007f)) | (bytes & UINT64_C(0x7f007f007f007f00)) >> 1;
    bytes = (bytes & UINT64_C(0x00003fff00003fff)) | (bytes & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (bytes & UINT64_C(0x0fffffff)) | (bytes & UINT64_C(0x0fffffff00000000)) >> 4;
}

/*
 * Reads JFR's compressed long at *at, like cursor_jfr_long, and advances *at. VARINT_JFR_MAX bytes
 * must be readable.
 */
static inline uint64_t varint_jfr(const uint8_t **at)
{
    uint64_t x;
    memcpy(&x, *at, sizeof(x));
    x = le64toh(x);
    if (!(x & 0x80)) {
        ++*at;
        return x & 0x7f;
    }
    uint64_t stop = ~x & UINT64_C(0x8080808080808080), high = 0;
    if ((uint32_t)stop) { /* at most four bytes */
        uint32_t low = (uint32_t)x & (uint32_t)(stop ^ (stop - 1));
        *at += (unsigned)__builtin_ctz((uint32_t)stop) / 8 + 1;
        return varint_join_32(low);
    }
    if (likely(stop)) {
        *at += (unsigned)__builtin_ctzll(stop) / 8 + 1;
        x &= stop ^ (stop - 1);
    } else {
        high = (uint64_t)(*at)[8] << 56;
        *at += VARINT_JFR_MAX;
    }
    return varint_join_64(x) | high;
}
