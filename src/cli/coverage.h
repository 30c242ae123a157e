/* SPDX-License-Identifier: Apache-2.0 */
/* Coverage, for the page. */
#pragma once

#include "base/json.h"

enum { COVERAGE_PAGE_SOURCES = 16 << 20 }; /* bytes of source text that a page takes */

/*
 * An object {as `jvmscope coverage --json`, "texts": {class: source text}}; texts of what is found
 * below the folder `sources`, which may be NULL. -ENOENT, with nothing written, when the file holds
 * no coverage.
 */
int coverage_page_json(const char *path, const char *sources, struct json *j) must_check;
