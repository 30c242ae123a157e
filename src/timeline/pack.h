/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs nodes into blocks (node.h). The bits of many nodes go into the file that will be the
 * timeline's index, whose pages the system may drop and read again, so that they take no memory of
 * the process; where there is no such file they stay in memory.
 */
#pragma once

#include "base/file.h"
#include "base/vec.h"
#include "timeline/timeline.h"

/* With fewer nodes no index is written, because reading the recording again is fast enough. */
enum { TL_INDEX_NODES = 2000000 };

/* A file that is not visible until it is committed, and is mapped while it grows. */
struct tl_packed_file {
    struct out_file file;
    const uint8_t *map;
    size_t mapped;
};

struct tl_packer {
    struct tl_packed_file *file; /* NULL: all bytes are in memory */
    char *path;                  /* of the file that may be created; NULL: none */
    uint64_t written;            /* bytes in the file, which precede those in memory */
    VEC(uint8_t) bytes;
    VEC(struct tl_block) blocks;
    uint16_t *shapes;   /* TL_SHAPES */
    uint16_t *shape_of; /* by shape: its number + 1 */
    uint16_t n_shapes;
    size_t n_nodes;
};

/* Returns the number of bytes of an index before its packed nodes (index.c). */
size_t timeline_packed_offset(void);

/* Returns 0 or -ENOMEM; tl_packer_release is needed in either case. */
int tl_packer_init(struct tl_packer *p) must_check;
void tl_packer_release(struct tl_packer *p);
/*
 * Packs a block of TL_BLOCK_NODES nodes, or of fewer for the last one, as the next block or in
 * place of an earlier one. Returns 0 or -ENOMEM.
 */
int tl_packer_put(struct tl_packer *p, size_t block, const struct tl_node *nodes,
                  size_t n) must_check;
/* Returns a node that was packed, given its number. */
struct tl_node tl_packer_node(const struct tl_packer *p, uint32_t node);
/*
 * Hands the packed nodes over to a timeline, which must have no nodes yet. Returns 0 or -ENOMEM.
 */
int tl_packer_finish(struct tl_packer *p, struct timeline *t) must_check;
void tl_packed_file_free(struct tl_packed_file *f);
DEFINE_CLEANUP(struct tl_packed_file *, tl_packed_file_free)
