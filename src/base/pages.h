/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by the gigabyte. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Asks for large pages where memory that was just allocated is large: meeting it page by page costs more than filling it. */
static inline void huge_pages(void *from, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = ((uintptr_t)from + page - 1) & ~(page - 1);
    if (bytes >= 16u << 20)
        (void)madvise((void *)start, ((uintptr_t)from + bytes - start) & ~(page - 1), MADV_HUGEPAGE);
}
