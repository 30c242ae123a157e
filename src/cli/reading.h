/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands that read a recording share: the filter options, opening with progress, the
 * choice of a metric.
 */
#pragma once

#include "cli/commands.h"
#include "cli/only_requests.h"
#include "profile/load.h"

struct selection {
    struct profile_filter filter;
    const char *metric; /* NULL: the first one that the recording contains */
    struct only_requests requests;
};

extern const struct arg_set selection_set; /* its struct is struct selection */

/*
 * Reads a profile, for views of this selection that need no more than the detail. Returns 0, or the
 * exit status after a complaint. A warning, for a file cut short, is printed and is not a failure.
 * What was reported about a cut or damaged file is also appended to *ret_warning, unless that is
 * NULL. The losses of captures that are not in the list (NULL: none) are reported in one line.
 */
int reading_open(struct profile **ret, const char *path, enum load_detail detail,
                 const struct selection *s, const char *const *captures, struct buf *ret_warning);
/*
 * Removes from the profile all that does not belong to the selected requests, if the selection
 * names any. Returns false after a complaint when the selection cannot match: its times are out of
 * order, or its threads, classes or requests do not exist or have no samples. of_events: the output
 * contains all events, including those of threads and stacks without samples.
 */
bool reading_check(const struct selection *s, struct profile *p, const char *path, bool of_events);
/*
 * Stores the selected metric; by default, the first one of which the selection has samples. Returns
 * 0, or the exit status after a complaint.
 */
int reading_metric(const struct selection *s, const struct profile *p, const char *path,
                   enum profile_metric *ret);

/*
 * If a metric is named, checks that the time, the thread and the class of a selection have samples
 * of it. Returns 0, or the exit status after a complaint.
 */
int reading_check_metric(const struct selection *s, const struct profile *p, const char *path,
                         enum profile_metric metric);

/*
 * Returns why a selection by time or thread cannot apply to a metric, or NULL if it can. Samples
 * without times cannot be selected by time, and counts for all threads together not by thread.
 */
const char *reading_whole_only(const struct profile_filter *f, const struct profile *p,
                               enum profile_metric metric);
/*
 * Prints a note on standard error for each metric that an output of all metrics leaves out, with
 * the reason (reading_whole_only).
 */
void reading_note_left_out(const struct profile_filter *f, const struct profile *p,
                           const char *path);

/* Formats a weight in the metric's unit: "123", "1.5 MiB" or "2.1 s". Returns text. */
char *reading_format_weight(char text[24], enum profile_metric metric, uint64_t weight);
