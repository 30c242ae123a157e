/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/pauses.h"

#include "base/clock.h"

/*
 * SHARE: of a hundred requests that arrive while classes are changed, at most one is delayed by
 * more than FELT_NS. A stop delays those that arrive in its first (length - FELT_NS), and the next
 * stop follows one pause later. Half of this budget is reserved for other effects: code that was
 * discarded is interpreted until it is compiled again, and a capture of the heap requests
 * collections.
 */
enum { SHARE = 200 };

#define FELT_NS (4 * NS_PER_MS)
/* if a stop took longer, the VM was waiting for a processor, and pauses would not help */
#define LONG_NS (40 * NS_PER_MS)
/* Limits of all pauses together. The user waits for them, and so do other requests to the VM. */
#define PAUSES_OF_CLASS_NS (30 * NS_PER_MS)
#define PAUSES_MOST_NS     (60 * NS_PER_SECOND)

uint64_t pauses_of_round(const struct pauses *p, unsigned classes)
{
    uint64_t all = MIN((uint64_t)classes * PAUSES_OF_CLASS_NS, PAUSES_MOST_NS);
    return MIN(all / MAX(p->rounds, 1U), all - MIN(p->used_ns, all));
}

uint64_t pauses_next(uint64_t *budget_ns, uint64_t stop_ns, uint64_t took_ns, uint64_t batches)
{
    uint64_t stop = MIN(stop_ns, LONG_NS);
    uint64_t wanted = MIN(SHARE * (stop - MIN(stop, FELT_NS)), *budget_ns / batches);
    uint64_t pause = MAX(wanted, 2 * MIN(took_ns, stop));
    *budget_ns -= MIN(*budget_ns, pause);
    return pause;
}
