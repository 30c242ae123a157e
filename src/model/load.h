/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any file that holds a profile: one row a format in load.c. */
#pragma once

#include "base/buf.h"
#include "model/profile.h"

/* Told now and then how far a reader is, in bytes; NULL when nobody wants to know. */
typedef void load_progress(void *context, uint64_t done, uint64_t total);

struct load {
    struct profile *profile; /* being filled */
    const uint8_t *data;     /* the file's bytes */
    size_t len;
    const char *path;
    struct buf *why; /* what is wrong, or what is missing from a result that is there */
    load_progress *progress;
    void *progress_context;
};

/*
 * Makes a profile from a file. 0 (why may then hold a warning: the file is cut, say), or negative errno with the reason in
 * why: -EPROTO is a file that is damaged, -ENOTSUP one of a format that is not known.
 */
int profile_load(struct profile **ret, const char *path, struct buf *why, load_progress *progress, void *context) must_check;

/* The formats' own readers: 0, or negative errno with a reason. A file cut short is what was there, with a reason. */
int load_collapsed(struct load *l) must_check;
int load_jfr(struct load *l) must_check;
int load_hprof(struct load *l) must_check;
int load_hprof_text(struct load *l) must_check;
