/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the VM has stopped all its threads so far, according to the counter that it publishes
 * (sun.rt.safepointTime).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Nanoseconds since the VM's start. False when the VM does not publish them (-XX:-UsePerfData). Any
 * thread, but not concurrently.
 */
bool stops_so_far(uint64_t *ret_ns);
