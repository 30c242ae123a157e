/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline_spool.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK_EVENTS = 256, SLAB_BLOCKS = 256, BUCKET_EVENTS = 1 << 16, BUCKETS_MAX = 4096 };

struct spool_slab {
    struct tl_event blocks[SLAB_BLOCKS][BLOCK_EVENTS];
};

int tl_spool_init(struct tl_spool *s, uint64_t from, uint64_t to, size_t events)
{
    size_t n = MIN(events / BUCKET_EVENTS + 1, (size_t)BUCKETS_MAX);
    *s = (struct tl_spool){.from = from, .span = (to > from ? to - from : 0) / n + 1};
    return vec_extend(&s->buckets, n);
}

void tl_spool_release(struct tl_spool *s)
{
    for (size_t i = 0; i < s->slabs.len; i++)
        munmap(s->slabs.data[i], sizeof(struct spool_slab));
    vec_release(&s->slabs);
    vec_release(&s->buckets);
    vec_release(&s->next);
    vec_release(&s->given);
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

int tl_spool_next(struct tl_spool *s, struct tl_event **ret, size_t *ret_n)
{
    while (s->at < s->buckets.len && !s->buckets.data[s->at].first)
        s->at++;
    if (s->at == s->buckets.len)
        return 0;
    const struct spool_bucket *b = &s->buckets.data[s->at++];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    vec_clear(&s->given);
    for (uint32_t k = b->first; k; k = s->next.data[k - 1]) {
        struct tl_event *from = block(s, k - 1);
        size_t n = k == b->last ? b->in_last : BLOCK_EVENTS, at = s->given.len;
        int r = vec_extend(&s->given, n);
        if (r < 0)
            return r;
        memcpy(s->given.data + at, from, n * sizeof(*from));
        if (BLOCK_EVENTS * sizeof(*from) % page == 0)
            (void)!madvise(from, BLOCK_EVENTS * sizeof(*from), MADV_DONTNEED);
    }
    int r = tl_events_sort(s->given.data, s->given.len);
    *ret = s->given.data;
    *ret_n = s->given.len;
    return r < 0 ? r : 1;
}
