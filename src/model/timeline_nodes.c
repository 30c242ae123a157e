/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline_nodes.h"

#include "base/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { STEP_BYTES = 64 << 20, MEET_BYTES = 4 << 20 };

static void *meet(void *arg)
{
    struct tl_nodes_file *f = arg;
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        if (f->met == f->len) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        size_t from = f->met, n = MIN(f->len - from, (size_t)MEET_BYTES);
        pthread_mutex_unlock(&f->lock);
        pages_to_write(f->map + from, n);
        pthread_mutex_lock(&f->lock);
        f->met = from + n;
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* Really allocated: a store to a mapping cannot be told that the disk is full. */
static int allocate(struct tl_nodes_file *f)
{
    struct rlimit limit;
    size_t to = f->len + STEP_BYTES;
    if (to > f->mapped || (getrlimit(RLIMIT_FSIZE, &limit) == 0 && to > limit.rlim_cur))
        return -EFBIG; /* trying would raise SIGXFSZ */
    if (fallocate(f->file.fd, 0, (off_t)f->len, STEP_BYTES) < 0)
        return -errno;
    pthread_mutex_lock(&f->lock);
    f->len = to;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

int tl_nodes_file_new(struct tl_nodes_file **ret, const char *path)
{
    struct tl_nodes_file *f = calloc(1, sizeof(*f));
    if (!f)
        return -ENOMEM;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->file = OUT_FILE;
    /* Addresses for all that there can be: the file grows into them. */
    f->mapped = ((size_t)TL_NONE + 1) * sizeof(struct tl_node) + STEP_BYTES;
    int r = out_file_open(&f->file, path);
    void *p = r == 0 ? mmap(NULL, f->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, f->file.fd, 0) : NULL;
    if (p == MAP_FAILED)
        r = -errno;
    else
        f->map = p;
    if (r == 0)
        r = allocate(f);
    if (r == 0)
        f->threaded = pthread_create(&f->thread, NULL, meet, f) == 0;
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
    (void)!allocate(f); /* ahead; else it is told the next time */
    *nodes = (struct tl_node *)(void *)(f->map + timeline_nodes_offset());
    *cap = (f->given - timeline_nodes_offset()) / sizeof(**nodes);
    return 0;
}

void tl_nodes_file_done(struct tl_nodes_file *f)
{
    if (!f->threaded)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    (void)pthread_join(f->thread, NULL);
    f->threaded = false;
}

void tl_nodes_file_free(struct tl_nodes_file *f)
{
    if (!f)
        return;
    tl_nodes_file_done(f);
    if (f->map)
        munmap(f->map, f->mapped);
    out_file_release(&f->file);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    free(f);
}
