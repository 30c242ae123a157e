/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backed.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { AREAS = 64 };

static struct area {
    _Atomic uintptr_t from; /* 0: free; 1: being filled in */
    uintptr_t end;
    uintptr_t replaced; /* from this address on the file has been replaced; protected by `busy` */
    atomic_bool *lost;
    atomic_flag busy;
} areas[AREAS];

int backed_add(void *from, size_t bytes, atomic_bool *lost)
{
    for (int i = 0; i < AREAS; i++) {
        struct area *a = &areas[i];
        uintptr_t unused = 0;
        if (!atomic_compare_exchange_strong(&a->from, &unused, 1))
            continue;
        a->end = a->replaced = (uintptr_t)from + bytes;
        a->lost = lost;
        atomic_flag_clear(&a->busy);
        atomic_store(&a->from, (uintptr_t)from);
        return 0;
    }
    return -ENOSPC;
}

void backed_remove(const void *from)
{
    for (int i = 0; from && i < AREAS; i++)
        if (atomic_load(&areas[i].from) == (uintptr_t)from)
            atomic_store(&areas[i].from, 0);
}

static struct area *area_of(uintptr_t at)
{
    for (int i = 0; i < AREAS; i++) {
        uintptr_t from = atomic_load(&areas[i].from);
        if (from > 1 && at >= from && at < areas[i].end)
            return &areas[i];
    }
    return NULL;
}

bool backed_replace(const void *address)
{
    uintptr_t at = (uintptr_t)address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    struct area *a = area_of((uintptr_t)address);
    if (!a)
        return false;
    int saved = errno;
    /* Threads that fault at the same time must not replace what the first one has written since. */
    while (atomic_flag_test_and_set(&a->busy))
        sched_yield();
    bool done = at >= a->replaced;
    if (!done) {
        done = mmap((void *)at, a->replaced - at, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
        if (done)
            a->replaced = at;
        atomic_store(a->lost, true);
    }
    atomic_flag_clear(&a->busy);
    errno = saved;
    return done;
}
