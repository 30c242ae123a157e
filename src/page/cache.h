/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a large recording's page, kept next to it (PATH.page) so that it opens at once the
 * next time. They are made again when the recording, the files served with it or jvmscope changes.
 * Where the folder cannot be written, nothing is kept.
 */
#pragma once

#include "base/buf.h"
#include "page/page.h"

/* Smaller recordings are read quickly enough without a file. */
enum { PAGE_CACHE_BYTES = 32 << 20 };

/* Returns a key that the kept data must match, or 0 when nothing is kept for this file. */
uint64_t page_cache_key(const char *path, const struct page_site *site, const char *sources);
/*
 * Appends the kept data. Returns 0, or a negative errno when nothing is kept that matches the key.
 */
int page_cache_get(const char *path, uint64_t key, struct buf *out) must_check;
/*
 * Keeps the data under a key that is not 0, and replaces what was kept. Nothing is kept if the file
 * cannot be written or its name belongs to a file of another kind.
 */
void page_cache_put(const char *path, uint64_t key, const struct buf *data);
