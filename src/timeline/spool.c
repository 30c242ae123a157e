/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/spool.h"

#include "timeline/sort.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The size of buckets, which fit into a second-level cache; and the number of sorted buckets that
 * may wait to be taken.
 */
enum {
    BLOCK_EVENTS = 255,
    SLAB_BLOCKS = 256,
    BUCKET_EVENTS = 1 << 14,
    BUCKETS_MAX = 1 << 14,
    ALONE_BUCKETS = 16,
    READY_BUCKETS = 32
};

struct spool_block {
    struct spool_block *next;
    size_t n;
    uint64_t spare[2]; /* makes the block 8 KiB large */
    struct tl_event events[BLOCK_EVENTS];
};

struct spool_slab {
    struct spool_block blocks[SLAB_BLOCKS];
};

int tl_spool_init(struct tl_spool *s, uint64_t from, uint64_t to, size_t events)
{
    size_t n = MIN(events / BUCKET_EVENTS + 1, (size_t)BUCKETS_MAX);
    *s = (struct tl_spool){
        .from = from, .span = (to > from ? to - from : 0) / n + 1, .recent_from = from};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    return vec_extend(&s->buckets, n);
}

void tl_spool_stop(struct tl_spool *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void tl_spool_release(struct tl_spool *s)
{
    if (s->threaded) {
        tl_spool_stop(s);
        pthread_join(s->thread, NULL);
    }
    for (size_t i = 0; i < s->slabs.len; i++)
        munmap(s->slabs.data[i], sizeof(struct spool_slab));
    vec_release(&s->slabs);
    vec_release(&s->buckets);
    vec_release(&s->blocks);
    vec_release(&s->keys);
    vec_release(&s->room);
    for (size_t i = 0; i < ARRAY_SIZE(s->sorted); i++)
        vec_release(&s->sorted[i].events);
    if (s->span) {
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
    }
}

/* Returns a block that was used before, or new memory. */
static struct spool_block *block_new(struct tl_spool *s)
{
    struct spool_block *b = s->free;
    if (b) {
        s->free = b->next;
        return b;
    }
    if (s->slabs.len == 0 || s->in_last == SLAB_BLOCKS) {
        void *p = mmap(NULL, sizeof(struct spool_slab), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return NULL;
        if (vec_push(&s->slabs, p) < 0) {
            munmap(p, sizeof(struct spool_slab));
            return NULL;
        }
        s->in_last = 0;
    }
    return &s->slabs.data[s->slabs.len - 1]->blocks[s->in_last++];
}

static int add_block(struct tl_spool *s, struct spool_bucket *to)
{
    pthread_mutex_lock(&s->lock);
    struct spool_block *b = block_new(s);
    pthread_mutex_unlock(&s->lock);
    if (!b)
        return -ENOMEM;
    b->next = NULL;
    b->n = 0;
    if (to->last)
        to->last->next = b;
    else
        to->first = b;
    to->last = b;
    return 0;
}

/*
 * Returns the number of a time's bucket. Most events belong to the same bucket as the previous one,
 * for which no division is needed.
 */
static size_t bucket_of(struct tl_spool *s, uint64_t time)
{
    if (time - s->recent_from >= s->span) {
        uint64_t number = time > s->from ? (time - s->from) / s->span : 0;
        s->recent = MIN(number, (uint64_t)s->buckets.len - 1);
        s->recent_from = s->from + s->recent * s->span;
    }
    return s->recent;
}

struct tl_event *tl_spool_add(struct tl_spool *s, uint64_t time)
{
    size_t number = bucket_of(s, time);
    struct spool_bucket *b = &s->buckets.data[MIN(MAX(number, s->ready), s->buckets.len - 1)];
    if ((!b->last || b->last->n == BLOCK_EVENTS) && add_block(s, b) < 0)
        return NULL;
    return &b->last->events[b->last->n++];
}

static void set_ready(struct tl_spool *s, size_t ready)
{
    if (ready <= s->ready)
        return;
    pthread_mutex_lock(&s->lock);
    while (!s->stop && s->ready > s->at + READY_BUCKETS && ready < s->buckets.len)
        pthread_cond_wait(&s->changed, &s->lock);
    s->ready = ready;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void tl_spool_until(struct tl_spool *s, uint64_t time)
{
    set_ready(s, bucket_of(s, time));
}

void tl_spool_close(struct tl_spool *s)
{
    set_ready(s, s->buckets.len);
}

/*
 * Waits for the next non-empty bucket, in order. The caller holds the lock. Returns false when
 * there are no more.
 */
static bool bucket_wait(struct tl_spool *s, struct spool_bucket *ret)
{
    while (!s->stop && s->at < s->buckets.len) {
        if (s->at == s->ready) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        *ret = s->buckets.data[s->at++];
        pthread_cond_broadcast(&s->changed);
        if (ret->first)
            return true;
    }
    return false;
}

/*
 * Keeps emptied blocks for reuse. If nothing more will be added, frees them. The caller holds the
 * lock.
 */
static void blocks_free(struct tl_spool *s, struct spool_bucket *b)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (s->ready == s->buckets.len) {
        for (struct spool_block *k = b->first, *next; k && sizeof(*k) % page == 0; k = next) {
            next = k->next;
            (void)!madvise(k, sizeof(*k), MADV_DONTNEED);
        }
        return;
    }
    b->last->next = s->free;
    s->free = b->first;
}

/*
 * Collects the blocks of a bucket, the number of their events, and their least and greatest time.
 */
static int survey(struct tl_spool *s, const struct spool_bucket *b, size_t *ret_n,
                  uint64_t *ret_low, uint64_t *ret_high)
{
    size_t n = 0;
    uint64_t low = UINT64_MAX, high = 0;
    vec_clear(&s->blocks);
    for (struct spool_block *k = b->first; k; n += k->n, k = k->next) {
        if (vec_push(&s->blocks, k) < 0)
            return -ENOMEM;
        for (size_t i = 0; i < k->n; i++) {
            low = MIN(low, k->events[i].time);
            high = MAX(high, k->events[i].time);
        }
    }
    *ret_n = n;
    *ret_low = low;
    *ret_high = high;
    return 0;
}

static void copy_all(const struct tl_spool *s, struct tl_event *to)
{
    for (size_t i = 0; i < s->blocks.len; i++) {
        const struct spool_block *k = s->blocks.data[i];
        memcpy(to, k->events, k->n * sizeof(*to));
        to += k->n;
    }
}

/*
 * Copies a bucket's events in sorted order. The order is computed on keys or, when the times are
 * too far apart for keys, on the events.
 */
static int copy_sorted(struct tl_spool *s, const struct spool_bucket *b, struct spool_sorted *to)
{
    size_t n, at = 0;
    uint64_t low, high;
    int r = survey(s, b, &n, &low, &high);
    if (r == 0)
        r = vec_reserve(&to->events, n);
    if (r == 0)
        r = vec_reserve(&s->keys, n);
    if (r == 0)
        r = vec_reserve(&s->room, n);
    if (r < 0)
        return r;
    to->events.len = n;
    if (high - low > UINT32_MAX || n > UINT32_MAX) {
        copy_all(s, to->events.data);
        return tl_events_sort(to->events.data, n);
    }
    for (size_t i = 0; i < s->blocks.len; i++)
        for (size_t k = 0; k < s->blocks.data[i]->n; k++)
            s->keys.data[at++] = (s->blocks.data[i]->events[k].time - low) << TL_KEY_NUMBER_BITS |
                                 (i * BLOCK_EVENTS + k);
    tl_keys_sort(s->keys.data, s->room.data, n, (uint32_t)(high - low));
    for (size_t i = 0; i < n; i++) {
        uint32_t number = (uint32_t)s->keys.data[i];
        to->events.data[i] = s->blocks.data[number / BLOCK_EVENTS]->events[number % BLOCK_EVENTS];
    }
    return 0;
}

/* Sorts the next bucket into a free place. */
static void make(struct tl_spool *s)
{
    struct spool_sorted *to = &s->sorted[s->made % ARRAY_SIZE(s->sorted)];
    struct spool_bucket b;
    vec_clear(&to->events);
    to->error = 0;
    pthread_mutex_lock(&s->lock);
    bool any = bucket_wait(s, &b);
    pthread_mutex_unlock(&s->lock);
    if (!any)
        return;
    to->error = copy_sorted(s, &b, to);
    pthread_mutex_lock(&s->lock);
    blocks_free(s, &b);
    pthread_mutex_unlock(&s->lock);
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
    struct spool_sorted *one = &s->sorted[s->given % ARRAY_SIZE(s->sorted)];
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
