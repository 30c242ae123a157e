/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters that the VM publishes about itself (hotspot/hsperf.h), read directly from the VM's
 * memory. They do not exist with -XX:-UsePerfData. Any thread, but not concurrently; not while the
 * VM ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns where a number is kept, or NULL if the VM has no such counter. The place stays the same
 * as long as the VM runs.
 */
const int64_t *counter_number(const char *name);
/*
 * Copies the current text of a counter into ret[size], cut to fit. Returns false and "" when there
 * is none. The place is looked up at each call.
 */
bool counter_text(const char *name, char *ret, size_t size);
/*
 * Returns whether the VM's tick is a nanosecond, so that its times need no conversion. True also as
 * long as the VM has not published the length of a tick: until shortly after VMInit, with
 * -XX:-UsePerfData always.
 */
bool counters_count_ns(void);

/* Returns the current value at a place; 0 for NULL. */
static inline int64_t counter_value(const int64_t *place)
{
    return place ? __atomic_load_n(place, __ATOMIC_RELAXED) : 0;
}
