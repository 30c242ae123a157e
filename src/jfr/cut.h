/* SPDX-License-Identifier: Apache-2.0 */
/* Handles copies of recordings that are still being written. */
#pragma once

#include "base/macro.h"

#include <stdint.h>

/*
 * Truncates a copy of a recording by our agent after its last event, removing the space that the
 * recorder had allocated there, and marks the copy as ended. fd is open for reading and writing.
 * Returns 0, also for a file that is not such a recording, which is left unchanged, or a negative
 * errno.
 */
int jfr_cut_copy(int fd) must_check;

/*
 * Stores the number of bytes up to the end of the last event of a recording by our agent, which is
 * open for reading. Returns 0, -ENODATA when the file is not such a recording, or another negative
 * errno when it cannot be read.
 */
int jfr_used_bytes(int fd, uint64_t *ret) must_check;
