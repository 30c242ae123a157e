/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a recording that is always on (doc/format.md, "A ring"). The writer and the readers
 * share this description.
 *
 * A head of one block is followed by segments of the same size. Each segment holds one chunk, which
 * contains all constants that it uses, or nothing. The writer fills one segment after the other and
 * reuses the oldest one. An entry of the head says which chunk its segment holds. The writer clears
 * the entry before it changes the segment, and sets it when the new chunk can be read. A reader
 * that copies a segment of a ring that is being written reads the entry before and after the copy,
 * which is valid if both are the same.
 */
#pragma once

#include "base/file_format.h"

#include <stdint.h>

#define JFR_RING_VERSION  1u
#define JFR_RING_HEAD     8192u /* bytes before the first segment */
#define JFR_RING_SEGMENTS 512u  /* the maximum for which a head has room */

/* Numbers are little-endian. Only the entries (`chunk`) change. */
struct jfr_ring_head {
    char magic[7]; /* JFR_RING_MAGIC without its end */
    uint8_t version;
    uint32_t segments;
    uint32_t pid;           /* of the VM, as it sees itself */
    uint64_t segment_bytes; /* a multiple of JFR_RING_HEAD */
    uint64_t keep_ns;       /* how long events were asked to be kept */
    uint64_t created_ns;    /* since 1970 */
    uint64_t unused[3];
    uint64_t chunk[JFR_RING_SEGMENTS]; /* the number of the chunk, from 1; 0 means none */
};

_Static_assert(sizeof(struct jfr_ring_head) <= JFR_RING_HEAD, "the head fits into its block");

#define JFR_RING_ADVICE                                                                     \
    "it is the ring of a recording that is always on: jvmscope dump --last 5m -o FILE.jfr " \
    "takes its last 5 minutes out"
