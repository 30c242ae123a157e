/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gzip stream that is compressed by a thread of its own while the caller makes more of it. What
 * it writes depends on the bytes alone, not on how fast they come. The first LEVEL_BYTES are
 * compressed well, and what follows fast: only there does it matter how long it takes.
 */
#pragma once

#include "base/buf.h"

#include <stdio.h>

struct gzip_out;

/* Returns NULL when out of memory. Until the end nobody else may write to `out`. */
struct gzip_out *gzip_out_new(FILE *out);
/* Appends the contents of *data, which is empty afterwards. */
void gzip_out_put(struct gzip_out *g, struct buf *data);
/* Writes what is left and frees the stream; NULL is accepted. Returns the first error, or 0. */
int gzip_out_end(struct gzip_out *g);
