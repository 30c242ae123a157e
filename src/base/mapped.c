/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mapped.h"

#include "base/pages.h"
#include "base/vec.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES_AT_ONCE = 4096 };

struct noted {
    char *at;
    size_t bytes;
};

static struct {
    pthread_mutex_t lock;
    VEC(struct noted) of;
} noted = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Adds a table to the list. Returns 0 or -ENOMEM. */
static int note(void *at, size_t bytes)
{
    pthread_mutex_lock(&noted.lock);
    int r = vec_push(&noted.of, ((struct noted){at, bytes}));
    pthread_mutex_unlock(&noted.lock);
    return r;
}

/* Changes the size of a table that is in the list; 0 removes it. */
static void note_size(const void *at, size_t bytes)
{
    pthread_mutex_lock(&noted.lock);
    for (size_t i = 0; i < noted.of.len; i++) {
        struct noted *n = &noted.of.data[i];
        if (n->at != at)
            continue;
        n->bytes = bytes;
        if (!bytes)
            *n = noted.of.data[--noted.of.len];
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

/* Returns memory that is in the list now, or unmaps it and returns NULL. */
static void *listed(void *memory, size_t bytes)
{
    if (note(memory, bytes) < 0) {
        munmap(memory, bytes);
        return NULL;
    }
    return memory;
}

void *mapped_new(size_t bytes)
{
    void *p = map(bytes);
    return p ? listed(p, bytes) : NULL;
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
    return listed(memory, bytes);
}

void mapped_free(void *memory, size_t bytes)
{
    if (!memory)
        return;
    note_size(memory, 0);
    munmap(memory, bytes);
}

void mapped_shrink(void *memory, size_t bytes, size_t left)
{
    note_size(memory, left);
    munmap((char *)memory + left, bytes - left);
}

/* a bit of an entry of /proc/self/pagemap, from Linux 4.2 on */
#define PAGE_IS_OWN (UINT64_C(1) << 56)

/*
 * Counts the pages of n bytes that occupy memory. mincore() would also count pages that were only
 * read; all of these share one page of zeros, and the table of threads by number has thousands of
 * them.
 */
static uint64_t written_pages(int fd, const void *from, size_t n, size_t page)
{
    uint64_t entries[512], pages = 0;
    for (size_t at = 0; at < n; at += ARRAY_SIZE(entries) * page) {
        size_t count = MIN((n - at + page - 1) / page, ARRAY_SIZE(entries));
        ssize_t r = pread(fd, entries, count * sizeof(*entries),
                          (off_t)(((uintptr_t)from + at) / page * sizeof(*entries)));
        for (ssize_t i = 0; i < r / (ssize_t)sizeof(*entries); i++)
            pages += (entries[i] & PAGE_IS_OWN) != 0;
    }
    return pages;
}

/* Counts the pages for kernels whose pagemap does not show this. */
static uint64_t touched_pages(const struct noted *n, size_t page)
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
    return pages;
}

uint64_t mapped_resident(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    _cleanup_close_ int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t pages = 0;
    pthread_mutex_lock(&noted.lock);
    bool known = fd >= 0 && written_pages(fd, &noted.lock, 1, page) == 1;
    for (size_t i = 0; i < noted.of.len; i++) {
        const struct noted *n = &noted.of.data[i];
        pages += known ? written_pages(fd, n->at, n->bytes, page) : touched_pages(n, page);
    }
    pthread_mutex_unlock(&noted.lock);
    return pages * page;
}
