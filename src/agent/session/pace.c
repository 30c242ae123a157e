/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/pace.h"

#include "agent/common/rounds.h"
#include "base/clock.h"

#include <time.h>

bool pace_begins(struct pace *p)
{
    if (now_ns() < p->due_ns)
        return false;
    p->began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return true;
}

void pace_ends(struct pace *p)
{
    uint64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - p->began_ns;
    p->due_ns = now_ns() + MIN(took * PACE_SHARE * rounds_one_of(), PACE_MOST_NS);
}
