/* SPDX-License-Identifier: Apache-2.0 */
/* Advice to the kernel about large areas of memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Asks for huge pages for an area of at least 64 MiB that was just allocated, because taking a page
 * fault for each small page costs more than filling the memory. For memory from malloc, pass the
 * whole allocation: an allocation of which only a part was advised cannot grow in place.
 */
static inline void pages_huge(void *from, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)from & ~(page - 1);
    if (bytes >= 64u << 20)
        (void)madvise((void *)start, ((uintptr_t)from + bytes + page - 1 - start) & ~(page - 1),
                      MADV_HUGEPAGE);
}

/*
 * Gives the kernel a piece of advice (MADV_*) about the pages of an area. Returns false where an
 * older Linux does not know the advice, which is only an optimization.
 */
static inline bool pages_advise(const void *from, size_t bytes, int advice)
{
    uintptr_t start = (uintptr_t)from & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    return madvise((void *)start, (uintptr_t)from + bytes - start, advice) == 0;
}

/*
 * Asks for huge pages for a table of some megabytes that is accessed in no order, where each access
 * to a small page would have to look up its address too.
 */
static inline void pages_large(const void *from, size_t bytes)
{
    if (bytes >= 4u << 20)
        pages_advise(from, bytes, MADV_HUGEPAGE);
}

/*
 * Maps a part of a mapped file that is about to be read. This costs a tenth of the page faults that
 * reading would cause.
 */
static inline void pages_to_read(const void *from, size_t bytes)
{
    enum { POPULATE_READ = 22 /* MADV_POPULATE_READ */ };

    pages_advise(from, bytes, POPULATE_READ);
}

/*
 * Prefaults memory that will be written, so that a writer that must not block takes no page fault.
 * Returns false where Linux cannot.
 */
static inline bool pages_to_write(const void *from, size_t bytes)
{
    enum { POPULATE_WRITE = 23 /* MADV_POPULATE_WRITE */ };

    return pages_advise(from, bytes, POPULATE_WRITE);
}

/*
 * Removes a part of a file's private, read-only mapping from this process's memory. If it is read
 * again, it is mapped again from the system's cache of the file.
 */
static inline void pages_forget(const void *from, size_t bytes)
{
    pages_advise(from, bytes, MADV_DONTNEED);
}
