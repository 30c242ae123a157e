/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "profile/profile.h"

#include <stdio.h>

/* ---- report_times.c */

/*
 * Prints the tables of exact calls and allocation sites for people, each with a title and at most
 * `limit` rows; omits those for which the profile has no data. only: the metric that was asked for,
 * whose table is then the only one, or -1. Returns 0 or -ENOMEM.
 */
int report_exact_print(const struct profile *p, const struct profile_filter *filter, int only,
                       size_t limit);
/* Writes the member "times", the exact calls, of the open object. Returns 0 or -ENOMEM. */
int report_times_json(struct json *j, const struct profile *p, const struct profile_filter *filter);

/* ---- report_sites.c */

/*
 * Prepares a view of the samples of a metric that the filter selects. For a metric without samples,
 * the view has no filter: it passes everything. Returns 0 or -ENOMEM.
 */
int report_filter_init(struct profile_view *v, const struct profile *p, enum profile_metric metric,
                       const struct profile_filter *filter) must_check;
/*
 * Returns whether the view selects samples of a node and, unless `thread` is NULL, of that thread.
 */
bool report_passes(const struct profile_view *v, uint32_t node, const uint32_t *thread);
/* Prints the allocation sites, at most `limit`. Returns 0 or -ENOMEM. */
int report_sites_print(const struct profile *p, const struct profile_filter *filter,
                       size_t limit) must_check;
/* Writes the member "sites", the allocation sites, of the open object. Returns 0 or -ENOMEM. */
int report_sites_json(struct json *j, const struct profile *p, const struct profile_filter *filter);

/* ---- report_process.c */

/*
 * Prints on what the process spent CPU time, of the VM's threads too, or nothing if that is not
 * known of the selection.
 */
void report_process_print(const struct profile_view *v);
/* Writes the same as a member of the object that is open. */
void report_process_json(struct json *j, const struct profile_view *v);
