/* SPDX-License-Identifier: Apache-2.0 */
/* Reports how a recording ended, once, to the command or user that waits for it. */
#pragma once

#include "options/options.h"

/*
 * The memory file that `jvmscope run` shares with the VM (option outcome); -1 when there is none.
 */
int outcome_file(const struct options *o);
/*
 * Tells the command why a recording could not begin: the same line without a path. Returns false if
 * there is no command to tell.
 */
bool outcome_refused(int file, int error, const struct buf *why);
/*
 * Reports a recording that has ended. If there is a memory file, one line is written to it: the
 * errno, a tab, the path, a tab, `why`. Otherwise a failure is printed on standard error, if
 * `aloud`. error: 0 or negative errno. why: a sentence.
 */
void outcome_report(int file, const char *path, int error, const char *why, bool aloud);
