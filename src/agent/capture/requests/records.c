/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables in which open requests and works have a record, and the native memory that the probe
 * reads (tables.h).
 */
#include "agent/capture/requests/follow.h"

#include "agent/session/fault.h"
#include "base/mapped.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

static _Atomic uint32_t *next_of(const struct pool *p, uint32_t i)
{
    return (_Atomic uint32_t *)(p->records + p->size * i + p->next_at);
}

/* The index of a free record; -1: there is none. */
int64_t follow_take(struct pool *p)
{
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

void follow_give(struct pool *p, uint32_t i)
{
    uint64_t head = atomic_load(&p->free), now;
    do {
        atomic_store(next_of(p, i), (uint32_t)head);
        now = ((head >> 32) + 1) << 32 | (i + 1);
    } while (!atomic_compare_exchange_weak(&p->free, &head, now));
}

struct request *follow_at(uint64_t token)
{
    return (struct request *)follow.requests.records + (token & TOKEN_INDEX);
}

/* The record of a request that has not ended; NULL otherwise. */
struct request *follow_request(uint64_t token)
{
    struct request *r = token ? follow_at(token) : NULL;
    return r && atomic_load(&r->token) == token ? r : NULL;
}

struct work *follow_work(uint64_t number)
{
    struct work *w = (struct work *)follow.works.records + (number & (WORKS - 1));
    return number && atomic_load(&w->number) == number ? w : NULL;
}

/*
 * Locks a request for as long as it takes to copy a piece. A waiter may wait longer, because the
 * holder may have lost its processor.
 */
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
    bool kept; /* from one recording to the next */
} tables[] = {
    {(void **)&follow.slots, SLOT_BUCKETS * sizeof(struct slots), false},
    {(void **)&follow.handed, HANDED_BUCKETS *BUCKET * sizeof(struct handed), false},
    {(void **)&follow.hot, HOT_BUCKETS *BUCKET * sizeof(struct handed), false},
    {(void **)&follow.spilled, HOT_BUCKETS * sizeof(uint64_t), false},
    {(void **)&follow.tasks, TASKS * sizeof(struct task), false},
    {(void **)&follow.named, NAMED * sizeof(uint64_t), false},
    {(void **)&follow.draws, DRAWS *DRAW_WORDS * sizeof(uint64_t), false},
    {(void **)&follow.prepared, NAMED * sizeof(uint64_t), false},
    {(void **)&follow.late, LATE / 8, false},
    {(void **)&follow.requests.records, REQUESTS * sizeof(struct request), false},
    /*
     * the use counts of records continue, so that a number from the previous recording matches none
     */
    {(void **)&follow.works.records, WORKS * sizeof(struct work), true},
};

int follow_load(void)
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
    follow.requests = (struct pool){follow.requests.records,
                                    sizeof(struct request),
                                    offsetof(struct request, next),
                                    REQUESTS,
                                    0,
                                    0};
    follow.works = (struct pool){
        follow.works.records, sizeof(struct work), offsetof(struct work, next), WORKS, 0, 0};
}
