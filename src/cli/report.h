/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "profile/profile.h"

#include <stdio.h>

/*
 * Exact calls and allocation sites (report_times.c). Prints the tables for people, or nothing where
 * the profile has none. Returns 0 or -ENOMEM.
 */
int report_exact_print(const struct profile *p, const struct profile_filter *filter, size_t limit);
/* Writes the member "times" of the open object. Returns 0 or -ENOMEM. */
int report_times_json(struct json *j, const struct profile *p, const struct profile_filter *filter);
/*
 * Writes the member "sites" of the open object, which is that of the allocations. Returns 0 or
 * -ENOMEM.
 */
int report_sites_json(struct json *j, const struct profile *p, const struct profile_filter *filter);
