/* SPDX-License-Identifier: Apache-2.0 */
/* How commands report what a recording lost (profile/losses.h). */
#pragma once

#include "profile/losses.h"

/*
 * Prints on standard error what the recording lacks: a line for each loss of these captures (NULL:
 * of all), and for what was recorded from later on or could not be recorded; one line that names
 * the other captures with losses and the command that shows these; and what the budget reduced,
 * what --jfr left out, and whether the recording was not ended properly.
 */
void losses_report(const char *path, const struct losses *l, const char *const *captures);
/* Reports the losses of a file like losses_report. A file that is not a recording has none. */
void losses_report_file(const char *path, const char *const *captures);
/*
 * Reports the losses of all captures of a file under the name `shown`. ended: false for a recording
 * that is still being written.
 */
void losses_report_as(const char *path, const char *shown, bool ended);
/*
 * Reports the losses of a recording like losses_report_file. any: whether it may have losses; if
 * not, and the recording was ended, only its headers are read.
 */
void losses_report_known(const char *path, const char *const *captures, bool any);
/*
 * Reports the losses of a recording like losses_report_known, and the damage up to which it was
 * read. why: describes the damage; NULL if the recording was read to its end. A truncated file is
 * reported only together with its losses, so that it is reported once.
 */
void losses_report_read(const char *path, const char *const *captures, bool any, const char *why);
/* Like losses_report_read, without the losses of `what`, which the command's output states. */
void losses_report_others(const char *path, const char *const *captures, const char *what,
                          const char *why);
