/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

enum { VARINT_MAX = 10 }; /* bytes of the longest number */

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

/* The same for eight bytes. */
static inline uint64_t varint_join_64(uint64_t bytes)
{
    bytes = (bytes & UINT64_C(0x007f007f007f007f)) | (bytes & UINT64_C(0x7f007f007f007f00)) >> 1;
    bytes = (bytes & UINT64_C(0x00003fff00003fff)) | (bytes & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (bytes & UINT64_C(0x0fffffff)) | (bytes & UINT64_C(0x0fffffff00000000)) >> 4;
}
