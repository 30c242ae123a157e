/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/*
 * Writes the requests of a recording for the page: names, groups, counts by time and latency, and
 * some of the requests with their parts. Returns -ENOENT, with nothing written, when the file holds
 * none.
 */
int requests_page_json(const char *path, struct json *j) must_check;
