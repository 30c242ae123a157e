/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages from web/, bundled at build time: that of a recording is HTML with the data between
 * head and tail; that of a collector asks for its data, and comes with its Content-Security-Policy.
 * All are empty when npm or its packages were missing.
 */
#pragma once

#include "analysis/request_fields.h"
#include "base/buf.h"
#include "profile/profile.h"
#include "timeline/timeline.h"

#include <stdio.h>

extern const char page_head[], page_tail[], page_of_fleet[], page_policy_of_fleet[];

/* How the files of a served page refer to each other. */
struct page_site {
    const char *const *files;
    size_t count, at;
    const bool *dumps; /* by file: a heap dump alone, which has no profile to compare with */
};

/* What a page shows: a recording, or a part of it. */
struct page_source {
    const char *path;
    const char *name; /* the name to show for it; NULL means the last component of the path */
    const struct profile *profile;
    enum profile_metric metric; /* the metric that the page shows first */
    struct profile_filter filter;
    const char *warning; /* what is wrong with the recording, or NULL */
    /* With a filter: the kinds of data that still cover the whole recording, or NULL. */
    const char *whole;
    const char *part; /* With a filter: the options that select it, or NULL. */
    /*
     * Further members of the page's JSON object, without its braces, which follow the profile and
     * the threads; may be empty.
     */
    const struct buf *members;
    /* For which requests each thread worked, by which samples are attributed; NULL or empty: none.
     */
    const struct request_fields *fields;
    /* For a page that is served, else NULL: */
    const struct page_site *site;
    struct buf *blob; /* receives the page's binary data */
    /* The recording's timeline, of which the page requests what it shows. */
    const struct timeline *timeline;
};

/*
 * Writes what the page shows of a recording as JSON: the profile, and the threads if the recording
 * has them. Returns 0, -ENOMEM, or another negative errno when the recording cannot be read again.
 */
int page_of_recording(const struct page_source *s, struct buf *out) must_check;
/*
 * Returns whether anything but the starts and ends of threads was recorded; a profile alone has no
 * timeline worth showing.
 */
bool page_has_threads(const struct timeline *t);
/*
 * Writes the page with `data`, a JSON text, in its script, where `<` is escaped. An error is left
 * in `out` (ferror).
 */
void page_write(FILE *out, const struct buf *data);
