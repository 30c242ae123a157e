/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/prefault.h"

#include "base/pages.h"

#include <errno.h>

/*
 * STEP_BYTES: how many bytes are prefaulted at a time. LEAD_BYTES: how far prefaulting is ahead of
 * filling; at most this many bytes are prefaulted in vain. ALONE_BYTES: up to this size no thread
 * is started, because the filling thread can take the faults itself.
 */
enum { STEP_BYTES = 2 << 20, LEAD_BYTES = 8 << 20, ALONE_BYTES = 64 << 20 };

static void *prefault_thread(void *arg)
{
    struct prefault *a = arg;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        if (a->prefaulted == a->wanted) {
            pthread_cond_wait(&a->changed, &a->lock);
            continue;
        }
        size_t from = a->prefaulted, n = MIN(a->wanted - from, (size_t)STEP_BYTES);
        pthread_mutex_unlock(&a->lock);
        pages_to_write(a->map + from, n);
        pthread_mutex_lock(&a->lock);
        a->prefaulted = from + n;
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/*
 * Begins with an existing mapping, which is released together with it. None of its pages is
 * requested yet.
 */
static void prefault_begin(struct prefault *a, void *map, size_t bytes)
{
    *a = (struct prefault){.map = map, .mapped = bytes};
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->threaded = bytes >= ALONE_BYTES && pthread_create(&a->thread, NULL, prefault_thread, a) == 0;
}

int prefault_init(struct prefault *a, size_t bytes)
{
    void *p = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    pages_huge(p, bytes + 1);
    prefault_begin(a, p, bytes + 1);
    return 0;
}

/* Requests the pages up to here. */
static void prefault_want(struct prefault *a, size_t bytes)
{
    pthread_mutex_lock(&a->lock);
    a->wanted = MAX(a->wanted, MIN(bytes, a->mapped));
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void prefault_filled(struct prefault *a, size_t bytes)
{
    /* only this function changes `wanted` */
    if (a->threaded && a->wanted < a->mapped && bytes + LEAD_BYTES / 2 > a->wanted)
        prefault_want(a, bytes + LEAD_BYTES);
}

void prefault_end(struct prefault *a)
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

void prefault_release(struct prefault *a)
{
    if (!a->map)
        return;
    prefault_end(a);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    munmap(a->map, a->mapped);
    *a = (struct prefault){0};
}
