/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a large timeline, while they are made: in the file that will be its index, mapped,
 * so that they lie in memory once (ahead.h meets its pages).
 */
#pragma once

#include "base/file.h"
#include "model/ahead.h"
#include "model/timeline.h"

/* Recordings with fewer nodes are read again faster than an index is worth. */
enum { TL_INDEX_NODES = 2000000 };

struct tl_nodes_file {
    struct out_file file;
    struct ahead pages; /* the file, mapped */
    size_t given;       /* bytes that nodes may lie in */
    size_t len;         /* bytes of the file: what lies behind those given is being met */
};

/* Bytes of an index before its nodes (timeline_index.c). */
size_t timeline_nodes_offset(void);
/* An index file that is not there before it is committed. 0 or negative errno. */
int tl_nodes_file_new(struct tl_nodes_file **ret, const char *path) must_check;
/*
 * Room for more nodes than *cap. -ENOSPC and so on: there is no more in the file, those that are
 * there stay.
 */
int tl_nodes_file_grow(struct tl_nodes_file *f, struct tl_node **nodes, size_t *cap) must_check;
/* No more room is wanted. */
void tl_nodes_file_done(struct tl_nodes_file *f);
void tl_nodes_file_free(struct tl_nodes_file *f);
DEFINE_CLEANUP(struct tl_nodes_file *, tl_nodes_file_free)
