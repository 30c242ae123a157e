/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time for which the VM has stopped all its threads so far, according to the counter that it
 * publishes (sun.rt.safepointTime).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Sets *ret_ns to that time since the VM's start. Returns false when the VM does not publish it
 * (-XX:-UsePerfData). Any thread, but not concurrently.
 */
bool stops_so_far(uint64_t *ret_ns);
