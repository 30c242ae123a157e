/* SPDX-License-Identifier: Apache-2.0 */
/* How a recording ended: told once, to whoever waits for it. */
#pragma once

#include "agent/options.h"

/*
 * The memory file that `jvmscope run` shares with the VM (option outcome); -1 when there is none.
 */
int outcome_file(const struct options *o);
/*
 * Tells of a recording that has ended, or that could not begin. A line goes to the memory file, if
 * there is one: the errno, a tab, the path, a tab, `why`. Otherwise a failure is said on standard
 * error, when `aloud`. error: 0 or negative errno. why: a sentence; empty when it was said already.
 */
void outcome_tell(int file, const char *path, int error, const char *why, bool aloud);
