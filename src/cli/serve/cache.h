/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a large recording's page, kept beside it (PATH.page) so that it opens at once the
 * next time; made anew when the recording, the files served with it or jvmscope is another. Nothing
 * is kept where it cannot be written.
 */
#pragma once

#include "base/buf.h"
#include "export/export.h"

/* Smaller recordings are read faster than a file is worth. */
enum { SERVE_CACHE_BYTES = 32 << 20 };

/* What the kept data must match; 0 when nothing is to be kept of this file. */
uint64_t serve_cache_key(const char *path, const struct page_site *site, const char *sources);
/* Appends what is kept. 0, or negative errno when there is none that fits. */
int serve_cache_get(const char *path, uint64_t key, struct buf *out) must_check;
void serve_cache_put(const char *path, uint64_t key, const struct buf *data);
