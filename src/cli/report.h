/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "model/profile.h"

#include <stdio.h>

/*
 * Exact calls and allocation sites (report_times.c). The tables for a person; nothing where the
 * profile has none. 0 or -ENOMEM.
 */
int report_exact_print(const struct profile *p, const struct profile_filter *filter, size_t limit);
/* Writes the member "times" of the object that is open. 0 or -ENOMEM. */
int report_times_json(struct json *j, const struct profile *p, const struct profile_filter *filter);
/*
 * Writes the member "sites" of the object that is open, which is that of the allocations. 0 or
 * -ENOMEM.
 */
int report_sites_json(struct json *j, const struct profile *p, const struct profile_filter *filter);
