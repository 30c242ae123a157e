/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the element that would be number k if the n numbers were sorted, k < n, and moves it
 * there; smaller ones are before it then. Takes time in proportion to n.
 */
uint64_t nth_number(uint64_t *numbers, size_t n, size_t k);
