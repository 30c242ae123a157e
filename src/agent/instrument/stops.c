/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/stops.h"

#include "agent/vm/counters.h"

bool stops_so_far(uint64_t *ret_ns)
{
    static const int64_t *counter;
    static bool read;
    if (!read && counters_count_ns())
        counter = counter_number("sun.rt.safepointTime");
    read = true;
    if (counter)
        *ret_ns = (uint64_t)counter_value(counter);
    return counter != NULL;
}
