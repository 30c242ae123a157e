/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of a latency histogram. Latencies count in microseconds. Below 128 us each has a bucket
 * of its own; above, each power of two is divided into 64 equal buckets, so that a bucket is never
 * wider than 1/64 of the latencies in it. This is the layout of an HDR histogram with two digits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LATENCY_BITS = 6, LATENCY_BUCKETS = (64 - LATENCY_BITS + 1) << LATENCY_BITS };

/* Returns the bucket of a latency in nanoseconds: less than LATENCY_BUCKETS. */
static inline uint32_t latency_bucket(uint64_t ns)
{
    uint64_t us = ns / 1000;
    if (us < UINT64_C(2) << LATENCY_BITS)
        return (uint32_t)us;
    unsigned shift = 63 - (unsigned)__builtin_clzll(us) - LATENCY_BITS;
    return (uint32_t)((uint64_t)shift << LATENCY_BITS) + (uint32_t)(us >> shift);
}

/* Returns the least latency of a bucket, in nanoseconds, saturated. */
static inline uint64_t latency_least_ns(uint32_t bucket)
{
    uint64_t us = bucket;
    if (bucket >= 2u << LATENCY_BITS) {
        unsigned shift = (bucket >> LATENCY_BITS) - 1;
        if (shift > 63 - LATENCY_BITS)
            return UINT64_MAX;
        us = (uint64_t)(bucket - (shift << LATENCY_BITS)) << shift;
    }
    return us > UINT64_MAX / 1000 ? UINT64_MAX : us * 1000;
}

/*
 * Returns the latency that represents a bucket: its middle, with an error of at most half its
 * width. The first bucket is represented by its longest latency, because the relative error of its
 * middle would have no bound.
 */
static inline uint64_t latency_of_bucket(uint32_t bucket)
{
    return bucket ? (latency_least_ns(bucket) + latency_least_ns(bucket + 1)) / 2
                  : latency_least_ns(1) - 1;
}

/* Returns whether a result of latency_of_bucket is an upper bound, not the middle of a bucket. */
static inline bool latency_is_bound(uint64_t ns)
{
    return ns < latency_least_ns(1);
}
