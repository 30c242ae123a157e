/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The times of the first records, at most max, as our reader has them; how many. */
size_t read_times(const void *bytes, size_t len, uint64_t *times, size_t max);
