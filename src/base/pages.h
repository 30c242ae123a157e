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

/* What lies in a mapped file and will be read is mapped in one go, which costs a tenth of meeting it page by page. */
static inline void map_at_once(const void *from, size_t bytes)
{
    enum { POPULATE_READ = 22 /* MADV_POPULATE_READ, Linux 5.14; before, the advice is refused */ };

    uintptr_t start = (uintptr_t)from & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    (void)madvise((void *)start, (uintptr_t)from + bytes - start, POPULATE_READ);
}
