/* SPDX-License-Identifier: Apache-2.0 */
/* The formats to which a recording can be converted, one file each. */
#pragma once

#include "base/buf.h"
#include "export/kinds.h"
#include "profile/load.h"

#include <stdio.h>

/* What to write: a part of a recording. */
struct export_source {
    const char *path; /* path of the recording, for formats that copy from it */
    const char *name; /* the name to show for it; NULL means the last component of the path */
    const struct profile *profile;
    enum profile_metric metric;
    bool all_metrics;   /* for formats that hold several metrics: all of them instead of `metric` */
    const char *labels; /* for formats that say what was profiled: "key=value,key=value", or NULL */
    struct profile_filter filter;
    /* for a page of a part: the kinds of data that still cover the whole recording, or NULL */
    const char *whole;
    const char *part;    /* for a page of a part: the options that select it, or NULL */
    const char *warning; /* for a page: what is wrong with the recording, or NULL */
    /* for a page: see struct page_source */
    const struct buf *members;
    const struct request_fields *fields;
    struct buf *note; /* receives what the selection left out, unless NULL */
};

/* What selects a part of a recording. A selection that a format does not follow is refused. */
enum export_selection {
    FOLLOWS_THREAD = 1,
    FOLLOWS_CLASS = 2,
    FOLLOWS_TIME = 4,
    FOLLOWS_REQUEST = 8,
    FOLLOWS_METRIC = 16,
    FOLLOWS_SAMPLES = 31 /* all that selects samples */
};

struct export_format {
    const char *extension; /* such as ".pb.gz"; the end of the file name selects the format */
    const char *what;      /* shown in help */
    bool any;              /* also accepts recordings without samples */
    bool one_metric;       /* holds samples of one metric only */
    /* enum event_data: the kinds of data that it can contain; the others are left out */
    unsigned holds;
    unsigned holds_partly; /* the kinds among the others of which it contains something */
    unsigned follows;      /* enum export_selection: what can select a part of it */
    /*
     * Writes to `out`. Returns 0, or a negative errno with the reason in why, which may stay empty.
     * The caller checks for stdio errors.
     */
    int (*write)(const struct export_source *s, FILE *out, struct buf *why);
    enum load_detail detail; /* which samples it keeps apart */
    bool threads; /* made from the timeline of the recording at `path`; source.profile is NULL */
};

/*
 * Ends with NULL. A format's file defines its row, `const struct export_format
 * export_format_NAME`, and format_list.h lists it.
 */
extern const struct export_format *const export_formats[];
#define FORMAT(name) extern const struct export_format export_format_##name;
#include "export/format_list.h"
#undef FORMAT

/* Returns the format of a file name by its longest matching extension, or NULL. */
const struct export_format *export_format_of(const char *path);
