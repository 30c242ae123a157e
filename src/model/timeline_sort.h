/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of events by time, worked out on eight bytes an event. */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

/* A time over a bound below it, and a number of fewer bits than 64 - the time's. */
#define TL_KEY_NUMBER_BITS 32

/*
 * Keys of (time << TL_KEY_NUMBER_BITS | number) by their times, of which the highest is known;
 * equal ones keep their order. room is for as many.
 */
void tl_keys_sort(uint64_t *keys, uint64_t *room, size_t n, uint32_t highest);
