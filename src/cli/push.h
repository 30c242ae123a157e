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
 * this build, or if other options of push are given without --push. Returns true if none of them is
 * given.
 */
bool push_check(const char *command, const struct push_options *o);

/*
 * Checks like push_check for run and attach. With --push, their recording must have an end and be
 * written as a .jfr.
 */
bool push_check_capture(const char *command, const struct push_options *o,
                        const struct capture_options *c, const char *output);

/*
 * Sends the selected part of the recording at `path`. shown: its name in messages, under which it
 * is kept for another attempt. Returns the exit status, which is not 0 after a complaint.
 */
int push_file(const struct push_options *o, const struct selection *selection, const char *path,
              const char *shown);
