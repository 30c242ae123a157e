/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how much a capture may write: events, events per second, and bytes. What exceeds the
 * limits is counted.
 */
#pragma once

#include "base/clock.h"
#include "options/options.h"

struct trace_budget {
    uint64_t limit, rate, bytes; /* limits */
    uint64_t written, written_bytes, second, in_second;
    uint64_t over_limit, over_rate, over_bytes;
};

static inline struct trace_budget budget_of(const struct options *o)
{
    return (struct trace_budget){.limit = o->v[OPT_LIMIT].number,
                                 .rate = o->v[OPT_RATE].number,
                                 .bytes = o->v[OPT_BYTES].number};
}

/* Returns whether an event of that time may still be written; counts it if not. */
static inline bool budget_allows(struct trace_budget *b, uint64_t time_ns)
{
    if (b->written >= b->limit) {
        b->over_limit++;
        return false;
    }
    if (b->written_bytes >= b->bytes) {
        b->over_bytes++;
        return false;
    }
    /*
     * Threads are read one after the other, so an event of an earlier second than the newest counts
     * towards that second.
     */
    if (time_ns / NS_PER_SECOND > b->second) {
        b->second = time_ns / NS_PER_SECOND;
        b->in_second = 0;
    }
    if (b->in_second >= b->rate) {
        b->over_rate++;
        return false;
    }
    return true;
}

static inline void budget_spend(struct trace_budget *b, size_t bytes)
{
    b->written++;
    b->in_second++;
    b->written_bytes += bytes;
}

static inline void budget_status(const struct trace_budget *b, const char *name, struct buf *out)
{
    buf_printf(out, "%s.over_limit %llu\n%s.over_rate %llu\n%s.over_bytes %llu\n", name,
               (unsigned long long)b->over_limit, name, (unsigned long long)b->over_rate, name,
               (unsigned long long)b->over_bytes);
}
