/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "cli/text.h"
#include "model/profile.h"

#include <stdio.h>

/* Writes `"samples":{...}`, a metric's ranked methods, as a member of the object that is open. 0 or -ENOMEM. */
int report_metric_json(struct json *j, const struct profile_view *v);

/*
 * Exact calls and allocation sites (report_times.c): the tables for a person, and the members "times" and "allocations" of the
 * object that is open. Nothing where the profile has none. 0 or -ENOMEM.
 */
int report_exact_print(const struct profile *p, const struct profile_filter *filter, size_t limit);
int report_exact_json(struct json *j, const struct profile *p, const struct profile_filter *filter);
