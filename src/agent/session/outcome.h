/* SPDX-License-Identifier: Apache-2.0 */
/* Reports once how a recording ended, to the command or user that waits for it. */
#pragma once

#include "options/options.h"

/*
 * Returns the memory file that `jvmscope run` shares with the VM (option outcome); -1 when there is
 * none.
 */
int outcome_file(const struct options *o);
/*
 * Reports to the command why a recording could not begin: `why`, to which `then` is appended. The
 * line is that of outcome_report, without a path. `why` is empty afterwards, unless there is no
 * command that reads it.
 */
void outcome_refused(int file, int error, const char *then, struct buf *why);
/*
 * Reports a recording that has ended. If there is a memory file, one line is written to it: the
 * errno, a tab, the path, a tab, `why`. Otherwise a failure is printed on standard error, if
 * `aloud`. error: 0 or negative errno. why: a sentence.
 */
void outcome_report(int file, const char *path, int error, const char *why, bool aloud);
