/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time for which the VM has stopped all its threads so far, according to the counter that it
 * publishes (sun.rt.safepointTime).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Stores for how long, in ns, the VM has stopped all its threads since its start. Returns false
 * when the VM does not publish that (-XX:-UsePerfData), or in another unit. Any thread, but not
 * concurrently.
 */
bool stops_so_far(uint64_t *ret_ns);
