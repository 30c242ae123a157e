/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gzip stream that a thread of its own compresses while the caller produces more data. The output
 * depends on the bytes alone, not on when they arrive. The first LEVEL_BYTES are compressed well
 * and the rest is compressed fast, because time matters only for large outputs.
 */
#pragma once

#include "base/buf.h"

#include <stdio.h>

struct gzip_out;

/*
 * Begins a stream. Until gzip_out_end nobody else may write to `out`. Returns NULL when memory runs
 * out.
 */
struct gzip_out *gzip_out_new(FILE *out);
/* Appends the contents of *data, which is empty afterwards. */
void gzip_out_put(struct gzip_out *g, struct buf *data);
/* Writes what is left and frees the stream; NULL is accepted. Returns the first error, or 0. */
int gzip_out_end(struct gzip_out *g);
