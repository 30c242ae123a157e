/* SPDX-License-Identifier: Apache-2.0 */
/* How run and attach record: where to, in which of the agent's formats, with which words. */
#pragma once

#include "cli/capture.h"
#include "proto/vm.h"

#include <time.h>

/*
 * True for the outputs that the agent writes itself (.jfr, .hprof, .hprof.txt); others are made
 * from a .jfr.
 */
bool recording_is_direct(const char *output);
/*
 * True when a converter knows the extension or the agent writes it; otherwise a complaint was made.
 */
bool recording_check_output(const char *output);
/*
 * Whether the agent will take these options for this output; otherwise a complaint was made, with
 * the command's name.
 */
bool recording_check(const struct capture *c, const char *output, const char *command);

/*
 * The agent's option string: format and file for `output`, recorded to `file` (the VM's name), then
 * the capture's words, or cpu=samples when they capture nothing. A ring's file may be NULL: the
 * agent finds it a place. Errors show in buf_error(ret).
 */
void recording_options(const struct capture *c, const char *output, const char *file,
                       struct buf *ret);

/*
 * How an output ends: a line on standard error that says where it is and what shows it, and one for
 * each thing that it lost or that was asked for and is not in it. `c`: what was recorded, when
 * known.
 */
void recording_announce(const struct capture *c, const char *output);
/*
 * The same of a file that is open, which is told as `shown` with `where` behind it. ended: the
 * recording does not go on.
 */
void recording_announce_open(int fd, const char *shown, const char *where, bool ended);
/* A line for each heap dump that was written beside a recording since then. */
void recording_announce_dumps(const char *recording, const struct timespec *since);
/*
 * Whether a file was written since then, by the clock of files' times: false for an earlier run's.
 */
bool recording_written(const char *path, const struct timespec *since);
