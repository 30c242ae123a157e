/* SPDX-License-Identifier: Apache-2.0 */
/* What an output may take the place of. */
#pragma once

#include <stdbool.h>

#define REPLACED_RING ".ring"

/*
 * Returns whether an output may be written: it does not exist, is empty or no regular file, or
 * holds what its name promises. A recording, a ring, a heap dump or other data that cannot be made
 * again is never replaced by something of another kind. Complains otherwise. as: a name that ends
 * in the extension of what is to be written, if the output's own does not say that, or NULL;
 * REPLACED_RING for a ring.
 */
bool replaced_check(const char *output, const char *as);
