/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a large timeline while it is being built. They lie in the mapped file that will be
 * its index, so that they are in memory only once (ahead.h prefaults its pages).
 */
#pragma once

#include "base/file.h"
#include "model/ahead.h"
#include "model/timeline.h"

/* A recording with fewer nodes is read again faster than an index pays for itself. */
enum { TL_INDEX_NODES = 2000000 };

struct tl_nodes_file {
    struct out_file file;
    struct ahead pages; /* the file, mapped */
    size_t given;       /* bytes that nodes may use */
    size_t len;         /* length of the file; what lies beyond `given` is being prefaulted */
};

/* Returns the number of bytes of an index before its nodes (timeline_index.c). */
size_t timeline_nodes_offset(void);
/*
 * Creates an index file that becomes visible when it is committed. Returns 0 or a negative errno.
 */
int tl_nodes_file_new(struct tl_nodes_file **ret, const char *path) must_check;
/*
 * Makes room for more nodes than *cap. On -ENOSPC and the like the file cannot grow; the nodes in
 * it remain.
 */
int tl_nodes_file_grow(struct tl_nodes_file *f, struct tl_node **nodes, size_t *cap) must_check;
/* Reports that no more room is needed. */
void tl_nodes_file_done(struct tl_nodes_file *f);
void tl_nodes_file_free(struct tl_nodes_file *f);
DEFINE_CLEANUP(struct tl_nodes_file *, tl_nodes_file_free)
