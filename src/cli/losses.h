/* SPDX-License-Identifier: Apache-2.0 */
/* How commands report what a recording lost (profile/losses.h). */
#pragma once

#include "profile/losses.h"

/*
 * Prints a line on standard error for each loss of these captures (NULL: of all), one that names
 * the losses of the others and what shows them, and one when the recording was not ended properly.
 */
void losses_report(const char *path, const struct losses *l, const char *const *captures);
/* The same for a file, which is read for this; a file that is not a recording has no losses. */
void losses_report_file(const char *path, const char *const *captures);
/*
 * The same for all captures of a file that is reported under the name `shown`. ended: false for a
 * recording that is still being written.
 */
void losses_report_as(const char *path, const char *shown, bool ended);
/*
 * The same for a recording whose losses were already counted: it is read for their descriptions
 * only if there are any.
 */
void losses_report_known(const char *path, const char *const *captures, bool any);
/*
 * The same after the recording was read up to the damage that `why` describes, or to its end
 * (NULL). A truncated file is reported only together with its losses, so that it is reported once.
 */
void losses_report_read(const char *path, const char *const *captures, bool any, const char *why);
/* The same without the losses of `what`, which the command's own output states. */
void losses_report_others(const char *path, const char *const *captures, const char *what,
                          const char *why);
