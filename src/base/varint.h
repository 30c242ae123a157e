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
