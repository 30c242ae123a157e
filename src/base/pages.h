/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by the gigabyte. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Asks for large pages where memory that was just allocated is large: meeting it page by page costs more than filling it. Of
 * malloc's memory all that was mapped for it: what is advised in part cannot grow in place.
 */
static inline void huge_pages(void *from, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)from & ~(page - 1);
    if (bytes >= 64u << 20)
        (void)madvise((void *)start, ((uintptr_t)from + bytes + page - 1 - start) & ~(page - 1), MADV_HUGEPAGE);
}

static inline void pages_advise(const void *from, size_t bytes, int advice)
{
    uintptr_t start = (uintptr_t)from & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    (void)madvise((void *)start, (uintptr_t)from + bytes - start, advice); /* refused by an older Linux: no matter */
}

/* What lies in a mapped file and will be read is mapped in one go, which costs a tenth of meeting it page by page. */
static inline void pages_to_read(const void *from, size_t bytes)
{
    enum { POPULATE_READ = 22 /* MADV_POPULATE_READ */ };

    pages_advise(from, bytes, POPULATE_READ);
}

/* What will be written is there, and writable: who cannot wait for a fault meets none. */
static inline void pages_to_write(const void *from, size_t bytes)
{
    enum { POPULATE_WRITE = 23 /* MADV_POPULATE_WRITE */ };

    pages_advise(from, bytes, POPULATE_WRITE);
}

/* What lies in a mapped file was read, and will hardly be again: its memory is for others, such as what is made of it. */
static inline void pages_forget(const void *from, size_t bytes)
{
    enum { PAGEOUT = 21 /* MADV_PAGEOUT, since Linux 5.4 */ };

    pages_advise(from, bytes, PAGEOUT);
}
