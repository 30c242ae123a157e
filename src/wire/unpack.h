/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompresses data of other programs: gzip, zlib and zstd, with a limit on the size of the result.
 * Compresses with gzip.
 */
#pragma once

#include "base/buf.h"

/* Returns whether bytes begin as gzip or zstd does. */
bool unpack_is_packed(const void *data, size_t len);

/*
 * Appends the decompressed contents. The format is recognized by the first bytes; data in none of
 * the formats is copied. Fails as soon as the result exceeds max bytes, and uses at most 8 MiB for
 * the window of zstd. Returns 0, -ENOMEM, or with the reason in why -EPROTO for damaged or
 * truncated input or -E2BIG. Releases `to` on failure.
 */
int unpack_bytes(const void *data, size_t len, size_t max, struct buf *to,
                 struct buf *why) must_check;

/* Appends the bytes compressed with gzip. Returns 0 or a negative errno. */
int wire_pack_gzip(const void *data, size_t len, struct buf *to) must_check;
