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
    HEAD_HZ = 56,
    HEAD_FEATURES = 67
};

/* Bits of the features. */
enum {
    JFR_COMPRESSED = 1,   /* integers are compressed */
    JFR_FINAL = 2,        /* the recording ended with this chunk */
    JFR_PART_OF_RING = 4, /* the first chunk of a part that was copied out of a ring */
    /*
     * part of a span of time that was taken out of a recording; events that began in the span may
     * have ended after it
     */
    JFR_PART_OF_TIME = 8,
    JFR_PART_OF_SELECTION = 16, /* events of only some threads or classes of a recording */
    JFR_PART_OF_CLASSES = 32    /* of only those with a class in their stacks */
};

static inline uint64_t chunk_big_endian(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return be64toh(v);
}

static inline void chunk_put_big_endian(uint8_t *at, uint64_t v)
{
    v = htobe64(v);
    memcpy(at, &v, sizeof(v));
}
