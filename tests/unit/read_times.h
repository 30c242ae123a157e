/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Stores the times of the first records, at most max, as our reader returns them, and returns their
 * number.
 */
size_t read_times(const void *bytes, size_t len, uint64_t *times, size_t max);
