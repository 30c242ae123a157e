/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any file that holds a profile: one row a format in load.c. */
#pragma once

#include "base/buf.h"
#include "model/profile.h"

/* Told now and then how far a reader is, in bytes; NULL when nobody wants to know. */
typedef void load_progress(void *context, uint64_t done, uint64_t total);

/*
 * How much a reader must tell. LOAD_SUMS: of CPU samples of one stack it may make one, with the
 * first one's time and thread, for views that tell neither times nor threads apart. They are then
 * as many as there are stacks, and not as the recording is long.
 */
enum load_detail { LOAD_SAMPLES, LOAD_SUMS };

struct load {
    struct profile *profile; /* being filled */
    const uint8_t *data;     /* the file's bytes */
    bool is_mapped;          /* they are a private, read-only mapping of it */
    size_t len;
    const char *path;
    enum load_detail detail;
    struct buf *why; /* what is wrong, or what is missing from a result that is there */
    load_progress *progress;
    void *progress_context;
};

/*
 * Makes a profile from a file. 0 (why may then hold a warning: the file is cut, say), or negative
 * errno with the reason in why: -EPROTO is a file that is damaged, -ENOTSUP one of a format that is
 * not known.
 */
int profile_load(struct profile **ret, const char *path, enum load_detail detail, struct buf *why,
                 load_progress *progress, void *context) must_check;

/*
 * Collapsed stacks of anything but CPU samples begin with this, the metric's name and " 0": to
 * readers that know nothing of it a stack without weight.
 */
#define COLLAPSED_METRIC "# jvmscope: "

/*
 * The formats' own readers: 0, or negative errno with a reason. A file cut short is what was there,
 * with a reason.
 */
int load_collapsed(struct load *l) must_check;
int load_jfr(struct load *l) must_check;
int load_hprof(struct load *l) must_check;
int load_hprof_text(struct load *l) must_check;
int load_pprof(struct load *l) must_check;

/*
 * What a table's total has beyond its rows, as a sample of a mark, "[in no row of the file]";
 * nothing when the weight is 0.
 */
int64_t load_unlisted_node(struct profile *p) must_check; /* its stack */
int load_unlisted(struct profile *p, enum profile_metric metric, uint64_t weight) must_check;

/*
 * For readers of stacks as text: the frame of a method's label, "pkg.Class.name"; what stands in
 * brackets alone is a mark. The number of the frame, or -ENOMEM or -E2BIG.
 */
int64_t load_frame(struct profile *p, struct str label, struct str descriptor, struct str file,
                   int32_t line, enum frame_kind kind) must_check;
