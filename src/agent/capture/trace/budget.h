/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how much a capture may write: events, events per second, and bytes. What exceeds the
 * limits is counted.
 */
#pragma once

#include "base/clock.h"
#include "jfr/losses.h"
#include "options/options.h"

/* What exceeded one of the limits. */
struct trace_excess {
    uint64_t events, first_ns; /* first_ns: the time of the earliest of them */
};

struct trace_budget {
    uint64_t limit, rate, bytes; /* limits */
    uint64_t written, written_bytes, second, in_second;
    struct trace_excess over_limit, over_rate, over_bytes;
};

static inline struct trace_budget budget_of(const struct options *o)
{
    return (struct trace_budget){.limit = o->v[OPT_LIMIT].number,
                                 .rate = o->v[OPT_RATE].number,
                                 .bytes = o->v[OPT_BYTES].number};
}

static inline bool budget_exceeded(struct trace_excess *over, uint64_t time_ns)
{
    over->first_ns = over->events++ ? MIN(over->first_ns, time_ns) : time_ns;
    return false;
}

/* Returns whether an event of that time may still be written; counts it if not. */
static inline bool budget_allows(struct trace_budget *b, uint64_t time_ns)
{
    if (b->written >= b->limit)
        return budget_exceeded(&b->over_limit, time_ns);
    if (b->written_bytes >= b->bytes)
        return budget_exceeded(&b->over_bytes, time_ns);
    /*
     * Threads are read one after the other, so an event of an earlier second than the newest counts
     * towards that second.
     */
    if (time_ns / NS_PER_SECOND > b->second) {
        b->second = time_ns / NS_PER_SECOND;
        b->in_second = 0;
    }
    return b->in_second < b->rate || budget_exceeded(&b->over_rate, time_ns);
}

static inline void budget_spend(struct trace_budget *b, size_t bytes)
{
    b->written++;
    b->in_second++;
    b->written_bytes += bytes;
}

/* Reports what exceeded --limit, --rate and --bytes so far as these losses. */
static inline void budget_lose(const struct trace_budget *b, struct jfr_writer *w,
                               enum jfr_loss limit, enum jfr_loss rate, enum jfr_loss bytes)
{
    jfr_lose_total_from(w, limit, b->over_limit.events, b->over_limit.first_ns);
    jfr_lose_total_from(w, rate, b->over_rate.events, b->over_rate.first_ns);
    jfr_lose_total_from(w, bytes, b->over_bytes.events, b->over_bytes.first_ns);
}

static inline void budget_status(const struct trace_budget *b, const char *name, struct buf *out)
{
    buf_printf(out, "%s.over_limit %llu\n%s.over_rate %llu\n%s.over_bytes %llu\n", name,
               (unsigned long long)b->over_limit.events, name,
               (unsigned long long)b->over_rate.events, name,
               (unsigned long long)b->over_bytes.events);
}
