/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Mixes all bits of a 64-bit value (the finalizer of splitmix64, Steele et al., OOPSLA 2014). */
static inline uint64_t hash_u64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/*
 * Hashes any bytes. Safe in a signal handler. Do not use it where an attacker chooses the keys and
 * collisions would cost time.
 */
static inline uint64_t hash_bytes(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = hash_u64(len + UINT64_C(0x9e3779b97f4a7c15));
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = hash_u64(h ^ w);
    }
    uint64_t rest = 0;
    if (len)
        memcpy(&rest, p, len);
    return hash_u64(h ^ rest);
}
