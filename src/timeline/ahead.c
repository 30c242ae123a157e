/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/ahead.h"

#include "base/pages.h"

#include <errno.h>

/*
 * How many bytes are prefaulted in one go; how far prefaulting stays ahead of what is filled; and
 * the size up to which no thread is started, because the filling thread can take the faults itself.
 */
enum { MEET_BYTES = 4 << 20, AHEAD_BYTES = 64 << 20, ALONE_BYTES = 64 << 20 };

static void *meet(void *arg)
{
    struct ahead *a = arg;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        if (a->met == a->wanted) {
            pthread_cond_wait(&a->changed, &a->lock);
            continue;
        }
        size_t from = a->met, n = MIN(a->wanted - from, (size_t)MEET_BYTES);
        pthread_mutex_unlock(&a->lock);
        pages_to_write(a->map + from, n);
        pthread_mutex_lock(&a->lock);
        a->met = from + n;
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

void ahead_begin(struct ahead *a, void *map, size_t bytes)
{
    *a = (struct ahead){.map = map, .mapped = bytes};
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->threaded = bytes >= ALONE_BYTES && pthread_create(&a->thread, NULL, meet, a) == 0;
}

int ahead_init(struct ahead *a, size_t bytes)
{
    void *p = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    huge_pages(p, bytes + 1);
    ahead_begin(a, p, bytes + 1);
    return 0;
}

void ahead_want(struct ahead *a, size_t bytes)
{
    pthread_mutex_lock(&a->lock);
    a->wanted = MAX(a->wanted, MIN(bytes, a->mapped));
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void ahead_filled(struct ahead *a, size_t bytes)
{
    /* only this function changes `wanted` */
    if (a->threaded && a->wanted < a->mapped && bytes + AHEAD_BYTES / 2 > a->wanted)
        ahead_want(a, bytes + AHEAD_BYTES);
}

void ahead_end(struct ahead *a)
{
    if (!a->threaded)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    (void)pthread_join(a->thread, NULL);
    a->threaded = false;
}

void ahead_release(struct ahead *a)
{
    if (!a->map)
        return;
    ahead_end(a);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    munmap(a->map, a->mapped);
    *a = (struct ahead){0};
}
