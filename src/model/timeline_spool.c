/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline_spool.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK_EVENTS = 256, SLAB_BLOCKS = 256, BUCKET_EVENTS = 1 << 16, BUCKETS_MAX = 4096, ALONE_BUCKETS = 4 };

struct spool_slab {
    struct tl_event blocks[SLAB_BLOCKS][BLOCK_EVENTS];
};

int tl_spool_init(struct tl_spool *s, uint64_t from, uint64_t to, size_t events)
{
    size_t n = MIN(events / BUCKET_EVENTS + 1, (size_t)BUCKETS_MAX);
    *s = (struct tl_spool){.from = from, .span = (to > from ? to - from : 0) / n + 1};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    return vec_extend(&s->buckets, n);
}

void tl_spool_release(struct tl_spool *s)
{
    if (s->threaded) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    for (size_t i = 0; i < s->slabs.len; i++)
        munmap(s->slabs.data[i], sizeof(struct spool_slab));
    vec_release(&s->slabs);
    vec_release(&s->buckets);
    vec_release(&s->next);
    for (size_t i = 0; i < ARRAY_SIZE(s->sorted); i++)
        vec_release(&s->sorted[i].events);
    if (s->span) {
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
    }
}

static struct tl_event *block(const struct tl_spool *s, uint32_t number)
{
    return s->slabs.data[number / SLAB_BLOCKS]->blocks[number % SLAB_BLOCKS];
}

static int add_block(struct tl_spool *s, struct spool_bucket *b)
{
    size_t number = s->next.len;
    if (number / SLAB_BLOCKS == s->slabs.len) {
        void *p = mmap(NULL, sizeof(struct spool_slab), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return -ENOMEM;
        if (vec_push(&s->slabs, p) < 0) {
            munmap(p, sizeof(struct spool_slab));
            return -ENOMEM;
        }
    }
    int r = vec_push(&s->next, 0);
    if (r < 0)
        return r;
    if (b->last)
        s->next.data[b->last - 1] = (uint32_t)number + 1;
    else
        b->first = (uint32_t)number + 1;
    b->last = (uint32_t)number + 1;
    b->in_last = 0;
    return 0;
}

struct tl_event *tl_spool_add(struct tl_spool *s, uint64_t time)
{
    uint64_t number = time > s->from ? (time - s->from) / s->span : 0;
    struct spool_bucket *b = &s->buckets.data[MIN(number, (uint64_t)s->buckets.len - 1)];
    if ((!b->last || b->in_last == BLOCK_EVENTS) && add_block(s, b) < 0)
        return NULL;
    struct tl_event *e = &block(s, b->last - 1)[b->in_last++];
    *e = (struct tl_event){.time = time};
    return e;
}

/* The next bucket that holds anything, in order: into a place that is free. */
static void make(struct tl_spool *s)
{
    __typeof__(&s->sorted[0]) to = &s->sorted[s->made % ARRAY_SIZE(s->sorted)];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    vec_clear(&to->events);
    to->error = 0;
    while (s->at < s->buckets.len && !s->buckets.data[s->at].first)
        s->at++;
    if (s->at == s->buckets.len)
        return;
    const struct spool_bucket *b = &s->buckets.data[s->at++];
    for (uint32_t k = b->first; k; k = s->next.data[k - 1]) {
        struct tl_event *from = block(s, k - 1);
        size_t n = k == b->last ? b->in_last : BLOCK_EVENTS, at = to->events.len;
        to->error = vec_extend(&to->events, n);
        if (to->error)
            return;
        memcpy(to->events.data + at, from, n * sizeof(*from));
        if (BLOCK_EVENTS * sizeof(*from) % page == 0)
            (void)!madvise(from, BLOCK_EVENTS * sizeof(*from), MADV_DONTNEED);
    }
    to->error = tl_events_sort(to->events.data, to->events.len);
}

static void *make_all(void *arg)
{
    struct tl_spool *s = arg;
    bool last = false;
    pthread_mutex_lock(&s->lock);
    while (!last) {
        while (!s->stop && s->made - s->given >= ARRAY_SIZE(s->sorted) - 1)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->stop)
            break;
        pthread_mutex_unlock(&s->lock);
        make(s);
        pthread_mutex_lock(&s->lock);
        last = s->sorted[s->made % ARRAY_SIZE(s->sorted)].events.len == 0;
        s->made++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int tl_spool_next(struct tl_spool *s, struct tl_event **ret, size_t *ret_n)
{
    if (s->given == 0 && s->buckets.len >= ALONE_BUCKETS)
        s->threaded = pthread_create(&s->thread, NULL, make_all, s) == 0;
    if (!s->threaded) {
        make(s);
        s->made++;
    }
    __typeof__(&s->sorted[0]) one = &s->sorted[s->given % ARRAY_SIZE(s->sorted)];
    pthread_mutex_lock(&s->lock);
    while (s->made == s->given)
        pthread_cond_wait(&s->changed, &s->lock);
    s->given++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    *ret = one->events.data;
    *ret_n = one->events.len;
    return one->error ? one->error : *ret_n > 0;
}
