/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jfr/reader.h"
#include "profile/losses.h"

#include <stdbool.h>

/*
 * Prints how often each exception was thrown and caught, and where, the most frequent first. limit
 * 0 means all. Returns the exit status.
 */
int exception_table(struct recording *r, const char *path, bool json, uint64_t limit,
                    const struct losses *l);
