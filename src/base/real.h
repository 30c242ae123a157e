/* SPDX-License-Identifier: Apache-2.0 */
/* A float or a double of a program as text. */
#pragma once

#include "base/buf.h"

/*
 * Appends the shortest decimal number that reads back as the same float or double: 100.0, 0.1,
 * 1e16, -0.0, NaN, Infinity.
 */
void real_put(struct buf *b, double d, bool is_float);

/* Writes what real_put appends as a C string. */
void real_text(double d, bool is_float, char ret[32]);
