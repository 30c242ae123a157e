/* SPDX-License-Identifier: Apache-2.0 */
/* Coverage from recordings, for the command and the page. */
#pragma once

#include "base/json.h"
#include "profile/coverage.h"
#include "profile/losses.h"

/* What was found in the recordings. */
struct coverage_found {
    bool any;         /* coverage of a method */
    bool asked;       /* a recording was made with the option to record coverage */
    bool part;        /* the last recording is a part of one, by time, threads or classes */
    uint64_t damaged; /* events that were left out */
    struct losses losses;
};

void coverage_found_release(struct coverage_found *f);

/*
 * Adds the coverage of a recording to *c, and what was found to *ret. *ret_losses, what this
 * recording lost, is zeroed before the call, and the caller releases it in any case. Returns 0, or
 * a negative errno, with the reason in *ret_why unless that stays NULL.
 */
int coverage_read(struct coverage *c, const char *path, struct coverage_found *ret,
                  struct losses *ret_losses, const char **ret_why) must_check;
/*
 * Writes the coverage as the members "total" and "classes" of the open object. Returns 0 or
 * -ENOMEM.
 */
int coverage_json(const struct coverage *c, struct json *j) must_check;
/*
 * Writes an object {the members of `jvmscope coverage --json`, "texts": {class: source text}}, with
 * the source texts found below the folders `sources` (a list), which may be NULL. Returns 0;
 * -ENOENT, having written nothing, when the file contains no coverage; -EIO when it cannot be read;
 * or -ENOMEM.
 */
int coverage_page_json(const char *path, const char *sources, struct json *j) must_check;
