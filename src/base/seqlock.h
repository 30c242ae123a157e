/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version of an entry that is written rarely, and read often and without waiting: odd while the
 * entry is written, 0 when it never was. A writer that finds another at work gives up, so that
 * signal handlers may write. A reader takes a copy and uses it only if the version has not changed:
 *
 *     uint32_t version = seqlock_read(&e->version);
 *     ... copy the entry unless version is 0 ...
 *     if (version && seqlock_still(&e->version, version)) ... the copy is whole ...
 *
 * C's memory model, and processors such as aarch64, allow a plain store that follows an atomic one
 * to become visible first. The fences on both sides prevent that.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Begins to write if the version still is `version`, which must be even, and makes it odd. Returns
 * false if it has changed.
 */
static inline bool seqlock_begin_at(_Atomic(uint32_t) *lock, uint32_t version)
{
    if (!atomic_compare_exchange_strong(lock, &version, version + 1))
        return false;
    /* No reader sees later writes before it sees the odd version. */
    atomic_thread_fence(memory_order_release);
    return true;
}

/* Begins to write. Returns false if another writer is at work. */
static inline bool seqlock_begin(_Atomic(uint32_t) *lock)
{
    uint32_t version = atomic_load_explicit(lock, memory_order_relaxed);
    return !(version & 1) && seqlock_begin_at(lock, version);
}

/* Ends a write: makes the version even, but never 0. */
static inline void seqlock_end(_Atomic(uint32_t) *lock)
{
    uint32_t version = atomic_load_explicit(lock, memory_order_relaxed) + 1;
    atomic_store_explicit(lock, version ? version : 2, memory_order_release);
}

/* Returns the version, or 0 when nothing was written yet or the entry is being written. */
static inline uint32_t seqlock_read(_Atomic(uint32_t) *lock)
{
    uint32_t version = atomic_load_explicit(lock, memory_order_acquire);
    return version & 1 ? 0 : version;
}

/* Returns whether the version is unchanged, so that everything read since belongs to it. */
static inline bool seqlock_still(_Atomic(uint32_t) *lock, uint32_t version)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(lock, memory_order_relaxed) == version;
}

/*
 * Begins a write of data that one thread writes and stamps with the time. The stamp serves as the
 * data's version; it is 0 while they are written, and when there are none.
 */
static inline void seqlock_stamp_clear(_Atomic(uint64_t) *stamp)
{
    atomic_store_explicit(stamp, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

/* Ends a write of data: stamps the data with the time; 0 when there are none. */
static inline void seqlock_stamp_set(_Atomic(uint64_t) *stamp, uint64_t time)
{
    atomic_store_explicit(stamp, time, memory_order_release);
}

/* Returns the stamp, or 0 when there is nothing to read. */
static inline uint64_t seqlock_stamp(const _Atomic(uint64_t) *stamp)
{
    return atomic_load_explicit(stamp, memory_order_acquire);
}

/*
 * Returns whether the stamp is unchanged, so that everything read since seqlock_stamp() belongs to
 * it.
 */
static inline bool seqlock_stamp_holds(const _Atomic(uint64_t) *stamp, uint64_t time)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(stamp, memory_order_relaxed) == time;
}
