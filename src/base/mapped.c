/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mapped.h"

#include "base/pages.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NOTED_MAX = 128, PAGES_AT_ONCE = 4096 };

static struct {
    pthread_mutex_t lock;

    struct noted {
        char *at;
        size_t bytes;
    } of[NOTED_MAX];
} noted = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Replaces the entry of a table; NULL stands for none. What finds no place is not counted. */
static void note(void *before, void *after, size_t bytes)
{
    pthread_mutex_lock(&noted.lock);
    for (int i = 0; i < NOTED_MAX; i++) {
        if (noted.of[i].at != before)
            continue;
        noted.of[i] = (struct noted){after, bytes};
        break;
    }
    pthread_mutex_unlock(&noted.lock);
}

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *mapped_new(size_t bytes)
{
    void *p = map(bytes);
    if (p)
        note(NULL, p, bytes);
    return p;
}

void *mapped_new_huge(size_t bytes)
{
    char *memory = map(2 * bytes);
    if (!memory)
        return NULL;
    size_t before = -(uintptr_t)memory % bytes;
    if (before)
        munmap(memory, before);
    munmap(memory + before + bytes, bytes - before);
    memory += before;
    /* With a huge page, one entry of the TLB covers it all. */
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    note(NULL, memory, bytes);
    return memory;
}

void *mapped_new_present(size_t bytes)
{
    char *memory = mapped_new_huge(bytes);
    if (!memory)
        return NULL;
    pages_to_write(memory, bytes); /* one system call instead of a fault for each page */
    for (size_t at = 0; at < bytes; at += 4096)
        *(volatile char *)(memory + at) = 0;
    return memory;
}

void mapped_free(void *memory, size_t bytes)
{
    if (!memory)
        return;
    note(memory, NULL, 0);
    munmap(memory, bytes);
}

static uint64_t resident(const struct noted *n, size_t page)
{
    unsigned char in[PAGES_AT_ONCE];
    uint64_t pages = 0;
    for (size_t at = 0; at < n->bytes; at += PAGES_AT_ONCE * page) {
        size_t bytes = MIN(n->bytes - at, PAGES_AT_ONCE * page);
        if (mincore(n->at + at, bytes, in) < 0)
            continue;
        for (size_t i = 0; i < (bytes + page - 1) / page; i++)
            pages += in[i] & 1;
    }
    return pages * page;
}

uint64_t mapped_resident(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t all = 0;
    pthread_mutex_lock(&noted.lock);
    for (int i = 0; i < NOTED_MAX; i++)
        if (noted.of[i].at)
            all += resident(&noted.of[i], page);
    pthread_mutex_unlock(&noted.lock);
    return all;
}
