/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the VM has stopped all its threads so far, by the counter that it publishes
 * (sun.rt.safepointTime).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Nanoseconds since the VM's start. False when it does not tell (-XX:-UsePerfData). Any thread, but
 * not two at once.
 */
bool stops_so_far(uint64_t *ret_ns);
