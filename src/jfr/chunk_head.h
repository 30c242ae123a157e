/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a chunk, whose numbers are big-endian. */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define JFR_CHUNK_HEAD 68u

/* Offsets of its fields from the chunk's start. */
enum {
    HEAD_SIZE = 8,
    HEAD_CONSTANTS = 16,
    HEAD_METADATA = 24,
    HEAD_START = 32,
    HEAD_DURATION = 40,
    HEAD_TICKS = 48,
    HEAD_HZ = 56
};

static inline uint64_t big_endian(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return be64toh(v);
}

static inline void put_big_endian(uint8_t *at, uint64_t v)
{
    v = htobe64(v);
    memcpy(at, &v, sizeof(v));
}
