/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the number that would be at index k, below n, if the n numbers were sorted. Reorders the
 * numbers: the result is then at index k, and none before it is larger. Takes time in proportion to
 * n.
 */
uint64_t nth_number(uint64_t *numbers, size_t n, size_t k);
