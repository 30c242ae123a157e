/* SPDX-License-Identifier: Apache-2.0 */
/* --push: sending a recording to a backend for profiles. */
#pragma once

#include "cli/args.h"
#include "cli/capture.h"
#include "cli/reading.h"

struct push_options {
    const char *url, *labels, *token_file;
};

extern const struct arg_set push_set; /* its struct is struct push_options */

/*
 * Returns false after a complaint if nothing can be sent, because of the URL, the token's file, or
 * this build. Does nothing and returns true without --push.
 */
bool push_check(const char *command, const struct push_options *o);

/*
 * Checks like push_check for recordings by run and attach, which must have an end and be written as
 * a .jfr.
 */
bool push_check_capture(const char *command, const struct push_options *o,
                        const struct capture_options *c, const char *output);

/*
 * Sends the selected part of a recording. `shown` is its name in messages, and the file that is
 * kept for another attempt. Returns the exit status, which is not 0 after a complaint.
 */
int push_file(const struct push_options *o, const struct selection *selection, const char *path,
              const char *shown);
