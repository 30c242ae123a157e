/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page shows besides the profile and the threads: losses, calls with values, coverage, the
 * heap.
 */
#pragma once

#include "base/json.h"
#include "export/export.h"

enum { PAGE_CALLS = 20000 }; /* maximum number of calls in one page; the rest is counted */

/*
 * For export_source.more: writes what a recording lost (model/losses.h) and the members "trace",
 * "requests", "coverage" and "heap", each only when the recording has it.
 */
int page_more(const struct export_source *s, struct json *j) must_check;
