/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts events by time, using eight bytes per event. */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

/*
 * A key holds a time relative to a lower bound, and a number that needs fewer than 64 bits minus
 * those of the time.
 */
#define TL_KEY_NUMBER_BITS 32

/*
 * Sorts n keys of the form (time << TL_KEY_NUMBER_BITS | number) by their times; highest: the
 * largest time. Equal times keep their order. room has n elements, which are overwritten.
 */
void tl_keys_sort(uint64_t *keys, uint64_t *room, size_t n, uint32_t highest);
