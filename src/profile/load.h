/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any file that holds a profile; load.c has one row for each format. */
#pragma once

#include "base/buf.h"
#include "profile/profile.h"

/*
 * Reports from time to time how many of the file's bytes have been read. A pointer to it may be
 * NULL.
 */
typedef void load_progress(void *context, uint64_t done, uint64_t total);

/*
 * How much detail a reader must provide. It may merge samples of one stack into one sample, with
 * the first one's time and thread, as far as the detail allows: those of all threads (LOAD_SUMS),
 * of each thread (LOAD_THREADS), or of each thread in each of LOAD_TIME_CELLS cells of time, which
 * become longer when there would be too many samples (LOAD_CELLS, see struct profile_series). The
 * memory that a profile takes then does not depend on the length of the recording.
 */
enum load_detail { LOAD_SAMPLES, LOAD_SUMS, LOAD_THREADS, LOAD_CELLS };

enum { LOAD_TIME_CELLS = 512 };

struct load {
    struct profile *profile; /* the profile that is being filled */
    const uint8_t *data;     /* the file's contents */
    bool is_mapped;          /* data is a private, read-only mapping of the file */
    size_t len;
    const char *path;
    enum load_detail detail;
    /* the threads and times that are selected, which may be merged; NULL: all */
    const struct profile_filter *filter;
    struct buf *why; /* what is wrong, or what is missing from an otherwise usable result */
    load_progress *progress;
    void *progress_context;
};

/*
 * Makes a profile from a file. Returns 0 (`why` may then hold a warning, for instance that the file
 * is truncated), or a negative errno: -EPROTO for a damaged file, -ENOTSUP for an unknown format.
 * `why` holds the reason, or is empty when the errno is all that is known, as when the file cannot
 * be opened or memory runs out.
 */
int profile_load(struct profile **ret, const char *path, enum load_detail detail,
                 const struct profile_filter *filter, struct buf *why, load_progress *progress,
                 void *context) must_check;

/*
 * A line of collapsed stacks that begins with this prefix, followed by the metric's name and " 0",
 * states the metric of the lines after it; without such a line they are CPU samples. Other readers
 * see a stack without weight.
 */
#define COLLAPSED_METRIC "# jvmscope: "
/* The prefix of a line with the text of profile_note. */
#define COLLAPSED_NOTE "# jvmscope note: "

/*
 * Each of these functions reads one format into l->profile. They return 0 or a negative errno, and
 * usually append the reason to l->why. A truncated file yields what it contains, with a reason.
 */
int load_collapsed(struct load *l) must_check;
int load_jfr(struct load *l) must_check;
int load_hprof(struct load *l) must_check;
int load_hprof_text(struct load *l) must_check;
int load_wire(struct load *l) must_check; /* pprof and OTLP */

/* Returns the stack of the samples that load_unlisted adds, or -ENOMEM or -E2BIG. */
int64_t load_unlisted_node(struct profile *p) must_check;
/*
 * Adds the part of a table's total that its rows do not account for, as a sample with the mark "[in
 * no row of the file]". Adds nothing when the weight is 0. Returns 0 or a negative errno.
 */
int load_unlisted(struct profile *p, enum profile_metric metric, uint64_t weight) must_check;

/*
 * Returns the number of the frame for a method's label in a stack in text form, "pkg.Class.name",
 * or -ENOMEM or -E2BIG. A label in brackets is a mark, whatever `kind` is. descriptor and file may
 * be empty, and line 0 is unknown.
 */
int64_t load_frame(struct profile *p, struct str label, struct str descriptor, struct str file,
                   int32_t line, enum frame_kind kind) must_check;
