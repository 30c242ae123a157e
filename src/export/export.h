/* SPDX-License-Identifier: Apache-2.0 */
/* Formats that a recording can be turned into: one row here, one file each. */
#pragma once

#include "base/buf.h"
#include "model/profile.h"

#include <stdio.h>

/* A served page's place among the files. */
struct page_site {
    const char *const *files;
    size_t count, at;
};

struct json;
struct timeline;

/* What to write: a part of a recording. */
struct export_source {
    const char *path; /* of the recording; for formats that copy from it */
    const char *name; /* to show for it; NULL: the last part of the path */
    const struct profile *profile;
    enum profile_metric metric;
    struct profile_filter filter;
    const struct page_site *site;    /* of a page that is served, or NULL */
    struct buf *blob;                /* of a page that is served: takes its binary data */
    const struct timeline *timeline; /* the recording's, of a page that is served: it asks for what it shows. May be NULL */
    const char *warning;             /* for a page: what is wrong with the recording, or NULL */
    const char *sources;             /* for a page: the folder of the program's source files, or NULL */
    /* For a page: writes members beyond the profile and the threads into the open object. 0 or negative errno. May be NULL. */
    int (*more)(const struct export_source *s, struct json *j);
};

struct export_format {
    const char *extension; /* ".pb.gz"; the file name's end picks the format */
    const char *what;      /* for help */
    bool any;              /* takes recordings without samples too */
    /* Writes to `out`; 0, or negative errno with the reason in why (which may stay empty). stdio errors are the caller's. */
    int (*write)(const struct export_source *s, FILE *out, struct buf *why);
    bool threads; /* made of the timeline of the recording at `path`: source.profile is NULL */
};

/* Ends with a row without an extension. */
extern const struct export_format export_formats[];

/* The format of a file name, the longest extension first; NULL when there is none. */
const struct export_format *export_format_of(const char *path);

int export_collapsed(const struct export_source *s, FILE *out, struct buf *why) must_check;
int export_hprof(const struct export_source *s, FILE *out, struct buf *why) must_check;
int export_hprof_text(const struct export_source *s, FILE *out, struct buf *why) must_check;
int export_html(const struct export_source *s, FILE *out, struct buf *why) must_check;
int export_jfr(const struct export_source *s, FILE *out, struct buf *why) must_check;
int export_chrome(const struct export_source *s, FILE *out, struct buf *why) must_check;
int export_perfetto(const struct export_source *s, FILE *out, struct buf *why) must_check;
int export_trcxml(const struct export_source *s, FILE *out, struct buf *why) must_check;
int export_pprof(const struct export_source *s, FILE *out, struct buf *why) must_check;
