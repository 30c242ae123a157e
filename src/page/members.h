/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the page shows besides the profile and the threads: losses, calls with values, coverage, the
 * heap.
 */
#pragma once

#include "analysis/request_fields.h"
#include "base/buf.h"
#include "profile/load.h"
#include "profile/profile.h"

enum { PAGE_CALLS = 20000 }; /* maximum number of calls in one page; the rest is counted */

/*
 * Appends the members for page_source.members: what a recording lost (profile/losses.h), and
 * "trace", "requests", "coverage" and "heap", each only when the file at `path` has it. profile may
 * be NULL; sources is a list of folders of the program's source files or NULL; served: the page
 * will request the data of a heap from a server. *ret_fields is for page_source.fields; it stays
 * empty if the file has no requests, and the caller releases it. Returns 1 if the file has any of
 * these four, 0 if not, or a negative errno.
 */
int page_members(struct buf *out, const char *path, const struct profile *profile,
                 const char *sources, bool served, struct request_fields *ret_fields) must_check;
/*
 * Returns with which detail a page reads a profile: single samples if the file has requests, to
 * which they are attributed, and is not so large that their number matters.
 */
enum load_detail page_detail(const char *path);
