/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of `jvmscope requests` share. */
#pragma once

#include "answers/requests/requests.h"
#include "cli/commands.h"

extern const struct arg_set request_now_set; /* of `jvmscope slow`; fills a request_options */

/*
 * Loads the file that an operand names. reported: a message has already reported that the recording
 * contains no requests. Returns 0, or the exit status after a complaint.
 */
int request_view_open(struct request_view *ret, const struct request_options *o, const char *path,
                      bool reported);

/* Complains and returns false when both --slowest and --over are given. */
bool request_options_check(const struct request_options *o, const char *command);

/* Prints at most `limit` frames of a stack as lines indented by `indent` spaces. */
void requests_print_frames(const struct request_view *v, const struct frames_ref *f, size_t limit,
                           int indent);

/* Prints how many requests the figures do not include, if any. */
void requests_print_not_kept(const struct request_view *v);
/* Prints what the cause cpu includes besides CPU time, if that is unknown to the recording. */
void requests_print_cpu_note(const struct request_view *v);
/*
 * Prints JSON with what `put` writes as the member `key`, and with the losses. Returns the exit
 * status.
 */
int requests_print_json(struct request_view *v, const char *key,
                        int (*put)(struct request_view *v, struct json *j));
/*
 * requests_slow prints the slow requests of each name (brief: only what fits on one screen, without
 * stacks), requests_show the request with the number `id`, or JSON. They return the exit status.
 */
int requests_slow(struct request_view *v, bool brief);
int requests_show(struct request_view *v, const char *id);
