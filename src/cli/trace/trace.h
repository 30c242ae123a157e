/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that were recorded with their values, for the page. */
#pragma once

#include "base/json.h"
#include "cli/requests/only.h"

struct trace_options {
    bool json, exceptions;
    const char *thread, *method, *condition; /* patterns, NULL: all */
    uint64_t limit, min;                     /* calls; ns */
    uint64_t from_ns, to_ns;                 /* since the recording's start; 0: all */
    int64_t start_ns;                        /* of the recording, when one of these is given */
    struct only_requests requests;
    const struct request_times *times; /* only during these requests; NULL: always */
};

/*
 * Writes an object {"start_ns", "calls": [as `jvmscope trace --json`, with this, args and return as
 * strings that contain JSON], "total": how many match the options}, with at most o->limit calls.
 * Returns -ENOENT, having written nothing, when the file contains no calls.
 */
int trace_page_json(const char *path, const struct trace_options *o, struct json *j) must_check;
