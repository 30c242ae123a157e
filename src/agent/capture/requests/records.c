/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables with the records of open requests and works, and the native memory that the probe
 * reads (tables.h).
 */
#include "agent/capture/requests/follow.h"

#include "agent/common/fault.h"
#include "base/mapped.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic uint32_t *next_of(const struct record_pool *p, uint32_t i)
{
    return (_Atomic uint32_t *)(p->records + p->size * i + p->next_at);
}

/*
 * The free records that the calling thread keeps for its next request and work, as 1 + index. The
 * list of free records is shared, and changing it moves cache lines between processors. They are
 * valid only if the tables have not been emptied since.
 */
static __thread struct {
    uint64_t emptied;
    uint32_t record[POOLS];
} spare;

/* How often the tables have been emptied. */
static uint64_t emptied;

static uint32_t *spare_of(const struct record_pool *p)
{
    if (unlikely(spare.emptied != emptied)) {
        memset(&spare, 0, sizeof(spare));
        spare.emptied = emptied;
    }
    return &spare.record[p->kind];
}

int64_t follow_take(struct record_pool *p)
{
    uint32_t *mine = spare_of(p);
    if (*mine) {
        uint32_t kept = *mine - 1;
        *mine = 0;
        return kept;
    }
    uint64_t head = atomic_load(&p->free);
    while ((uint32_t)head) {
        uint32_t i = (uint32_t)head - 1;
        uint64_t next = (head >> 32) + 1;
        next = next << 32 | atomic_load(next_of(p, i));
        if (atomic_compare_exchange_weak(&p->free, &head, next))
            return i;
    }
    uint32_t i = atomic_load(&p->used);
    while (i < p->max && !atomic_compare_exchange_weak(&p->used, &i, i + 1))
        ;
    return i < p->max ? (int64_t)i : -1;
}

static void give_to_all(struct record_pool *p, uint32_t i)
{
    uint64_t head = atomic_load(&p->free), now;
    do {
        atomic_store(next_of(p, i), (uint32_t)head);
        now = ((head >> 32) + 1) << 32 | (i + 1);
    } while (!atomic_compare_exchange_weak(&p->free, &head, now));
}

void follow_give(struct record_pool *p, uint32_t i)
{
    uint32_t *mine = spare_of(p);
    if (*mine)
        give_to_all(p, i);
    else
        *mine = i + 1;
}

void follow_give_spare(void)
{
    struct record_pool *const pools[] = {&follow.requests, &follow.works};
    for (size_t k = 0; k < ARRAY_SIZE(pools); k++) {
        uint32_t *mine = spare_of(pools[k]);
        if (*mine)
            give_to_all(pools[k], *mine - 1);
        *mine = 0;
    }
}

void follow_lock(struct request *r)
{
    while (atomic_flag_test_and_set_explicit(&r->busy, memory_order_acquire))
        sched_yield();
}

void follow_unlock(struct request *r)
{
    atomic_flag_clear_explicit(&r->busy, memory_order_release);
}

/* ---- the tables ---- */

static const struct {
    void **at;
    size_t size;
    bool kept; /* the table is kept from one recording to the next */
} tables[] = {
    {(void **)&follow.slots, SLOT_BUCKETS * sizeof(struct work_slots), false},
    {(void **)&follow.handed, HANDED_BUCKETS *BUCKET * sizeof(struct handed), false},
    {(void **)&follow.hot, HOT_BUCKETS *BUCKET * sizeof(struct handed), false},
    {(void **)&follow.spilled, HOT_BUCKETS * sizeof(uint64_t), false},
    {(void **)&follow.tasks, TASKS * sizeof(struct task), false},
    {(void **)&follow.named, NAMED * sizeof(uint64_t), false},
    {(void **)&follow.draws, DRAWS *DRAW_WORDS * sizeof(uint64_t), false},
    {(void **)&follow.prepared, NAMED * sizeof(uint64_t), false},
    {(void **)&follow.late, LATE / 8, false},
    {(void **)&follow.requests.records, REQUESTS * sizeof(struct request), false},
    /* the use counts of records continue, so a token of an earlier recording matches no record */
    {(void **)&follow.works.records, WORKS * sizeof(struct work), true},
};

int requests_load_follow(void)
{
    if (fault_here())
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        if (!*tables[i].at && !(*tables[i].at = mapped_new(tables[i].size)))
            return -ENOMEM;
    return 0;
}

void follow_empty(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        if (!tables[i].kept)
            (void)madvise(*tables[i].at, tables[i].size, MADV_DONTNEED);
    for (uint32_t i = 0; i < atomic_load(&follow.works.used); i++)
        atomic_store(&((struct work *)follow.works.records)[i].number, 0);
    follow.requests = (struct record_pool){.records = follow.requests.records,
                                           .size = sizeof(struct request),
                                           .next_at = offsetof(struct request, next),
                                           .kind = POOL_REQUESTS,
                                           .max = REQUESTS};
    follow.works = (struct record_pool){.records = follow.works.records,
                                        .size = sizeof(struct work),
                                        .next_at = offsetof(struct work, next),
                                        .kind = POOL_WORKS,
                                        .max = WORKS};
    emptied++;
}
