/* SPDX-License-Identifier: Apache-2.0 */
/* Coverage for the page. */
#pragma once

#include "base/json.h"

enum { COVERAGE_PAGE_SOURCES = 16 << 20 }; /* bytes of source text that a page takes */

/*
 * Writes an object {the members of `jvmscope coverage --json`, "texts": {class: source text}}, with
 * the source texts found below the folder `sources`, which may be NULL. Returns -ENOENT, having
 * written nothing, when the file contains no coverage.
 */
int coverage_page_json(const char *path, const char *sources, struct json *j) must_check;
