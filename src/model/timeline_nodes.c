/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { STEP_BYTES = 64 << 20 };

/*
 * The blocks are really allocated, because a store to a mapping cannot report that the disk is
 * full.
 */
static int allocate(struct tl_nodes_file *f)
{
    struct rlimit limit;
    size_t to = f->len + STEP_BYTES;
    if (to > f->pages.mapped || (getrlimit(RLIMIT_FSIZE, &limit) == 0 && to > limit.rlim_cur))
        return -EFBIG; /* trying would raise SIGXFSZ */
    if (fallocate(f->file.fd, 0, (off_t)f->len, STEP_BYTES) < 0)
        return -errno;
    f->len = to;
    ahead_want(&f->pages, to);
    return 0;
}

int tl_nodes_file_new(struct tl_nodes_file **ret, const char *path)
{
    struct tl_nodes_file *f = calloc(1, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->file = OUT_FILE;
    /* Addresses for the largest possible number of nodes, into which the file grows. */
    size_t most = ((size_t)TL_NONE + 1) * sizeof(struct tl_node) + STEP_BYTES;
    int r = out_file_open_private(&f->file, path);
    void *p = r == 0 ? mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED, f->file.fd, 0) : NULL;
    if (p == MAP_FAILED)
        r = -errno;
    if (r == 0)
        ahead_begin(&f->pages, p, most);
    if (r == 0)
        r = allocate(f);
    if (r < 0)
        tl_nodes_file_free(f);
    else
        *ret = f;
    return r;
}

int tl_nodes_file_grow(struct tl_nodes_file *f, struct tl_node **nodes, size_t *cap)
{
    if (f->given == f->len) {
        int r = allocate(f);
        if (r < 0)
            return r;
    }
    f->given = f->len;
    (void)!allocate(f); /* allocates in advance; a failure is reported the next time */
    *nodes = (struct tl_node *)(void *)(f->pages.map + timeline_nodes_offset());
    *cap = (f->given - timeline_nodes_offset()) / sizeof(**nodes);
    return 0;
}

void tl_nodes_file_done(struct tl_nodes_file *f)
{
    ahead_end(&f->pages);
}

void tl_nodes_file_free(struct tl_nodes_file *f)
{
    if (!f)
        return;
    ahead_release(&f->pages);
    out_file_release(&f->file);
    free(f);
}
