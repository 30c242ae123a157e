/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed bodies of other programs: gzip, zlib and zstd, with a bound on what they unpack to. */
#pragma once

#include "base/buf.h"

/* Returns whether bytes begin as gzip or zstd does. */
bool unpack_is_packed(const void *data, size_t len);

/*
 * Appends what compressed bytes unpack to. The format shows from their first bytes; bytes in none
 * of them are copied. Stops as soon as more than max bytes come out, and uses no more memory for a
 * zstd window than 8 MiB. Returns 0, or with the reason in why: -EPROTO for damaged or truncated
 * input, -E2BIG or -ENOMEM. Releases `to` on failure.
 */
int unpack_bytes(const void *data, size_t len, size_t max, struct buf *to,
                 struct buf *why) must_check;

/* Appends the bytes compressed with gzip. Returns 0 or a negative errno. */
int pack_gzip(const void *data, size_t len, struct buf *to) must_check;
