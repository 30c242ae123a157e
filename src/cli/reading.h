/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands that read a recording share: the filter options, opening with progress, the
 * choice of a metric.
 */
#pragma once

#include "cli/commands.h"
#include "cli/requests/only.h"
#include "model/profile.h"

struct selection {
    struct profile_filter filter;
    const char *metric; /* NULL: the first that the recording holds */
    struct only_requests requests;
};

extern const struct arg_set selection_set; /* its struct is struct selection */

/*
 * Reads a profile. 0, or the exit status after a complaint; a warning (a file cut short) is printed
 * and is no failure. What a complaint said about a file that is cut or damaged is appended to
 * *ret_warning, unless that is NULL.
 */
int reading_open(struct profile **ret, const char *path, struct buf *ret_warning);
/*
 * The same for views of this selection that show neither the time nor the thread of a sample:
 * CPU samples of one stack may be added up.
 */
int reading_open_sums(struct profile **ret, const char *path, const struct selection *s,
                      struct buf *ret_warning);
/*
 * Leaves in the profile what belongs to the requests of the selection, if it has any. False: the
 * selection cannot hold at all (its times are not in order, its threads not there), and a complaint
 * was made.
 */
bool reading_check(const struct selection *s, struct profile *p, const char *path);
/* The metric asked for or the first there is. 0, or the exit status after a complaint. */
int reading_metric(const struct selection *s, const struct profile *p, const char *path,
                   enum profile_metric *ret);

/* "123", "1.5 MiB" or "2.1 s" as the metric's unit has it, into text[24]; returns text. */
char *format_weight(char text[24], enum profile_metric metric, uint64_t weight);
