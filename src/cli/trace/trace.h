/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that were recorded with their values, for the page. */
#pragma once

#include "base/json.h"
#include "cli/requests/only.h"

struct trace_options {
    bool json, exceptions;
    const char *thread, *method, *condition; /* patterns, NULL: all */
    uint64_t limit, min;                     /* calls; ns */
    struct only_requests requests;
    const struct request_times *times; /* of these requests; NULL: all */
};

/*
 * An object {"start_ns", "calls": [as `jvmscope trace --json`, with this, args and return as
 * strings of JSON], "total": how many the options want}, at most o->limit calls. -ENOENT, with
 * nothing written, when the file holds no calls.
 */
int trace_page_json(const char *path, const struct trace_options *o, struct json *j) must_check;
