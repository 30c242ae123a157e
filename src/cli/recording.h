/* SPDX-License-Identifier: Apache-2.0 */
/* How run and attach record: where to, in which of the agent's formats, with which words. */
#pragma once

#include "cli/capture.h"
#include "proto/vm.h"

/* True for the outputs that the agent writes itself (.jfr, .hprof, .hprof.txt); others are made from a .jfr. */
bool recording_is_direct(const char *output);
/* True when a converter knows the extension or the agent writes it; otherwise a complaint was made. */
bool recording_check_output(const char *output);

/*
 * The agent's option string: format and file for `output`, recorded to `file` (the VM's name), then the capture's words, or
 * cpu=samples when they capture nothing. Errors show in buf_error(ret).
 */
void recording_options(const struct capture *c, const char *output, const char *file, struct buf *ret);

/* How an output ends: a line on standard error that says where it is and what shows it. `c`: what was recorded, when known. */
void recording_announce(const struct capture *c, const char *output);
