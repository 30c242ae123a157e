/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/common/rounds.h"

enum { NEEDED_ROUNDS_OF = 2 };

struct waker rounds_waker;

static atomic_bool requested; /* the next round is due at once */
static atomic_bool rests, needed;
static atomic_uint rounds_of = 1;

void rounds_due(void)
{
    if (atomic_load_explicit(&rests, memory_order_relaxed))
        waker_wake(&rounds_waker);
}

void rounds_request(void)
{
    atomic_store(&requested, true);
}

void rounds_keep(unsigned one_of)
{
    atomic_store(&rounds_of, one_of);
}

unsigned rounds_one_of(void)
{
    unsigned of = atomic_load(&rounds_of);
    return atomic_load(&needed) ? MIN(of, (unsigned)NEEDED_ROUNDS_OF) : of;
}

void rounds_need(void)
{
    atomic_store(&needed, true);
}

void rounds_begin(void)
{
    atomic_store(&needed, false);
}

bool rounds_needed(void)
{
    return atomic_load(&needed);
}

bool rounds_at_once(void)
{
    return atomic_exchange(&requested, false);
}

void rounds_rest(bool rest)
{
    atomic_store(&rests, rest);
}
